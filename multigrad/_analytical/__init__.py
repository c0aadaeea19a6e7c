"""The analytical side: the Jacobian that is claimed, and errors in it that are no fault of the rule under test."""

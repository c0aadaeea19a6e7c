"""What a check returns: the comparison of each mode, the report, and the report as text."""

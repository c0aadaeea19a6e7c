"""The comparison of both sides, direction by direction: what is said of each entry, and why."""

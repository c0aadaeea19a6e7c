"""Jacobians too large to be compared entry by entry."""

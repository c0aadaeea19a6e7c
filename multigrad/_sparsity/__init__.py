"""Sparse Jacobians: their pattern, found from f, and the groups of columns that share a direction."""

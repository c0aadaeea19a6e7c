"""Arrays that stand in for ndarray, and the copy of the user's function that meets them: what all kinds have in common."""

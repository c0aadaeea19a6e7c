"""The batched array: many rows of inputs through the user's function at once."""

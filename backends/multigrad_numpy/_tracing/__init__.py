"""The traced array, whose live values are JAX's, and the table of what is done with it."""

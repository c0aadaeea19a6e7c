"""Gradient checks with error bars for PyTorch, JAX and NumPy."""

"""What the traced array does for each function of NumPy and SciPy."""

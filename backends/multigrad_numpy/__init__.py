"""multigrad's adapter for NumPy."""

from multigrad_numpy._backend import NumpyBackend

__all__ = ["NumpyBackend"]

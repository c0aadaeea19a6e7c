"""multigrad's adapter for NumPy."""

from multigrad_numpy._backend import NumpyBackend
from multigrad_numpy._tracing.table import register_numpy

__all__ = ["NumpyBackend", "register_numpy"]

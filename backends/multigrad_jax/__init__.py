"""multigrad's adapter for JAX."""

from multigrad_jax._backend import JaxBackend

__all__ = ["JaxBackend"]

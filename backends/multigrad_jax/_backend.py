"""The door: from a JAX function and its inputs to a flat function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.backends import FlatFunction, Options
from multigrad.errors import InvalidUse
from multigrad_jax._function import JaxFunction


class JaxBackend:
    """Makes flat functions of JAX functions."""

    name = "jax"
    options = frozenset({"jac", "params"})

    def recognises(self, leaf: object) -> bool:
        return isinstance(leaf, jax.Array)

    def flatten(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> FlatFunction:
        if options.params is not None:
            raise InvalidUse(
                "unsupported_params",
                "params= has no meaning for JAX, where parameters are arguments: "
                "pass them as an input, check_grad(fn, (params, x))",
            )
        return JaxFunction(fn, inputs, options.jac, options.seed, options.native)

    def array(self, value: Any) -> jax.Array:
        if isinstance(value, jax.Array):
            return value
        # Integers are those of the user's mode, as jnp.asarray makes them.
        double = str(value.dtype).endswith(("float64", "complex128"))
        with jax.enable_x64(double or jnp.result_type(float).itemsize == 8):
            # Dense memory alone goes without a copy, and NumPy exports no memory that is read-only.
            shared = not isinstance(value, np.ndarray) or (value.flags.c_contiguous and value.flags.writeable)
            return jnp.from_dlpack(value) if shared else jnp.asarray(value)

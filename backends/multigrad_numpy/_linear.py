"""A function of one JAX vector, linearised at a point: products with its Jacobian from either side."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.backends import Array
from multigrad.errors import Unsupported, first_line

# So many numbers go through a linear map in less time than its operations take to compile for another number of rows.
_CHEAP = 1 << 18


class Linearised:
    """The Jacobian of ``flat`` at ``x``, which is run eagerly once; ``value`` is what it returned, shape (m,)."""

    def __init__(self, flat: Callable[[Any], Any], x: Array) -> None:
        self._x = x
        self._compiled: dict[str, int] = {}
        with jax.enable_x64(True):
            value, self._linear = jax.linearize(flat, jnp.asarray(x))
        self.value: Array = np.asarray(value)

    def vjp(self, U: Array, /) -> Array:
        return self._in_rows("vjp", lambda u: self._transposed(u)[0], U)

    def jvp(self, V: Array, /) -> Array:
        return self._in_rows("jvp", self._linear, V)

    def _in_rows(self, mode: str, product: Callable[..., Any], rows: Array) -> Array:
        """Apply a linear map to rows; a few rows are filled up with zeros to a number that is compiled already."""
        known = self._compiled.get(mode, 0)
        count = known if len(rows) < known and known * rows.shape[1] <= _CHEAP else len(rows)
        filled = np.zeros((count, rows.shape[1]))
        filled[: len(rows)] = rows
        self._compiled[mode] = count
        try:
            with jax.enable_x64(True):
                return np.array(jax.vmap(product)(jnp.asarray(filled))[: len(rows)])
        except (NotImplementedError, TypeError, ValueError) as error:
            reason = first_line(error)
            raise Unsupported(f"JAX has no {mode} of something that fn calls: {reason}; pass jac=") from error

    @cached_property
    def _transposed(self) -> Callable[..., Any]:
        transposed: Callable[..., Any] = jax.linear_transpose(self._linear, jnp.asarray(self._x))
        return transposed

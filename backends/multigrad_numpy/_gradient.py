"""The gradient of a traced function as a flat function: what a check of second order differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.backends import Array, Leaf
from multigrad.findings import Finding
from multigrad_numpy._linear import Linearised

if TYPE_CHECKING:
    from multigrad_numpy._function import NumpyFunction


class TracedGradient:
    """J(x)^T (u + t w) as a function of x and t; see ``multigrad.backends.FlatFunction``.

    Args:
        function: the function whose J this is; its trace must be faithful.
        u: the cotangent at t = 0, shape (m,).
        w: how it changes with t, shape (m,).
    """

    def __init__(self, function: NumpyFunction, u: Array, w: Array) -> None:
        self._function, self._u, self._w = function, u, w
        self.x = np.append(function.x, 0.0)
        self.inputs: Sequence[Leaf] = (*function.inputs, Leaf("cotangent", (), "float64", function.x.size))
        self.outputs: Sequence[Leaf] = [replace(leaf, path=f"grad({leaf.path})") for leaf in function.inputs]
        self.fixed, self.eps = function.fixed, function.eps
        self.findings: Sequence[Finding] = []
        self.repeats = self(np.stack([self.x, self.x]))

    def __call__(self, X: Array, /) -> Array:
        with jax.enable_x64(True):
            return np.stack([np.asarray(self._flat(jnp.asarray(row))) for row in X])

    def vjp(self, U: Array, /) -> Array:
        return self._linear.vjp(U)

    def jvp(self, V: Array, /) -> Array:
        return self._linear.jvp(V)

    @cached_property
    def _linear(self) -> Linearised:
        return Linearised(self._flat, self.x)

    def _flat(self, point: Any) -> Any:
        _, pull = jax.vjp(self._function.trace.flat, point[:-1])
        return pull(self._u + point[-1] * self._w)[0]

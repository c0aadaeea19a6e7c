"""The derivative of a NumPy function by tracing it with JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.backends import Array, Leaf
from multigrad.errors import Unsupported
from multigrad.tree import walk
from multigrad_numpy._ducks.memory import Memory
from multigrad_numpy._linear import Linearised
from multigrad_numpy._trace import leave, run
from multigrad_numpy._tracing.table import Registered
from multigrad_numpy._tracing.traced import TracedArray

if TYPE_CHECKING:
    from multigrad_numpy._function import NumpyFunction

# What rounding in another order may change, relative to the largest entry of an output.
_FAITHFUL = 1e-9
# Values so much smaller than the inputs may be nothing but what rounding leaves of them.
_ROUNDED = 64 * 2.0**-52
# How far from the point the values are compared as well. Equal values at one point prove little: at a symmetric
# matrix a Cholesky factor is the same whichever triangle it is made of.
_NEARBY = 1e-3


class TracedDerivative:
    """The Jacobian of a flat function at its point, by reverse and by forward mode, from one linearisation.

    Args:
        fn: the user's function behind it.
        function: the flat function that is differentiated.

    Attributes:
        uses_registered: whether the trace met a rule that the user registered.

    Raises:
        Unsupported: ``fn`` can't be traced, or the trace computes something else than NumPy.
    """

    def __init__(self, fn: Callable[..., Any], function: NumpyFunction) -> None:
        self._function, self._fn = function, fn
        before = Registered.calls
        self._linear = Linearised(self.flat, function.x)
        self.uses_registered = Registered.calls > before
        # Of a function that gives another value every time nothing can be said; the check itself reports it.
        if np.array_equal(function.repeats[0], function.repeats[1], equal_nan=True):
            self._compare(self._linear.value, function.repeats[0], "at the point")
            self._compare_nearby()

    def vjp(self, U: Array, /) -> Array:
        return self._linear.vjp(U)

    def jvp(self, V: Array, /) -> Array:
        return self._linear.jvp(V)

    @cached_property
    def matrix(self) -> Array:
        """The Jacobian, shape (m, n)."""
        m, n = self._function.repeats.shape[1], len(self._function.x)
        return self.vjp(np.eye(m)) if m <= n else np.ascontiguousarray(self.jvp(np.eye(n)).T)

    def values(self, X: Array, /) -> Array:
        """The traced function's own values at the rows of X: (b, n) -> (b, m)."""
        with jax.enable_x64(True):
            return np.stack([np.asarray(self.flat(jnp.asarray(row))) for row in X])

    def flat(self, row: Any) -> Any:
        """The function in JAX, of its flat vector (n,): (m,); to be run eagerly, in 64-bit mode."""
        arguments = self._function.arguments.replace(lambda value, leaf: _box(value, leaf, row))
        named = dict(walk(run(self._fn, arguments), "output"))
        return jnp.concatenate([_reals(named.get(leaf.path), leaf) for leaf in self._function.results.leaves])

    def _compare_nearby(self) -> None:
        x = self._function.x
        away = np.random.default_rng(0).uniform(0.5, 1.0, x.size) * np.where(np.arange(x.size) % 2, 1, -1)
        nearby = x + _NEARBY * np.maximum(np.abs(x), 1e-2) * away
        try:
            with np.errstate(all="ignore"):
                expected = self._function(nearby[None])[0]
        except Exception:  # noqa: BLE001 - the user's function need not be defined there
            return
        if np.isfinite(expected).all():
            self._compare(self.values(nearby[None])[0], expected, "near the point")

    def _compare(self, traced: Array, expected: Array, where: str) -> None:
        for leaf in self._function.outputs:
            ours, theirs = traced[leaf.slice], expected[leaf.slice]
            known = np.isfinite(theirs)
            size = float(np.max(np.abs(theirs), initial=0.0, where=known))
            inputs = float(np.max(np.abs(self._function.x), initial=0.0))
            size = size if size > _ROUNDED * inputs else inputs
            coarse = 8 * float(np.finfo(leaf.dtype).eps) if leaf.dtype.startswith(("float", "complex")) else 0.0
            with np.errstate(invalid="ignore"):
                off = np.where(known, ~(np.abs(ours - theirs) <= max(_FAITHFUL, coarse) * size), ~_same(ours, theirs))
            if off.any():
                k = int(np.argmax(off))
                raise Unsupported(
                    f"tracer fidelity: {where} the trace gives {ours[k]!r} for {leaf.place(leaf.start + k)} and NumPy "
                    f"{theirs[k]!r}, so the trace is not used; pass jac="
                )


def _same(a: Array, b: Array) -> Any:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _box(value: Any, leaf: Leaf | None, row: Any) -> Any:
    """An argument as the traced function gets it; ``row`` is the flat vector, traced."""
    is_array = isinstance(value, np.ndarray)
    if leaf is None:
        return TracedArray.plain(value.copy()) if is_array and value.dtype.kind in "biufc" else value
    entries = row[leaf.slice]
    if leaf.complex:
        entries = entries[0::2] + 1j * entries[1::2]
    memory = Memory(entries.reshape(leaf.shape), live=True, origin=frozenset({leaf.path}))
    return TracedArray(memory, scalar=not is_array)


def _reals(value: Any, leaf: Leaf) -> Any:
    """One output of the traced function as reals: (places,)."""
    array = leave(value)
    if array.shape != leaf.shape or jnp.iscomplexobj(array) and not leaf.complex:
        raise Unsupported(f"tracer fidelity: {leaf.path} has shape {array.shape}, NumPy's {leaf.shape}; pass jac=")
    if leaf.complex:
        array = jnp.stack([jnp.real(array), jnp.imag(array)], axis=-1)
    return array.reshape(-1).astype(float)

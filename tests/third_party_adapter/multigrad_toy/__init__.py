"""An adapter written from backends/README.md alone: simple loops, real arrays, positional arguments, no pytrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad.backends import Array, Leaf, Options
from multigrad.errors import InvalidUse, Unsupported
from multigrad_toy._dual import Dual, WithRule, jvp

__all__ = ["Dual", "ToyArray", "ToyBackend", "WithRule"]


class ToyArray(np.ndarray):  # type: ignore[type-arg]
    """The array by which ``backend="auto"`` knows this framework."""


class ToyBackend:
    """NumPy functions of positional arrays, differentiated by dual numbers."""

    name = "toy"
    options: frozenset[str] = frozenset()

    def recognises(self, leaf: object) -> bool:
        """Whether this is an array of the toy framework."""
        return isinstance(leaf, ToyArray)

    def flatten(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> ToyFunction:
        """Make the flat function of ``fn(*inputs)``."""
        return ToyFunction(fn, inputs)


class ToyFunction:
    """The flat function: one call of the user's function for each row."""

    eps = 2.0**-52

    def __init__(self, fn: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
        self._fn = fn
        self._arguments = tuple(np.array(a) for a in inputs)
        for i, a in enumerate(self._arguments):
            if a.dtype.kind not in "fiub":
                raise InvalidUse("unsupported_input", f"backend 'toy' takes real arrays; inputs[{i}] is {a.dtype}")
        self.findings: list[Any] = []
        self.fixed = [f"inputs[{i}] ({a.dtype})" for i, a in enumerate(self._arguments) if a.dtype.kind != "f"]
        checked = {f"inputs[{i}]": a for i, a in enumerate(self._arguments) if a.dtype.kind == "f"}
        if not checked:
            raise InvalidUse("no_differentiable_input", f"nothing to differentiate; held fixed: {self.fixed}")
        self.inputs = _leaves(checked)
        self.x = np.concatenate([a.ravel().astype(np.float64) for a in checked.values()])
        first, second = self._outputs(self.x), self._outputs(self.x)
        self.outputs = _leaves({"output" if len(first) == 1 else f"output[{i}]": y for i, y in enumerate(first)})
        self.repeats = np.stack([_join(first), _join(second)])

    def __call__(self, X: Array, /) -> Array:
        return np.stack([_join(self._outputs(x)) for x in X])

    def vjp(self, U: Array, /) -> Array:
        raise Unsupported("dual numbers have no reverse mode")

    def jvp(self, V: Array, /) -> Array:
        primals = self._unflatten(self.x)
        rows = [jvp(self._fn, primals, self._unflatten(v, fixed=None)) for v in V]
        return np.stack([_join(row) for row in rows])

    def _outputs(self, x: Array) -> tuple[Any, ...]:
        y = self._fn(*self._unflatten(x))
        return tuple(np.asarray(leaf, dtype=np.float64) for leaf in (y if isinstance(y, tuple) else (y,)))

    def _unflatten(self, x: Array, fixed: Any = np.copy) -> tuple[Any, ...]:
        """The arguments at ``x``; fixed ones are copied, or None if ``fixed`` is None."""
        leaves = iter(self.inputs)
        return tuple(_cut(x, next(leaves)) if a.dtype.kind == "f" else fixed and fixed(a) for a in self._arguments)


def _cut(x: Array, leaf: Leaf) -> Array:
    return x[leaf.slice].reshape(leaf.shape).copy()


def _join(leaves: Any) -> Array:
    return np.concatenate([np.ravel(leaf) for leaf in leaves]).astype(np.float64)


def _leaves(arrays: dict[str, Any]) -> list[Leaf]:
    leaves: list[Leaf] = []
    for path, a in arrays.items():
        leaves.append(Leaf(path, a.shape, str(a.dtype), start=sum(leaf.size for leaf in leaves)))
    return leaves

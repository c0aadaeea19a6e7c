"""Many rows through a NumPy function at once, by the batched array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad.backends import Array, Leaf
from multigrad.errors import Unsupported
from multigrad.tree import walk
from multigrad_numpy._arguments import Arguments
from multigrad_numpy._batching import products, rules  # noqa: F401 - they enter the rules
from multigrad_numpy._batching.batched import BatchArray
from multigrad_numpy._ducks.creation import any_duck
from multigrad_numpy._ducks.memory import Memory
from multigrad_numpy._ducks.rebind import rebind
from multigrad_numpy._results import Results


class Rows:
    """A function of NumPy arrays on many rows at once, (b, n) -> (b, m).

    What the function is given, and the arrays that it reads elsewhere, are not copied before it is seen to write
    into one of them.
    """

    def __init__(self, fn: Callable[..., Any], arguments: Arguments, results: Results) -> None:
        self._fn, self._arguments, self._results = fn, arguments, results
        self._copies = False

    def __call__(self, X: Array) -> Array:
        """Evaluate the function at the rows of X.

        Raises:
            Unsupported: the rows want to go different ways, or something has no batched form.
        """
        try:
            return self._evaluate(X)
        except ValueError as error:
            if self._copies or "read-only" not in str(error):
                raise
        self._copies = True
        return self._evaluate(X)

    def _evaluate(self, X: Array) -> Array:
        rows = X.copy() if self._copies else X.view()
        rows.flags.writeable = self._copies
        boxed = self._arguments.replace(lambda value, leaf: _box(value, leaf, rows))
        named = dict(walk(rebind(self._fn, BatchArray, copies=self._copies)(*boxed), "output"))
        if named.keys() != self._results.paths:
            raise Unsupported("the batched function returns other parts")
        return np.concatenate([_reals(named[leaf.path], leaf, len(X)) for leaf in self._results.leaves], axis=1)


def _box(value: Any, leaf: Leaf | None, rows: Array) -> Any:
    is_array = isinstance(value, np.ndarray)
    if leaf is None:
        return BatchArray.plain(value.copy()) if is_array and value.dtype.kind in "biufc" else value
    entries: Any = rows[:, leaf.slice]
    if leaf.complex:
        entries = np.ascontiguousarray(entries).view(np.complex128)
    entries = entries.reshape(len(rows), *leaf.shape)
    return BatchArray(Memory(entries, live=True), scalar=not is_array)


def _reals(value: Any, leaf: Leaf, rows: int) -> Array:
    """One output, the rows in front, as reals: (b, places). Always a copy."""
    array = BatchArray.asarray(value) if any_duck(value) else BatchArray.plain(np.array(value))
    if array.shape != leaf.shape or array.dtype.kind == "c" and not leaf.complex:
        raise Unsupported(f"{leaf.path} of the batched function has shape {array.shape}, expected {leaf.shape}")
    data = array.value if array._memory.live else np.broadcast_to(array.ghost, (rows, *leaf.shape))
    wide = np.array(data, np.complex128 if leaf.complex else np.float64, order="C")
    return wide.reshape(rows, -1).view(np.float64)

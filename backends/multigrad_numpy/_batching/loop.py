"""One call per row of a batch, for whatever has no rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.creation import any_duck
from multigrad_numpy._ducks.duck import DuckArray, ducks
from multigrad_numpy._ducks.memory import Memory
from multigrad_numpy._ducks.refusal import Diverged
from multigrad_numpy._ducks.writing import target


def take_row(tree: Any, row: int) -> Any:
    """What ``tree`` is for one row; arrays are views."""
    kind = type(tree)
    if issubclass(kind, DuckArray):
        if not tree._memory.live:
            return tree.ghost
        return tree.value[row] if tree._scalar else tree.value[row, ...]
    if kind is list or kind is tuple:
        return kind(take_row(item, row) for item in tree)
    if kind is dict:
        return {key: take_row(value, row) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind(*(take_row(item, row) for item in tree))
    if kind is slice:
        return slice(*(take_row(item, row) for item in (tree.start, tree.stop, tree.step)))
    if kind is np.ndarray and tree.dtype == object:
        return np.array([take_row(item, row) for item in tree.ravel()]).reshape(tree.shape)
    return tree


def by_row(cls: type[DuckArray], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``function`` once per row."""
    out = kwargs.get("out")
    for array in out if isinstance(out, tuple) else (out,):
        if array is not None and not target(array)._memory.live:
            array._go_live((args, kwargs))
    rows = next(duck for duck in ducks((args, kwargs)) if duck._memory.live).value.shape[0]
    results = [function(*take_row(args, row), **take_row(kwargs, row)) for row in range(rows)]
    if any_duck(results):
        raise Diverged(f"{getattr(function, '__name__', function)} calls back a function that uses batched values")
    return out if out is not None and not isinstance(out, tuple) else restack(cls, results)


def restack(cls: type[DuckArray], results: list[Any]) -> Any:
    """One result of the rows' results."""
    first = results[0]
    if isinstance(first, (tuple, list)):
        if len({len(r) for r in results}) > 1:
            raise Diverged("the number of results depends on the values")
        parts = [restack(cls, list(part)) for part in zip(*results, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if isinstance(first, (np.ndarray, np.generic, float, complex)):
        if len({np.shape(r) for r in results}) > 1:
            raise Diverged("the shape of a result depends on the values")
        made = cls(Memory(np.stack(results), live=True))
        made._scalar = not isinstance(first, np.ndarray)
        return made
    if any(r is not first and r != first for r in results):
        raise Diverged("a result depends on the values")
    return first

"""Evaluate a plain NumPy function at many points at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy import _batch_products, _batch_rules  # noqa: F401 - they enter the rules
from multigrad_numpy._batched import BatchArray
from multigrad_numpy._creation import any_duck
from multigrad_numpy._duck import lower
from multigrad_numpy._rebind import rebind


def batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays with a leading axis of rows, computed by NumPy itself.

    Arguments that are arrays of inexact dtype carry the rows along their first axis; everything else is the same
    for every row. The result, of whatever structure, has the rows along the first axis of every array in it.

    Raises:
        Diverged: the rows want to go different ways.
        Unsupported: something in the function has no batched form.
    """

    def batched(*args: Any) -> Any:
        rows = next(len(a) for a in _leaves(args) if _carries_rows(a))
        result = rebind(function, BatchArray)(*(_enter(a) for a in args))
        return _leave(result, rows)

    return batched


def _leaves(tree: Any) -> Any:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _leaves(item)
    else:
        yield tree


def _carries_rows(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc" and leaf.ndim > 0


def _map(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, dict):
        return {key: _map(value, change) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [_map(item, change) for item in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return change(tree)


def _enter(tree: Any) -> Any:
    return _map(tree, lambda leaf: BatchArray.of(np.array(leaf)) if _carries_rows(leaf) else leaf)


def _leave(tree: Any, rows: int) -> Any:
    def change(leaf: Any) -> Any:
        if any_duck(leaf):
            leaf = BatchArray.asarray(leaf)
            if leaf._memory.live:
                return np.array(leaf.value)
        plain = np.asarray(lower(leaf))
        return np.repeat(plain[None], rows, axis=0)

    return _map(tree, change)

"""NumPy's functions that only move elements: applied to the ghost and to the elements' numbers, for every kind alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib import stride_tricks

from multigrad_numpy._ducks.duck import DuckArray, is_live, lower

MOVING: list[Callable[..., Any]] = [
    np.array_split,
    np.broadcast_to,
    np.delete,
    np.diagonal,
    np.dsplit,
    np.expand_dims,
    np.flip,
    np.fliplr,
    np.flipud,
    np.hsplit,
    np.linalg.diagonal,
    np.linalg.matrix_transpose,
    np.matrix_transpose,
    np.moveaxis,
    np.permute_dims,
    np.ravel,
    np.repeat,
    np.reshape,
    np.resize,
    np.roll,
    np.rollaxis,
    np.rot90,
    np.split,
    np.squeeze,
    np.swapaxes,
    np.take,
    np.take_along_axis,
    np.tile,
    np.transpose,
    np.unstack,
    np.vsplit,
    stride_tricks.sliding_window_view,
]


def store(out: Any, result: Any) -> Any:
    """Write ``result`` into what the user gave as ``out=``."""
    out = out[0] if isinstance(out, tuple) else out
    if out is None:
        return result
    out[...] = result
    return out


def _mover(function: Callable[..., Any]) -> Callable[..., Any]:
    def move(cls: type[DuckArray], array: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if is_live((args, kwargs)) or not issubclass(type(array), DuckArray):
            return NotImplemented
        return store(out, array.move(function, *lower(args), **lower(kwargs)))

    return move


def _compress(cls: type[DuckArray], condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    if is_live(condition) or not issubclass(type(a), DuckArray):
        return NotImplemented
    return store(out, a.move(lambda v: np.compress(lower(condition), v, axis)))


def _extract(cls: type[DuckArray], condition: Any, arr: Any) -> Any:
    if is_live(condition) or not issubclass(type(arr), DuckArray):
        return NotImplemented
    return arr.move(lambda v: np.extract(lower(condition), v))


def _at_least(function: Callable[..., Any]) -> Callable[..., Any]:
    def widen(cls: type[DuckArray], *arrays: Any) -> Any:
        wide = tuple(a.move(function) if issubclass(type(a), DuckArray) else function(cls.asarray(a)) for a in arrays)
        return wide[0] if len(wide) == 1 else wide

    return widen


def _broadcast_arrays(cls: type[DuckArray], *arrays: Any, subok: bool = False) -> Any:
    arrays = tuple(map(cls.asarray, arrays))
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(np.broadcast_to(a, shape) for a in arrays)


def _diag(cls: type[DuckArray], v: Any, k: int = 0) -> Any:
    v = cls.asarray(v)
    if v.ndim == 2:
        return np.diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    return _diagflat(cls, v, k)


def _diagflat(cls: type[DuckArray], v: Any, k: int = 0) -> Any:
    v = np.ravel(cls.asarray(v))
    n = v.size + abs(k)
    out = cls.plain(np.zeros((n, n), v.dtype))
    rows = np.arange(v.size) + max(-k, 0)
    out[rows, rows + k] = v
    return out


def _triangle(lower_part: bool) -> Callable[..., Any]:
    def cut(cls: type[DuckArray], m: Any, k: int = 0) -> Any:
        m = cls.asarray(m)
        rows, columns = m.shape[-2:]
        below = np.tri(rows, columns, k=k if lower_part else k - 1, dtype=bool)
        return np.where(below if lower_part else ~below, m, np.zeros(1, m.dtype))

    return cut


HANDLERS: dict[Any, Callable[..., Any]] = {function: _mover(function) for function in MOVING} | {
    np.compress: _compress,
    np.extract: _extract,
    np.atleast_1d: _at_least(np.atleast_1d),
    np.atleast_2d: _at_least(np.atleast_2d),
    np.atleast_3d: _at_least(np.atleast_3d),
    np.broadcast_arrays: _broadcast_arrays,
    np.diag: _diag,
    np.diagflat: _diagflat,
    np.tril: _triangle(True),
    np.triu: _triangle(False),
}

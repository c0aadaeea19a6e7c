"""``reduce``, ``accumulate``, ``reduceat`` and ``outer`` of any ufunc, in terms of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.duck import DuckArray, lower
from multigrad_numpy._ducks.movement import store

_REDUCED: dict[np.ufunc, Callable[..., Any]] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
_ACCUMULATED: dict[np.ufunc, Callable[..., Any]] = {np.add: np.cumsum, np.multiply: np.cumprod}


def _reduce(cls: type[DuckArray], ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
            keepdims: bool = False, initial: Any = None, where: Any = True) -> Any:  # fmt: skip
    array = cls.asarray(array)
    named = {k: v for k, v in {"dtype": dtype, "initial": initial}.items() if v is not None}
    if where is not True:
        named["where"] = where
    if ufunc in _REDUCED:
        return store(out, _REDUCED[ufunc](array, axis=axis, keepdims=keepdims, **named))
    if where is not True:
        raise NotImplementedError(f"np.{ufunc.__name__}.reduce with where=")
    axes = tuple(range(array.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    shape = tuple(1 if i in [a % array.ndim for a in axes] else n for i, n in enumerate(array.shape))
    lines = np.moveaxis(array, axes, range(len(axes)))
    lines = np.reshape(lines, (-1, *lines.shape[len(axes) :]))
    result = initial if initial is not None else lines[0]
    for line in lines if initial is not None else lines[1:]:
        result = ufunc(result, line)
    return store(out, np.reshape(result, shape) if keepdims else result)


def _accumulate(
    cls: type[DuckArray], ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None
) -> Any:
    array = cls.asarray(array)
    if ufunc in _ACCUMULATED:
        return store(out, _ACCUMULATED[ufunc](array, axis=axis, dtype=dtype))
    lines = list(np.moveaxis(array, axis, 0))
    for i in range(1, len(lines)):
        lines[i] = ufunc(lines[i - 1], lines[i])
    return store(out, np.stack(lines, axis))


def _reduceat(cls: type[DuckArray], ufunc: np.ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None,
              out: Any = None) -> Any:  # fmt: skip
    lines = np.moveaxis(cls.asarray(array), axis, 0)
    starts = [int(i) for i in lower(indices)]
    ends = [*starts[1:], len(lines)]
    parts = [_reduce(cls, ufunc, lines[i:j]) if i < j else lines[i] for i, j in zip(starts, ends, strict=True)]
    return store(out, np.stack(parts, axis))


def _outer(cls: type[DuckArray], ufunc: np.ufunc, a: Any, b: Any, out: Any = None, **kwargs: Any) -> Any:
    a, b = cls.asarray(a), cls.asarray(b)
    return store(out, ufunc(np.reshape(a, a.shape + (1,) * b.ndim), b, **kwargs))


FOLDING: dict[str, Callable[..., Any]] = {
    "accumulate": _accumulate,
    "outer": _outer,
    "reduce": _reduce,
    "reduceat": _reduceat,
}

"""Rules for sorting, sets and quantiles: the numbers tell what goes where, the elements take their gradient along."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multigrad_numpy._ducks.movement import store
from multigrad_numpy._ducks.refusal import refusal
from multigrad_numpy._rules.numpy import numbers, rule_for
from multigrad_numpy._tracing.traced import TracedArray

_array = TracedArray.asarray


@rule_for(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a = _array(a)
    if axis is None:
        a, axis = np.ravel(a), -1
    return np.take_along_axis(a, np.argsort(numbers(a), axis=axis, kind="stable"), axis)


@rule_for(np.partition)
def _partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    a = _array(a)
    if axis is None:
        a, axis = np.ravel(a), -1
    return np.take_along_axis(a, np.argpartition(numbers(a), kth, axis=axis), axis)


@rule_for(np.sort_complex)
def _sort_complex(a: Any) -> Any:
    return np.sort(_array(a).astype(complex, copy=False))


@rule_for(np.unique)
def _unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
            axis: Any = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:  # fmt: skip
    ar = _array(ar)
    _, index, inverse, counts = np.unique(numbers(ar), True, True, True, axis, equal_nan=equal_nan)
    values = np.ravel(ar)[index] if axis is None else np.take(ar, index, axis)
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    extra = tuple(TracedArray.lift(item) for flag, item in wanted if flag)
    return (values, *extra) if extra else values


@rule_for(np.unique_values)
def _unique_values(x: Any) -> Any:
    return np.unique(x)


@rule_for(np.union1d)
def _union1d(ar1: Any, ar2: Any) -> Any:
    return np.unique(np.concatenate((np.ravel(_array(ar1)), np.ravel(_array(ar2)))))


@rule_for(np.setdiff1d)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    ar1 = np.ravel(_array(ar1)) if assume_unique else np.unique(ar1)
    return ar1[np.isin(numbers(ar1), numbers(_array(ar2)), invert=True)]


@rule_for(np.trim_zeros)
def _trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> Any:
    kept = np.trim_zeros(np.where(numbers(_array(filt)) != 0, np.arange(1, len(filt) + 1), 0), trim)
    if axis is not None or _array(filt).ndim != 1 or not kept.size:
        raise refusal("np.trim_zeros of this array", "cut it by slicing")
    nonzero = np.flatnonzero(numbers(_array(filt)))
    start = nonzero[0] if "f" in trim.lower() else 0
    return filt[start : start + kept.size]


@rule_for(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    options = [_array(c) for c in choices]
    a = np.asarray(numbers(a))
    places = {"raise": a, "wrap": a % len(options), "clip": np.clip(a, 0, len(options) - 1)}[mode]
    shape = np.broadcast_shapes(places.shape, *(c.shape for c in options))
    stacked = np.stack([np.broadcast_to(c, shape) for c in options])
    return store(out, np.take_along_axis(stacked, np.broadcast_to(places, shape)[None], 0)[0])


@rule_for(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    raise IndexError("arrays used as indices must be of integer (or boolean) type")


def _quantile_weights(n: int, q: Any, method: str, weights: Any = None) -> Any:
    """The weights that NumPy gives to the n order statistics: (number of q, n).

    Of steps 0, .., 0, 1, .., 1, which are in order already, the quantile is the sum of the weights from the step on.
    """
    given = {} if weights is None else {"weights": np.broadcast_to(weights[:, None], (n, n))}
    steps = np.tril(np.ones((n, n)))
    sums = np.atleast_2d(np.quantile(steps, q, axis=0, method=method, **given))  # type: ignore[call-overload]
    return sums - np.append(sums[:, 1:], np.zeros((len(sums), 1)), 1)


def _quantile_line(line: Any, q: Any, method: str, weights: Any = None) -> Any:
    order = np.argsort(numbers(line), kind="stable")
    share = _quantile_weights(len(order), q, method, None if weights is None else weights[order])
    used = np.flatnonzero(share.any(0))
    return share[:, used] @ line[order[used]]


@rule_for(np.quantile)
def _quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
              keepdims: bool = False, *, weights: Any = None, skip_nan: bool = False) -> Any:  # fmt: skip
    a, q = _array(a), np.asarray(numbers(_array(q)))
    axes = sorted(i % a.ndim for i in (range(a.ndim) if axis is None else np.atleast_1d(axis)))
    rest = [i for i in range(a.ndim) if i not in axes]
    lines = np.reshape(np.transpose(a, rest + axes), (-1, math.prod(a.shape[i] for i in axes)))
    w = None if weights is None else np.asarray(numbers(_array(weights)))
    if w is not None and w.ndim not in (0, 1) + (a.ndim,):
        raise refusal("np.quantile with these weights", "call it for every line")
    w = None if w is None else w if w.ndim < a.ndim else np.reshape(np.transpose(w, rest + axes), lines.shape)
    results = []
    for k, line in enumerate(lines):
        kept = line[~np.isnan(numbers(line))] if skip_nan else line
        results.append(_quantile_line(kept, q.ravel(), method, w if w is None or w.ndim == 1 else w[k]))
    shape = [1 if i in axes else n for i, n in enumerate(a.shape)] if keepdims else [a.shape[i] for i in rest]
    return store(out, np.reshape(np.stack(results, 1), (*q.shape, *shape))[()])


@rule_for(np.percentile)
def _percentile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return np.quantile(_array(a), np.asarray(numbers(_array(q))) / 100, *args, **kwargs)


@rule_for(np.nanquantile)
def _nanquantile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return _quantile(a, q, *args, skip_nan=True, **kwargs)


@rule_for(np.nanpercentile)
def _nanpercentile(a: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    return _nanquantile(a, np.asarray(numbers(_array(q))) / 100, *args, **kwargs)


@rule_for(np.nanmedian)
def _nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return _nanquantile(a, 0.5, axis, out, keepdims=bool(keepdims))

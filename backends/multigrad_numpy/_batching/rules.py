"""NumPy's functions with the rows of a batch along the first axis. Whatever has no rule runs once per row."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._batching.batched import BatchArray, Rule, align
from multigrad_numpy._ducks.duck import DuckArray, is_live, lower
from multigrad_numpy._ducks.movement import store

RULES: dict[Any, Rule] = BatchArray.rules
_of = BatchArray.of


def _rule(*functions: Any) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(functions, rule))
        return rule

    return enter


def _live_first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the first argument is a live array and nothing else is."""
    return bool(args) and issubclass(type(args[0]), DuckArray) and not is_live((args[1:], kwargs))


def _rows(operands: Any) -> int:
    return next(a for a in operands if is_live(a)).rows  # type: ignore[no-any-return]


def _spread(operand: Any, rows: int) -> Any:
    """The operand's data with rows; a plain one is repeated without copying."""
    if is_live(operand):
        return BatchArray.asarray(operand).value
    plain = np.asarray(lower(operand))
    return np.broadcast_to(plain, (rows, *plain.shape))


# Functions of one array with an axis.

_REDUCTIONS = [
    np.all, np.amax, np.amin, np.any, np.count_nonzero, np.max, np.mean, np.median, np.min, np.nanmax, np.nanmean, np.nanmedian, np.nanmin,
    np.nanprod, np.nanstd, np.nansum, np.nanvar, np.prod, np.ptp, np.std, np.sum, np.var,
]  # fmt: skip
_ONE_AXIS = [np.argmax, np.argmin, np.nanargmax, np.nanargmin]
_FLATTENING = [np.cumsum, np.cumprod, np.nancumsum, np.nancumprod]  # axis None means the flattened array
_ALONG = [
    np.sort, np.argsort, np.partition, np.argpartition, np.diff, np.unwrap, np.trapezoid, np.fft.fft, np.fft.ifft, np.fft.rfft,
    np.fft.irfft, np.fft.hfft, np.fft.ihfft, np.cumulative_sum, np.cumulative_prod, np.linalg.vector_norm,
]  # fmt: skip


def _shifted(axis: Any, ndim: int) -> Any:
    if isinstance(axis, (tuple, list)):
        return tuple(_shifted(a, ndim) for a in axis)
    axis = int(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim + 1


def _with_axis(function: Any, default: Any, whole: Callable[[Any], Any]) -> Rule:
    """The rule of a function with an ``axis``; ``whole`` treats axis None: the array and its axis."""
    parameters = list(inspect.signature(function).parameters)
    place = parameters.index("axis") - 1

    def rule(*args: Any, **kwargs: Any) -> Any:
        if not _live_first(args, {k: v for k, v in kwargs.items() if k != "out"}):
            return NotImplemented
        array, rest = args[0], list(lower(args[1:]))
        if {"prepend", "append"} & kwargs.keys():
            return NotImplemented
        out = kwargs.pop("out", None)
        axis = rest[place] if len(rest) > place else kwargs.pop("axis", default)
        array, axis = whole(array) if axis is None else (array, _shifted(axis, array.ndim))
        if array is None:
            return NotImplemented
        if len(rest) > place:
            rest[place] = axis
        else:
            kwargs["axis"] = axis
        return store(out, _of(function(array.value, *rest, **lower(kwargs))))

    return rule


def _all_axes(array: Any) -> Any:
    return (array, tuple(range(1, array.ndim + 1))) if array.ndim else (None, None)


def _flattened(array: Any) -> Any:
    return (np.ravel(array), 1)


def _flattened_only(array: Any) -> Any:
    return (array, 1) if array.ndim == 1 else (None, None)


for _f in _REDUCTIONS:
    RULES[_f] = _with_axis(_f, None, _all_axes)
for _f in _ONE_AXIS:
    RULES[_f] = _with_axis(_f, None, _flattened_only)
for _f in _FLATTENING:
    RULES[_f] = _with_axis(_f, None, _flattened)
for _f in _ALONG:
    RULES[_f] = _with_axis(
        _f, None if "cumulative" in _f.__name__ or _f is np.linalg.vector_norm else -1, _flattened_only
    )


@_rule("reduce")
def _reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
    if is_live(kwargs) or not issubclass(type(array), DuckArray) or array.ndim == 0:
        return NotImplemented
    axis = tuple(range(1, array.ndim + 1)) if axis is None else _shifted(axis, array.ndim)
    return store(out, _of(ufunc.reduce(array.value, axis, dtype, **lower(kwargs))))


@_rule("accumulate")
def _accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    if not issubclass(type(array), DuckArray):
        return NotImplemented
    return store(out, _of(ufunc.accumulate(array.value, _shifted(axis, array.ndim), dtype)))


# Elementwise functions that are no ufuncs.


def _elementwise(function: Any, operands: int) -> Rule:
    def rule(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        if is_live((args[operands:], kwargs)):
            return NotImplemented
        data = align(BatchArray, args[:operands])
        return store(out, _of(function(*data, *lower(args[operands:]), **lower(kwargs))))

    return rule


for _f, _n in {
    np.angle: 1, np.fix: 1, np.isclose: 2, np.iscomplex: 1, np.isneginf: 1, np.isposinf: 1, np.isreal: 1, np.i0: 1,
    np.nan_to_num: 1, np.round: 1, np.sinc: 1,
}.items():  # fmt: skip
    RULES[_f] = _elementwise(_f, _n)


@_rule(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, **kwargs: Any) -> Any:
    result = _of(np.nan_to_num(BatchArray.asarray(x).value, **lower(kwargs)))
    return result if copy else store(x, result)


@_rule(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    return _of(np.where(*align(BatchArray, (condition, *choices)))) if len(choices) == 2 else NotImplemented


@_rule(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    present = [b for b in (low, high) if b is not None]
    data = align(BatchArray, (a, *present))
    bounds = iter(data[1:])
    ends = [None if b is None else next(bounds) for b in (low, high)]
    return store(out, _of(np.clip(data[0], *ends)) if present else a)


# Joining.


@_rule(np.concatenate)
def _concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, **kwargs: Any) -> Any:
    parts = [BatchArray.asarray(a) for a in arrays]
    if axis is None:
        parts, axis = [np.ravel(p) for p in parts], 0
    if not parts[0].ndim:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    rows = _rows(parts)
    data = [_spread(p, rows) for p in parts]
    return store(out, _of(np.concatenate(data, _shifted(axis, parts[0].ndim), **kwargs)))


@_rule(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, **kwargs: Any) -> Any:
    parts = [BatchArray.asarray(a) for a in arrays]
    rows = _rows(parts)
    return store(out, _of(np.stack([_spread(p, rows) for p in parts], _shifted(axis, parts[0].ndim + 1), **kwargs)))


@_rule(np.vstack)
def _vstack(tup: Any, **kwargs: Any) -> Any:
    return np.concatenate([np.atleast_2d(BatchArray.asarray(a)) for a in tup], 0, **kwargs)


@_rule(np.hstack)
def _hstack(tup: Any, **kwargs: Any) -> Any:
    parts = [np.atleast_1d(BatchArray.asarray(a)) for a in tup]
    return np.concatenate(parts, 0 if parts[0].ndim == 1 else 1, **kwargs)


@_rule(np.column_stack)
def _column_stack(tup: Any) -> Any:
    parts = [BatchArray.asarray(a) for a in tup]
    return np.concatenate([p if p.ndim > 1 else np.reshape(p, (-1, 1)) for p in parts], 1)


@_rule(np.average)
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, **kwargs: Any) -> Any:
    return np.mean(a, axis, **kwargs) if weights is None and not returned else NotImplemented

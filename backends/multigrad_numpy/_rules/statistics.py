"""Rules for statistics, convolution and interpolation."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from multigrad_numpy._ducks.movement import store
from multigrad_numpy._rules.numpy import numbers, rule_for
from multigrad_numpy._tracing.table import TABLE, Lifted, Rule
from multigrad_numpy._tracing.traced import TracedArray

_array = TracedArray.asarray


@rule_for(np.var)
def _var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
         where: Any = True, mean: Any = None, correction: Any = None) -> Any:  # fmt: skip
    a, ddof = _array(a), ddof if correction is None else correction
    if dtype is not None:
        a = a.astype(dtype)
    centre = np.mean(a, axis, keepdims=True, where=where) if mean is None else mean
    deviation = a - centre
    squares = deviation.real**2 + deviation.imag**2 if a.dtype.kind == "c" else deviation * deviation
    total = np.sum(squares, axis, keepdims=keepdims, where=where)
    count = np.sum(np.broadcast_to(where, a.shape), axis, keepdims=keepdims)
    return store(out, total / np.maximum(count - ddof, 0))


@rule_for(np.std)
def _std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
    return store(out, np.sqrt(np.var(a, axis, dtype, None, *args, **kwargs)))


@rule_for(np.nanvar)
def _nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: Any = False, **kwargs: Any
) -> Any:
    a = _array(a)
    there = ~np.isnan(numbers(a)) & kwargs.pop("where", True)
    return np.var(np.where(there, a, 0.0), axis, dtype, out, ddof, keepdims, where=there, **kwargs)


@rule_for(np.nanstd)
def _nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **kwargs: Any) -> Any:
    return store(out, np.sqrt(np.nanvar(a, axis, dtype, None, *args, **kwargs)))


def _convolution(function: Any, same: Any) -> Rule:
    lifted = Lifted(function, same)

    def rule(a: Any, v: Any, mode: Any = None) -> Any:
        modes = {0: "valid", 1: "same", 2: "full", None: "full" if function is np.convolve else "valid"}
        return lifted(a, v, mode=modes.get(mode, mode))

    return rule


TABLE[np.convolve] = _convolution(np.convolve, jnp.convolve)
TABLE[np.correlate] = _convolution(np.correlate, jnp.correlate)


@rule_for(np.bincount)
def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    x = np.asarray(numbers(x))
    if weights is None:
        return np.bincount(x, minlength=minlength)
    out = TracedArray.plain(np.zeros(len(np.bincount(x, minlength=minlength))))
    np.add.at(out, x, _array(weights).astype(float))
    return out


def _interp_periodic(period: float, x: Any, xp: Any, fp: Any) -> tuple[Any, Any, Any]:
    x, xp, fp = x % period, xp % period, _array(fp)
    order = np.argsort(numbers(xp))
    xp, fp = xp[order], fp[order]
    return x, np.concatenate((xp[-1:] - period, xp, xp[:1] + period)), np.concatenate((fp[-1:], fp, fp[:1]))


@rule_for(np.interp)
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = _array(x), _array(xp), _array(fp)
    if period is not None:
        x, xp, fp = _interp_periodic(abs(period), x, xp, fp)
        left = right = None
    low = np.clip(np.searchsorted(numbers(xp), numbers(x), side="right") - 1, 0, max(len(xp) - 2, 0))
    high = np.minimum(low + 1, len(xp) - 1)
    slope = (fp[high] - fp[low]) / (xp[high] - xp[low]) if len(xp) > 1 else 0.0
    inside = fp[low] + slope * (x - xp[low])
    at_end = np.where(numbers(x) == numbers(xp)[-1], fp[-1], inside)
    below = np.where(numbers(x) < numbers(xp)[0], fp[0] if left is None else left, at_end)
    return np.where(numbers(x) > numbers(xp)[-1], fp[-1] if right is None else right, below)[()]

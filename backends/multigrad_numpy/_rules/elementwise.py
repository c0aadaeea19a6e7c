"""Rules for elementwise functions that jax.numpy lacks or computes in another sense, and for those of ``math``."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from multigrad_numpy._ducks.duck import is_live
from multigrad_numpy._ducks.movement import store
from multigrad_numpy._rules.numpy import SINGULAR, numbers, rule_for, steps
from multigrad_numpy._tracing.table import TABLE, Elementwise, Lifted, Rule
from multigrad_numpy._tracing.traced import TracedArray

_array = TracedArray.asarray


@rule_for(np.sign)
def _sign(x: Any, **kwargs: Any) -> Any:
    if _array(x).dtype.kind == "c":
        return Elementwise(np.sign, lambda z: z / jnp.abs(z), lambda a: a == 0)(x, **kwargs)
    return steps(np.sign)(x, **kwargs)


@rule_for(np.arccosh)
def _arccosh(x: Any, **kwargs: Any) -> Any:
    if _array(x).dtype.kind == "c":  # the branches of jnp.arccosh and of its derivative differ
        return Elementwise(np.arccosh, lambda z: jnp.log(z + jnp.sqrt(z + 1) * jnp.sqrt(z - 1)))(x, **kwargs)
    return Elementwise(np.arccosh, jnp.arccosh, SINGULAR[np.arccosh], inside=1.5)(x, **kwargs)


# Numbers rounded to so small a part of their size are what rounding makes of all numbers, and no steps to be seen.
_UNSEEN = 1e-7


@rule_for(np.round, np.around)
def _round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    a = _array(a)
    plain = np.asarray(numbers(a))
    rounded = np.round(plain, decimals)
    seen = 10.0 ** -int(decimals) > _UNSEEN * np.abs(plain)
    return store(out, np.where(seen, rounded, a + (rounded - plain))[()])


@rule_for(np.heaviside)
def _heaviside(x1: Any, x2: Any, **kwargs: Any) -> Any:
    x1 = numbers(x1)
    return np.where(x1 == 0, x2, np.heaviside(x1, 0.0))


@rule_for(np.clip)
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None,
          **kwargs: Any) -> Any:  # fmt: skip
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    result = _array(a)
    if low is not None:
        result = np.maximum(result, low)
    if high is not None:
        result = np.minimum(result, high)
    return store(out, result)


@rule_for(np.modf)
def _modf(x: Any, *out: Any, **kwargs: Any) -> Any:
    whole = np.trunc(x)
    return x - whole, TracedArray.asarray(whole)


@rule_for(np.frexp)
def _frexp(x: Any, *out: Any, **kwargs: Any) -> Any:
    exponent = np.frexp(numbers(x))[1]
    return np.ldexp(x, -exponent), TracedArray.lift(exponent)


@rule_for(np.ldexp)
def _ldexp(x1: Any, x2: Any, **kwargs: Any) -> Any:
    half = numbers(x2) // 2  # in two steps, so that 2**x2 does not overflow
    return x1 * np.exp2(half) * np.exp2(numbers(x2) - half)


@rule_for(np.divmod)
def _divmod(x1: Any, x2: Any, **kwargs: Any) -> Any:
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


@rule_for(np.nextafter)
def _nextafter(x1: Any, x2: Any, **kwargs: Any) -> Any:
    return x1 + (np.nextafter(numbers(x1), numbers(x2)) - numbers(x1))


@rule_for(np.nan_to_num)
def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    plain = numbers(x)
    finite = np.isfinite(plain)
    filled = np.nan_to_num(plain, nan=nan, posinf=posinf, neginf=neginf)
    result = np.where(finite, x, filled)
    return result if copy else store(x, result)


@rule_for(np.real_if_close)
def _real_if_close(a: Any, tol: float = 100) -> Any:
    return _array(a).real if np.isrealobj(np.real_if_close(numbers(a), tol)) else _array(a)


@rule_for(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    condition = np.asarray(numbers(condition), bool)
    if not choices:
        return tuple(map(TracedArray.lift, np.nonzero(condition)))
    dtype = np.result_type(*(c if isinstance(c, (int, float, complex)) and not isinstance(c, np.generic) and not is_live(c)
                             else _array(c).dtype for c in choices))  # fmt: skip
    x, y = (_array(c).astype(dtype, copy=False) for c in choices)
    return Lifted(np.where, jnp.where)(condition, x, y)


def _math_names() -> dict[Any, Any]:
    same = "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees exp exp2 expm1 fabs fmod log10 log1p log2 radians sin sinh sqrt tan tanh ceil floor trunc ldexp nextafter isnan isfinite isinf isclose frexp modf"
    return {getattr(math, name): getattr(np, name) for name in same.split() if hasattr(math, name)} | {
        math.pow: np.power
    }


def _math_call(function: Any) -> Rule:
    return lambda *args, **kwargs: function(*args, **kwargs)


TABLE.update({key: _math_call(value) for key, value in _math_names().items()})
TABLE[math.log] = lambda x, base=None: np.log(x) if base is None else np.log(x) / np.log(base)
TABLE[math.hypot] = lambda *xs: np.sqrt(sum(x * x for x in xs))
TABLE[math.dist] = lambda p, q: np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))
TABLE[np.fromiter] = lambda iter, dtype, count=-1, **kwargs: np.stack(
    list(iter)[: None if count < 0 else count]
).astype(dtype)
TABLE[math.fsum] = lambda xs: np.sum(np.stack(list(xs)))
TABLE[math.prod] = lambda xs, start=1: np.prod(np.stack(list(xs))) * start


def _whole(step: Rule) -> Rule:
    return lambda x: step(numbers(x))


TABLE.update({step: _whole(step) for step in (math.floor, math.ceil, math.trunc)})

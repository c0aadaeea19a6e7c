"""Rules for the functions of ``numpy`` and ``numpy.fft``.

Three sorts: those that jax.numpy has under the same name, with the same meaning; those that are constant but for jumps,
which NumPy computes from the numbers; and those written out here because jax.numpy lacks them or differs.
A function with no rule at all is run by NumPy's own Python code on traced arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad_numpy._duck import DuckArray, ducks, is_live
from multigrad_numpy._movement import store
from multigrad_numpy._refusal import refusal
from multigrad_numpy._table import TABLE, Elementwise, Lifted, Rule
from multigrad_numpy._traced import TracedArray

# Constant but for jumps: their derivative is 0 wherever they have one.
_UFUNC_STEPS = (
    "ceil equal floor floor_divide greater greater_equal isfinite isinf isnan less less_equal logical_and logical_not "
    "logical_or logical_xor not_equal rint signbit spacing trunc"
).split()
_STEPS = (
    "all allclose any argmax argmin argpartition argsort argwhere array2string array_equal array_equiv array_repr array_str "
    "count_nonzero diag_indices_from digitize fix flatnonzero iscomplex isclose isin isneginf isposinf isreal lexsort "
    "min_scalar_type nanargmax nanargmin nonzero round searchsorted tril_indices_from triu_indices_from isfortran typename "
    "array_equal format_float_positional format_float_scientific mintypecode"
).split()

# jax.numpy has these too, but NumPy's own code (or a rule below) agrees better with NumPy.
_NOT_JAX = frozenset(
    "apply_along_axis apply_over_axes average block choose clip convolve copy correlate cov corrcoef ediff1d gradient histogram "
    "histogram2d histogram_bin_edges histogramdd intersect1d ix_ matrix_rank meshgrid nanstd nanvar pad piecewise poly polyadd "
    "polyder polydiv polyfit polyint polymul polysub polyval putmask ravel_multi_index roots select setdiff1d setxor1d sort sort_complex "
    "std trapezoid trim_zeros union1d unique unique_all unique_counts unique_inverse unique_values unwrap var "
    "nanmedian vander bincount partition nanpercentile nanquantile insert append real_if_close vectorize frompyfunc fromfunction "
    "ldexp frexp modf divmod nextafter unpackbits packbits sign heaviside nan_to_num".split()
)

_SINGULAR: dict[np.ufunc, Rule] = {
    np.arccos: lambda a: np.abs(a) == 1,
    np.arccosh: lambda a: a == 1,
    np.arcsin: lambda a: np.abs(a) == 1,
    np.arctan2: lambda a, b: (a == 0) & (b == 0),
    np.arctanh: lambda a: np.abs(a) == 1,
    np.cbrt: lambda a: a == 0,
    np.divide: lambda a, b: b == 0,
    np.float_power: lambda a, b: (a == 0) & (np.real(b) < 1) & (b != 0),
    np.hypot: lambda a, b: (a == 0) & (b == 0),
    np.log: lambda a: a == 0,
    np.log10: lambda a: a == 0,
    np.log1p: lambda a: a == -1,
    np.log2: lambda a: a == 0,
    np.power: lambda a, b: (a == 0) & (np.real(b) < 1) & (b != 0),
    np.reciprocal: lambda a: a == 0,
    np.sqrt: lambda a: a == 0,
}


def steps(function: Callable[..., Any]) -> Rule:
    """The rule of a function that is constant but for jumps: NumPy's own, on the numbers."""

    def rule(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        name = getattr(function, "__name__", "this")
        result = function(*_numbers(args, name), **_numbers(kwargs, name))
        return store(out, TracedArray.lift(result))

    return rule


def _numbers(tree: Any, name: str) -> Any:
    if issubclass(type(tree), DuckArray):
        return tree._agreed(lambda value: value[()] if tree._scalar else value, name)
    if isinstance(tree, (list, tuple)):
        parts = [_numbers(item, name) for item in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {key: _numbers(value, name) for key, value in tree.items()}
    return tree


def numbers(array: Any) -> Any:
    """The numbers of an array, without their gradient."""
    return _numbers(array, "this")


def _enter_same_names() -> None:
    for space, ours in ((np, jnp), (np.linalg, jnp.linalg), (np.fft, jnp.fft)):
        for name in dir(space):
            function, same = getattr(space, name), getattr(ours, name, None)
            if name.startswith("_") or not callable(same) or isinstance(function, type) or not callable(function):
                continue
            if name in _NOT_JAX and space is np or function in TABLE:
                continue
            if isinstance(function, np.ufunc) and function.signature is None:
                TABLE[function] = Elementwise(function, same, _SINGULAR.get(function))
            else:
                TABLE[function] = Lifted(function, same)


for _f in [getattr(np, name) for name in _UFUNC_STEPS + _STEPS]:
    TABLE[_f] = steps(_f)
_enter_same_names()
TABLE[np.absolute] = Elementwise(np.absolute, jnp.abs, lambda a: (a == 0) & np.iscomplexobj(a))


def rule_for(*functions: Any) -> Callable[[Rule], Rule]:
    """Enter a rule into the table."""

    def enter(rule: Rule) -> Rule:
        TABLE.update(dict.fromkeys(functions, rule))
        return rule

    return enter


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
    return Elementwise(np.arccosh, jnp.arccosh, _SINGULAR[np.arccosh], inside=1.5)(x, **kwargs)


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
        result = np.maximum(result, low)  # type: ignore[assignment]
    if high is not None:
        result = np.minimum(result, high)  # type: ignore[assignment]
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


# Order. What is moved where is told by the numbers; the elements themselves are moved with their gradient.


@rule_for(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    a = _array(a)
    if axis is None:
        a, axis = np.ravel(a), -1  # type: ignore[call-overload]
    return np.take_along_axis(a, np.argsort(numbers(a), axis=axis, kind="stable"), axis)


@rule_for(np.partition)
def _partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Any:
    a = _array(a)
    if axis is None:
        a, axis = np.ravel(a), -1  # type: ignore[call-overload]
    return np.take_along_axis(a, np.argpartition(numbers(a), kth, axis=axis), axis)


@rule_for(np.sort_complex)
def _sort_complex(a: Any) -> Any:
    return np.sort(_array(a).astype(complex, copy=False))


@rule_for(np.unique)
def _unique(ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
            axis: Any = None, *, equal_nan: bool = True, sorted: bool = True) -> Any:  # fmt: skip
    ar = _array(ar)
    _, index, inverse, counts = np.unique(numbers(ar), True, True, True, axis, equal_nan=equal_nan)
    values = np.ravel(ar)[index] if axis is None else np.take(ar, index, axis)  # type: ignore[call-overload]
    wanted = ((return_index, index), (return_inverse, inverse), (return_counts, counts))
    extra = tuple(TracedArray.lift(item) for flag, item in wanted if flag)
    return (values, *extra) if extra else values


@rule_for(np.unique_values)
def _unique_values(x: Any) -> Any:
    return np.unique(x)


@rule_for(np.union1d)
def _union1d(ar1: Any, ar2: Any) -> Any:
    return np.unique(np.concatenate((np.ravel(_array(ar1)), np.ravel(_array(ar2)))))  # type: ignore[call-overload]


@rule_for(np.setdiff1d)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    ar1 = np.ravel(_array(ar1)) if assume_unique else np.unique(ar1)  # type: ignore[call-overload]
    return ar1[np.isin(numbers(ar1), numbers(_array(ar2)), invert=True)]


@rule_for(np.trim_zeros)
def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
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


@rule_for(np.real_if_close)
def _real_if_close(a: Any, tol: float = 100) -> Any:
    return _array(a).real if np.isrealobj(np.real_if_close(numbers(a), tol)) else _array(a)


@rule_for(np.take)
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    raise IndexError("arrays used as indices must be of integer (or boolean) type")


# Statistics.


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
    np.add.at(out, x, _array(weights).astype(float))  # type: ignore[call-overload]
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


@rule_for(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arr, values = _array(arr), _array(values)
    if axis is None:
        arr, axis = np.ravel(arr), 0  # type: ignore[call-overload]
    several = np.ndim(obj) == 0 and not isinstance(obj, slice) and values.ndim == arr.ndim
    marks = np.full(values.shape[0 if arr.ndim == 1 else axis] if several else 1, -1)
    mixed = np.insert(np.arange(arr.shape[axis]), obj, marks if several else -1)
    kept, new = np.flatnonzero(mixed >= 0), np.flatnonzero(mixed < 0)
    out = TracedArray.plain(
        np.zeros([len(mixed) if i == axis % arr.ndim else n for i, n in enumerate(arr.shape)], arr.dtype)
    )
    front = np.moveaxis(out, axis, 0)
    front[kept] = np.moveaxis(arr, axis, 0)
    if np.ndim(obj) == 0 and not isinstance(obj, slice):  # then the values' first axis is the axis of insertion
        values = np.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)  # type: ignore[call-overload]
        values = np.moveaxis(values, 0, axis) if arr.ndim > 1 else values
    else:
        order = np.argsort(np.argsort(np.atleast_1d(np.arange(arr.shape[axis] + 1)[obj]), kind="stable"), kind="stable")
        new = new[order]
    spread = np.broadcast_to(values, [len(new) if i == axis % arr.ndim else n for i, n in enumerate(arr.shape)])
    front[new] = np.moveaxis(spread, axis, 0)
    return out


@rule_for(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    arrays = [np.ravel(_array(x)) for x in xi]  # type: ignore[call-overload]
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[0], places[1] = 1, 0
    open_grid = [
        np.reshape(a, [-1 if i == k else 1 for i in range(len(arrays))]) for a, k in zip(arrays, places, strict=True)
    ]
    return tuple(open_grid) if sparse else tuple(a.copy() for a in np.broadcast_arrays(*open_grid))


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


@rule_for(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ends = [np.ravel(_array(e)) for e in (to_begin, to_end) if e is not None]  # type: ignore[call-overload]
    inner = np.diff(np.ravel(_array(ary)))  # type: ignore[call-overload]
    return np.concatenate((*ends[: to_begin is not None], inner, *ends[to_begin is not None :]))


@rule_for(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    arr, values = _array(arr), _array(values)
    if axis is None:
        arr, values, axis = np.ravel(arr), np.ravel(values), 0  # type: ignore[call-overload]
    return np.concatenate((arr, values), axis=axis)


@rule_for(np.matmul)
def _matmul(x1: Any, x2: Any, /, out: Any = None, **kwargs: Any) -> Any:
    x1, x2 = _array(x1), _array(x2)
    dtype = np.result_type(x1.dtype, x2.dtype)
    return store(out, Lifted(np.matmul, jnp.matmul)(x1.astype(dtype, copy=False), x2.astype(dtype, copy=False)))


def _common(function: Any, same: Any) -> Rule:
    """Joining arrays in the dtype that NumPy finds for them, not JAX."""
    lifted = Lifted(function, same)

    def rule(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        arrays = [_array(a) for a in arrays]
        dtype = kwargs.pop("dtype", None) or np.result_type(*(a.dtype for a in arrays))
        kwargs.pop("casting", None)
        return lifted([a.astype(dtype, copy=False) for a in arrays], *args, **kwargs)

    return rule


for _f, _same in {np.concatenate: jnp.concatenate, np.stack: jnp.stack, np.hstack: jnp.hstack, np.vstack: jnp.vstack,
                  np.dstack: jnp.dstack, np.column_stack: jnp.column_stack}.items():  # fmt: skip
    TABLE[_f] = _common(_f, _same)


@rule_for(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    condition = np.asarray(numbers(condition), bool)
    if not choices:
        return tuple(map(TracedArray.lift, np.nonzero(condition)))
    dtype = np.result_type(*(c if isinstance(c, (int, float, complex)) and not isinstance(c, np.generic) and not is_live(c)
                             else _array(c).dtype for c in choices))  # fmt: skip
    x, y = (_array(c).astype(dtype, copy=False) for c in choices)
    return Lifted(np.where, jnp.where)(condition, x, y)


# Fourier transforms over more axes than JAX takes at once.


def _fft_over_axes(one: Any) -> Rule:
    def rule(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
        a = _array(a)
        if axes is None:
            axes = tuple(range(a.ndim)) if s is None else tuple(range(-len(s), 0))
        sizes: Any = (None,) * len(axes) if s is None else s
        for n, axis in zip(reversed(tuple(sizes)), reversed(tuple(axes)), strict=True):
            a = one(a, n=n, axis=axis, norm=norm)
        return store(out, a)

    return rule


TABLE[np.fft.fftn] = _fft_over_axes(np.fft.fft)
TABLE[np.fft.ifftn] = _fft_over_axes(np.fft.ifft)

# What would drop a gradient, or cannot be traced, is refused by name.
REFUSED: dict[Any, tuple[str, str]] = {
    np.histogram: ("np.histogram would drop the gradient of its floating-point result", "count with np.digitize"),
    np.histogram2d: ("np.histogram2d would drop the gradient of its floating-point result", "count with np.digitize"),
    np.histogramdd: ("np.histogramdd would drop the gradient of its floating-point result", "count with np.digitize"),
    np.histogram_bin_edges: ("np.histogram_bin_edges has no derivative rule", "compute the edges with np.linspace"),
    np.nested_iters: ("np.nested_iters is not traceable", "loop over the indices"),
    np.packbits: ("np.packbits of a traced array", "convert to integers first"),
    np.unpackbits: ("np.unpackbits of a traced array", "convert to integers first"),
}


def _refuses(what: str, remedy: str) -> Rule:
    def rule(*args: Any, **kwargs: Any) -> Any:
        raise refusal(what, remedy)

    return rule


for _f, _texts in REFUSED.items():
    TABLE[_f] = _refuses(*_texts)


def _math_names() -> dict[Any, Any]:
    same = "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees exp exp2 expm1 fabs fmod log10 log1p log2 radians sin sinh sqrt tan tanh ceil floor trunc ldexp nextafter isnan isfinite isinf isclose frexp modf"  # noqa: E501
    return {getattr(math, name): getattr(np, name) for name in same.split() if hasattr(math, name)} | {
        math.pow: np.power
    }


def _math_call(function: Any) -> Rule:
    return lambda *args, **kwargs: function(*args, **kwargs)


TABLE.update({key: _math_call(value) for key, value in _math_names().items()})
TABLE[math.log] = lambda x, base=None: np.log(x) if base is None else np.log(x) / np.log(base)
TABLE[math.hypot] = lambda *xs: np.sqrt(sum(x * x for x in xs))
TABLE[math.dist] = lambda p, q: np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))
TABLE[math.fsum] = lambda xs: np.sum(np.stack(list(xs)))
TABLE[math.prod] = lambda xs, start=1: np.prod(np.stack(list(xs))) * start
TABLE[math.floor] = TABLE[math.ceil] = TABLE[math.trunc] = None  # type: ignore[assignment]
for _f in (math.floor, math.ceil, math.trunc):
    TABLE[_f] = (lambda step: lambda x: step(numbers(x)))(_f)

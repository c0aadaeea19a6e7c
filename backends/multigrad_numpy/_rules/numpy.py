"""Rules for the functions of ``numpy`` and ``numpy.fft``.

Three sorts: those that jax.numpy has under the same name, with the same meaning; those that are constant but for jumps,
which NumPy computes from the numbers; and those written out here because jax.numpy lacks them or differs.
A function with no rule at all is run by NumPy's own Python code on traced arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from multigrad_numpy._ducks.conversions import rounded_text
from multigrad_numpy._ducks.duck import DuckArray, ducks
from multigrad_numpy._ducks.memory import together
from multigrad_numpy._ducks.movement import store
from multigrad_numpy._ducks.refusal import refusal
from multigrad_numpy._tracing.table import TABLE, Elementwise, Lifted, Rule
from multigrad_numpy._tracing.traced import TracedArray

# Constant but for jumps: their derivative is 0 wherever they have one.
_UFUNC_STEPS = [
    "ceil",
    "equal",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "rint",
    "signbit",
    "spacing",
    "trunc",
]
_STEPS = [
    "all",
    "allclose",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "array_equal",
    "array_equiv",
    "count_nonzero",
    "diag_indices_from",
    "digitize",
    "fix",
    "flatnonzero",
    "iscomplex",
    "isclose",
    "isin",
    "isneginf",
    "isposinf",
    "isreal",
    "lexsort",
    "min_scalar_type",
    "nanargmax",
    "nanargmin",
    "nonzero",
    "searchsorted",
    "tril_indices_from",
    "triu_indices_from",
    "isfortran",
    "typename",
    "array_equal",
    "mintypecode",
]

# jax.numpy has these too, but NumPy's own code (or a rule below) agrees better with NumPy.
_NOT_JAX = frozenset(
    [
        "apply_along_axis",
        "apply_over_axes",
        "arange",
        "average",
        "block",
        "choose",
        "clip",
        "convolve",
        "copy",
        "correlate",
        "cov",
        "corrcoef",
        "ediff1d",
        "gradient",
        "histogram",
        "histogram2d",
        "histogram_bin_edges",
        "histogramdd",
        "intersect1d",
        "ix_",
        "matrix_rank",
        "meshgrid",
        "nanstd",
        "nanvar",
        "pad",
        "piecewise",
        "poly",
        "polyadd",
        "polyder",
        "polydiv",
        "polyfit",
        "polyint",
        "polymul",
        "polysub",
        "polyval",
        "putmask",
        "ravel_multi_index",
        "roots",
        "round",
        "select",
        "setdiff1d",
        "setxor1d",
        "sort",
        "sort_complex",
        "std",
        "trapezoid",
        "trim_zeros",
        "union1d",
        "unique",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
        "unwrap",
        "var",
        "nanmedian",
        "vander",
        "bincount",
        "partition",
        "nanpercentile",
        "nanquantile",
        "insert",
        "append",
        "real_if_close",
        "vectorize",
        "frompyfunc",
        "fromfunction",
        "ldexp",
        "frexp",
        "modf",
        "divmod",
        "nextafter",
        "unpackbits",
        "packbits",
        "sign",
        "heaviside",
        "nan_to_num",
    ]
)

SINGULAR: dict[np.ufunc, Rule] = {
    np.arccos: lambda a: np.abs(a) == 1,
    np.arccosh: lambda a: a == 1,
    np.arcsin: lambda a: np.abs(a) == 1,
    np.arctan2: lambda a, b: (a == 0) & (b == 0),
    np.arctanh: lambda a: np.abs(a) == 1,
    np.cbrt: lambda a: a == 0,
    np.divide: lambda a, b: b == 0,
    np.float_power: lambda a, b: (a == 0) & (np.real(b) < 1),
    np.hypot: lambda a, b: (a == 0) & (b == 0),
    np.log: lambda a: a == 0,
    np.log10: lambda a: a == 0,
    np.log1p: lambda a: a == -1,
    np.log2: lambda a: a == 0,
    np.power: lambda a, b: (a == 0) & (np.real(b) < 1),
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


def as_text(function: Callable[..., Any]) -> Rule:
    """The rule of a function that writes numbers as text, which may be read back."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        name = function.__name__
        text = function(*_numbers(args, name), **_numbers(kwargs, name))
        return rounded_text(text, f"np.{name}()", together(duck._memory.origin for duck in ducks((args, kwargs))))

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
                TABLE[function] = Elementwise(function, same, SINGULAR.get(function))
            else:
                TABLE[function] = Lifted(function, same)


for _f in [getattr(np, name) for name in _UFUNC_STEPS + _STEPS]:
    TABLE[_f] = steps(_f)
for _text in (np.array2string, np.array_repr, np.array_str, np.format_float_positional, np.format_float_scientific):
    TABLE[_text] = as_text(_text)
_enter_same_names()
# At the kink 0 lies between the slopes, so that (x + |x|) / 2 and the stable softplus have their derivatives.
for _magnitude in (np.absolute, np.fabs):
    TABLE[_magnitude] = Elementwise(_magnitude, jnp.abs, lambda a: a == 0)


def rule_for(*functions: Any) -> Callable[[Rule], Rule]:
    """Enter a rule into the table."""

    def enter(rule: Rule) -> Rule:
        TABLE.update(dict.fromkeys(functions, rule))
        return rule

    return enter


_array = TracedArray.asarray


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


for _f, (_what, _remedy) in REFUSED.items():
    TABLE[_f] = _refuses(_what, _remedy)

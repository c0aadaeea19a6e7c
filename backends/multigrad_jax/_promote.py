"""Evaluate a JAX function written for float32, float16 or bfloat16 in float64, its code left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from multigrad.errors import first_line
from multigrad.precision import DOUBLE
from multigrad_jax import _control_flow, _custom_derivatives
from multigrad_jax._interpret import Interpreter
from multigrad_jax._trees import epsilon
from multigrad_jax._wide import is_low, type_of, wide_type

SINGLE = 2.0**-23

Function = Callable[..., list[Any]]
Regime = Literal["double", "promoted", "x64"]


@dataclass(frozen=True)
class Promotion:
    """A function in the user's arithmetic, and in float64.

    Both are the user's own function where it could not be traced; else jaxprs, traced once and compiled as a whole,
    which takes less time than to compile every operation for both.

    Attributes:
        written: the function as the user runs it.
        double: to be called with float64 arrays in JAX's 64-bit mode.
        regime: ``"double"``: there is no low precision in the user's function; ``"promoted"``: ``double`` evaluates its
            jaxpr in float64; ``"x64"``: ``double`` is the user's own, of which low-precision parts may remain.
        why: for ``"x64"``, what kept it from being promoted.
        low: the names of the low-precision dtypes in it.
        eps: the coarsest unit roundoff in it.
    """

    written: Function
    double: Function
    regime: Regime
    why: str = ""
    low: tuple[str, ...] = ()
    eps: float = DOUBLE


def promote(fn: Function, parts: Sequence[Any], x64: bool) -> Promotion:
    """Make ``fn`` compute in double.

    Args:
        fn: takes arrays, returns a list of arrays.
        parts: its arguments at the user's own dtypes.
        x64: the mode that the user runs it in.
    """
    try:
        with jax.enable_x64(x64):
            closed = jax.make_jaxpr(fn)(*parts)
    except Exception as error:  # noqa: BLE001, of any type: it is the user's code that meets a tracer
        return Promotion(fn, fn, "x64", f"JAX can't trace it: {_first_line(error)}")
    low = tuple(sorted({str(aval.dtype) for aval in _avals(closed) if is_low(aval)}))
    if not low:
        return Promotion(fn, fn, "double")
    eps = max(map(_roundoff, equations(closed.jaxpr)), default=DOUBLE)
    interpreter = Interpreter({**_control_flow.RULES, **_custom_derivatives.RULES}, x64)
    types = [wide_type(aval) for aval in closed.in_avals]
    try:
        with jax.enable_x64(True):
            wide = jax.make_jaxpr(lambda *values: interpreter.wide_call(closed, *values))(*types)
    except Exception as error:  # noqa: BLE001, whatever a release of JAX makes of it
        return Promotion(_function(closed, eps), fn, "x64", f"{type(error).__name__}: {_first_line(error)}", low, eps)
    with jax.enable_x64(True):
        lacking = _untraceable_gradient(wide)
    if lacking:
        with jax.enable_x64(x64):
            traced = not _untraceable_gradient(closed)
            if traced or _has_gradient(fn, parts):
                return Promotion(_function(closed, eps) if traced else fn, fn, "x64", lacking, low, eps)
    return Promotion(_function(closed, eps), _function(wide, DOUBLE), "promoted", "", low, eps)


@dataclass(frozen=True)
class Traced:
    """A jaxpr as a function of arrays.

    Attributes:
        closed: the jaxpr.
        compiled: whether it is compiled as a whole, and not operation by operation.
    """

    closed: ClosedJaxpr
    compiled: bool

    @cached_property
    def _call(self) -> Function:
        function: Function = jaxpr_as_fun(self.closed)
        return jax.jit(function) if self.compiled else function

    def __call__(self, *parts: Any) -> list[Any]:
        avals = self.closed.in_avals
        return self._call(*(jnp.asarray(part, aval.dtype) for part, aval in zip(parts, avals, strict=True)))


def _function(closed: ClosedJaxpr, eps: float) -> Traced:
    # Compiled as a whole, intermediate values coarser than float32 are kept in float32, which hides what they lose.
    return Traced(closed, compiled=eps <= SINGLE)


def _has_gradient(fn: Function, parts: Sequence[Any]) -> bool:
    """Whether the user's own call has one, where its jaxpr has none: a value that is a constant in it may be none here."""
    with suppress(Exception):
        out, pull = jax.vjp(fn, *parts)
        pull(out)
        return True
    return False


def _untraceable_gradient(closed: ClosedJaxpr) -> str:
    """What JAX says when the gradient is traced; empty if it can be."""

    def gradient(*values: Any) -> Any:
        out, pull = jax.vjp(jaxpr_as_fun(closed), *values)
        return pull(out)

    try:
        jax.eval_shape(gradient, *map(type_of, closed.in_avals))
    except Exception as error:  # noqa: BLE001, of any type: JAX's, or the user's
        return f"{type(error).__name__}: {_first_line(error)}"
    return ""


def equations(jaxpr: Any) -> Iterator[Any]:
    """All equations, those of inner jaxprs too."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in _inner(tuple(eqn.params.values())):
            yield from equations(inner)


def _inner(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _inner(value)
        elif hasattr(value, "eqns"):
            yield getattr(value, "jaxpr", value)


def _avals(closed: ClosedJaxpr) -> Iterator[Any]:
    yield from (*closed.in_avals, *closed.out_avals)
    for eqn in equations(closed.jaxpr):
        yield from (atom.aval for atom in (*eqn.invars, *eqn.outvars))


def _roundoff(eqn: Any) -> float:
    """Of what an equation computes."""
    if eqn.primitive.name == "reduce_precision":
        return float(2.0 ** -eqn.params["mantissa_bits"])
    return max((epsilon(out.aval.dtype) for out in eqn.outvars if is_low(out.aval)), default=DOUBLE)


def _first_line(error: Exception) -> str:
    return first_line(error)[:200]

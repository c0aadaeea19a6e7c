"""Evaluate a JAX function written for float32, float16 or bfloat16 in float64, its code left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr

from multigrad_jax import _control_flow, _custom_derivatives
from multigrad_jax._interpret import Interpreter
from multigrad_jax._wide import is_low, wide_type, widen

Function = Callable[..., list[Any]]
Regime = Literal["double", "promoted", "x64"]


@dataclass(frozen=True)
class Promotion:
    """A function to be called with float64 arrays in JAX's 64-bit mode.

    Attributes:
        call: the function.
        regime: ``"double"``: the user's own function, there is no low precision in it; ``"promoted"``: its jaxpr
            evaluated in double; ``"x64"``: the user's own function, of which low-precision parts may remain.
        why: for ``"x64"``, what kept it from being promoted.
        low: the names of the low-precision dtypes in it.
    """

    call: Function
    regime: Regime
    why: str = ""
    low: tuple[str, ...] = ()


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
        return Promotion(fn, "x64", f"JAX can't trace it: {_first_line(error)}")
    low = tuple(sorted({str(aval.dtype) for aval in _avals(closed) if is_low(aval)}))
    if not low:
        return Promotion(fn, "double")
    interpreter = Interpreter({**_control_flow.RULES, **_custom_derivatives.RULES}, x64)

    def call(*wide: Any) -> list[Any]:
        return interpreter.wide_call(closed, *(widen(jnp.asarray(value)) for value in wide))

    why = _fault(call, fn, parts, x64)
    return Promotion(fn, "x64", why, low) if why else Promotion(call, "promoted", "", low)


def _fault(call: Function, fn: Function, parts: Sequence[Any], x64: bool) -> str:
    """What goes wrong when ``call`` and its gradient are traced; empty if nothing does, or nothing new."""
    types = [wide_type(jax.typeof(part)) for part in parts]
    with jax.enable_x64(True):
        fault = _untraceable(call, types)
        gradient_fault = fault or _untraceable(_gradient(call), types)
    if gradient_fault and not fault:
        with jax.enable_x64(x64):  # a function without a reverse mode has none in double either
            return "" if _untraceable(_gradient(fn), parts) else gradient_fault
    return fault


def _gradient(fn: Function) -> Callable[..., Any]:
    def gradient(*values: Any) -> Any:
        out, pull = jax.vjp(fn, *values)
        return pull(out)

    return gradient


def _untraceable(fn: Callable[..., Any], types: Sequence[Any]) -> str:
    """What JAX says when ``fn`` is traced; empty if it can be."""
    try:
        jax.eval_shape(fn, *types)
    except Exception as error:  # noqa: BLE001, of any type: JAX's, or the user's
        return f"{type(error).__name__}: {_first_line(error)}"
    return ""


def _avals(closed: ClosedJaxpr) -> Iterator[Any]:
    jaxpr = closed.jaxpr
    yield from (var.aval for var in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars))
    for eqn in jaxpr.eqns:
        yield from (var.aval for var in (*eqn.invars, *eqn.outvars))
        for inner in _inner(tuple(eqn.params.values())):
            yield from _avals(inner)


def _inner(values: Sequence[Any]) -> Iterator[ClosedJaxpr]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _inner(value)
        elif hasattr(value, "eqns"):
            yield ClosedJaxpr(value, ()) if not hasattr(value, "consts") else value


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]

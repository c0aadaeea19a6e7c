"""custom_jvp and custom_vjp under promotion: the user's own rules, evaluated in double.

The rules sit in parameters that are private to JAX and were renamed between its releases. Where they are not found,
``UnknownLayout`` is raised, and the promotion falls back to JAX's 64-bit mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from multigrad_jax._interpret import Interpreter, Rule, Values
from multigrad_jax._wide import type_of, widen

_FLOAT0 = jax.dtypes.float0


class UnknownLayout(Exception):
    """This release of JAX keeps the rules of custom derivatives in a place that is not known here."""


@contextmanager
def _layout(primitive: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, AttributeError, IndexError, AssertionError) as error:
        raise UnknownLayout(f"the rules of {primitive} are not where they are expected: {error!r}") from error


def _inexact(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _zero_tangent(value: Any) -> Any:
    return jnp.zeros_like(value) if _inexact(value) else np.zeros(value.shape, _FLOAT0)


def _jvp_rule(
    interpreter: Interpreter, params: Mapping[str, Any], operands: Values
) -> tuple[Callable[..., Values], Sequence[bool]]:
    """The rule on operands and those of their tangents that exist; and which of its tangents are zero."""
    with _layout("custom_jvp"), jax.enable_x64(interpreter.x64):
        zeros = [not _inexact(value) for value in operands]
        jaxpr, consts, out_zeros = params["jvp_jaxpr_fun"].call_wrapped(*zeros)
    return lambda *values: interpreter.evaluate(jaxpr, consts, values), out_zeros


def _custom_jvp(interpreter: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    with _layout("custom_jvp"):
        primal, start = eqn.params["call_jaxpr"], eqn.params["num_consts"]

    @jax.custom_jvp
    def function(*operands: Any) -> Values:
        return interpreter.wide_call(primal, *operands)

    @function.defjvp
    def _(operands: Values, tangents: Values) -> tuple[Values, Values]:
        rule, out_zeros = _jvp_rule(interpreter, eqn.params, operands[start:])
        moving = [t for t in tangents[start:] if t.dtype != _FLOAT0]
        out = [widen(value) for value in rule(*operands[start:], *moving)]
        primals, given = out[: len(out_zeros)], iter(out[len(out_zeros) :])
        return primals, [_zero_tangent(p) if zero else next(given) for p, zero in zip(primals, out_zeros, strict=True)]

    out: Sequence[Any] = function(*values)
    return out


class _VjpRule:
    """The two halves of a custom_vjp's rule, taken out of an equation and evaluated in double."""

    def __init__(self, interpreter: Interpreter, params: Mapping[str, Any]) -> None:
        self._interpreter = interpreter
        with _layout("custom_vjp"):
            self.primal: ClosedJaxpr = params["call_jaxpr"]
            self._start: int = params["num_consts"]
            self._bwd = params["bwd"]
            self._in = [var.aval for var in self.primal.jaxpr.invars]
            self._out = [var.aval for var in self.primal.jaxpr.outvars]
            with jax.enable_x64(interpreter.x64):
                nonzero = [True] * (len(self._in) - self._start)
                jaxpr, consts = params["fwd_jaxpr_thunk"].call_wrapped(*nonzero)
            self._fwd = ClosedJaxpr(jaxpr, consts)
            # Which residuals are operands handed on: their numbers; None for one that fwd made.
            self._handed_on: Sequence[int | None] = params["out_trees"]()[2]

    def forward(self, *operands: Any) -> tuple[Values, tuple[Values, Sequence[Any]]]:
        out = self._interpreter.wide_call(self._fwd, *operands[self._start :])
        made = len(out) - len(self._out)
        return out[made:], (out[:made], operands)

    def backward(self, residuals: tuple[Values, Sequence[Any]], cotangents: Values) -> tuple[Any, ...]:
        made, operands = residuals
        closed = self._traced_bwd
        moving = [c for c in cotangents if c.dtype != _FLOAT0]
        given = iter(self._interpreter.wide_call(closed, *self._all_residuals(made, operands), *moving))
        rule = [next(given) if _inexact(value) else _zero_tangent(value) for value in operands[self._start :]]
        return (*map(_zero_tangent, operands[: self._start]), *rule)

    def _all_residuals(self, made: Sequence[Any], operands: Sequence[Any]) -> Values:
        fresh = iter(made)
        return [next(fresh) if number is None else operands[number] for number in self._handed_on]

    @cached_property
    def _traced_bwd(self) -> ClosedJaxpr:
        """``bwd`` is Python: it is traced at the dtypes it was written for. Only gradients of inexact operands."""
        made = self._fwd.jaxpr.outvars[: len(self._fwd.jaxpr.outvars) - len(self._out)]
        residuals = self._all_residuals([var.aval for var in made], self._in)
        wanted = self._in[self._start :]

        def bwd(*given: Any) -> Values:
            cotangents = iter(given[len(residuals) :])
            full = [next(cotangents) if _inexact(out) else np.zeros(out.shape, _FLOAT0) for out in self._out]
            found = self._bwd.call_wrapped(*given[: len(residuals)], *full)
            return [_instantiated(g, aval) for g, aval in zip(found, wanted, strict=True) if _inexact(aval)]

        types = [type_of(aval) for aval in (*residuals, *filter(_inexact, self._out))]
        with jax.enable_x64(self._interpreter.x64):
            return jax.make_jaxpr(bwd)(*types)


def _instantiated(gradient: Any, aval: Any) -> Any:
    """A gradient that the rule left out is zero."""
    return gradient if hasattr(gradient, "dtype") else jnp.zeros(aval.shape, aval.dtype)


def _custom_vjp(interpreter: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    rule = _VjpRule(interpreter, eqn.params)

    @jax.custom_vjp
    def function(*operands: Any) -> Values:
        return interpreter.wide_call(rule.primal, *operands)

    function.defvjp(rule.forward, rule.backward)
    out: Sequence[Any] = function(*values)
    return out


RULES: Mapping[str, Rule] = {"custom_jvp_call": _custom_jvp, "custom_vjp_call": _custom_vjp}

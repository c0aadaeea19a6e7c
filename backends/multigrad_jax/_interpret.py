"""Evaluate a jaxpr that was traced in low precision with float64 operands.

An equation is evaluated in double if one of its operands is double already. The others (random bits, masks,
constants) do not depend on the inputs: they are evaluated exactly as the user gets them, and cast up on use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from multigrad_jax._wide import WIDE, as_typed, is_double, wide_type, widen

Values = list[Any]
Rule = Callable[["Interpreter", Any, Values], Sequence[Any]]


@dataclass(frozen=True)
class Interpreter:
    """Evaluates jaxprs; to be used in JAX's 64-bit mode.

    Attributes:
        rules: how an equation with a double operand is evaluated, by the name of its primitive; the others are bound
            anew with double operands and parameters.
        x64: the user's own mode, in which their derivative rules are traced.
    """

    rules: Mapping[str, Rule]
    x64: bool

    def call(self, closed: ClosedJaxpr, *values: Any) -> Values:
        """Evaluate a closed jaxpr; results that depend on no double operand are as low as the user's."""
        return self.evaluate(closed.jaxpr, closed.consts, values)

    def wide_call(self, closed: ClosedJaxpr, *values: Any) -> Values:
        """The same with all results in double."""
        return [widen(value) for value in self.call(closed, *values)]

    def evaluate(self, jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Any]) -> Values:
        """Evaluate the equations one by one."""
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        known.update(zip(jaxpr.invars, values, strict=True))

        def read(atom: Any) -> Any:
            return as_typed(atom.val, atom.aval) if isinstance(atom, Literal) else known[atom]

        for eqn in jaxpr.eqns:
            known.update(zip(eqn.outvars, self._apply(eqn, [read(atom) for atom in eqn.invars]), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _apply(self, eqn: Any, values: Values) -> Sequence[Any]:
        name = eqn.primitive.name
        inner = next((eqn.params[key] for key in _CALLED.get(name, ()) if key in eqn.params), None)
        hot = any(map(is_double, values))
        if inner is not None and not (hot and name in self.rules):
            return self.call(_closed(inner), *values)
        if not hot:
            return _bind(eqn, values, eqn.params)
        return self.rules.get(name, _double)(self, eqn, [widen(value) for value in values])

    def retrace(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The jaxpr of the same function on double arguments."""
        types = [wide_type(aval) for aval in closed.in_avals]
        return jax.make_jaxpr(lambda *values: self.wide_call(closed, *values))(*types)

    def param(self, value: Any) -> Any:
        """A parameter of an equation as it has to be for double operands."""
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return WIDE.get(np.dtype(value), value)
        if isinstance(value, ClosedJaxpr):
            return self.retrace(value)
        if isinstance(value, Jaxpr):
            return self.retrace(ClosedJaxpr(value, ())).jaxpr
        if isinstance(value, (jax.lax.DotAlgorithm, jax.lax.DotAlgorithmPreset)):
            return None  # it names the precision to compute in
        if isinstance(value, tuple):
            items = [self.param(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value


def _closed(jaxpr: Any) -> ClosedJaxpr:
    return jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, ())


def _bind(eqn: Any, values: Values, params: Mapping[str, Any]) -> Sequence[Any]:
    out = eqn.primitive.bind(*values, **params)
    results: Sequence[Any] = out if eqn.primitive.multiple_results else [out]
    return results


def _double(interpreter: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    """The same primitive on double operands; what has no double or means something else there is done as it was."""
    try:
        out = _bind(eqn, values, {name: interpreter.param(value) for name, value in eqn.params.items()})
    except (TypeError, ValueError, NotImplementedError):
        return low(interpreter, eqn, values)
    same = all(value.shape == var.aval.shape for value, var in zip(out, eqn.outvars, strict=True))
    return out if same else low(interpreter, eqn, values)


def low(_: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    """As the user's own run does it."""
    return _bind(eqn, [as_typed(v, a.aval) for v, a in zip(values, eqn.invars, strict=True)], eqn.params)


# Primitives that call a jaxpr, and the parameters that it may be found under. Written out in the place of the call.
_CALLED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("jit", "pjit", "closed_call", "core_call"), ("jaxpr", "call_jaxpr")),
    **dict.fromkeys(("remat", "remat2", "checkpoint", "core_closed_call"), ("jaxpr", "call_jaxpr")),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call"), ("call_jaxpr",)),
    "custom_vmap_call": ("call",),
}

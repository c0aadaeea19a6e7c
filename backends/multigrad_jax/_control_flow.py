"""Loops and branches of a jaxpr, evaluated in double; and what is left in low precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from multigrad_jax._interpret import Interpreter, Rule, Values, low


def _scan(interpreter: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    params = eqn.params
    start, carries = params["num_consts"], params["num_carry"]
    consts, init, xs = values[:start], values[start : start + carries], values[start + carries :]

    def body(carry: Values, x: Values) -> tuple[Values, Values]:
        out = interpreter.wide_call(params["jaxpr"], *consts, *carry, *x)
        return out[:carries], out[carries:]

    carry, ys = jax.lax.scan(
        body, init, xs, length=params["length"], reverse=params["reverse"], unroll=params["unroll"]
    )
    return [*carry, *ys]


def _while(interpreter: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    params = eqn.params
    tests, bodies = params["cond_nconsts"], params["body_nconsts"]
    test_consts, body_consts, init = values[:tests], values[tests : tests + bodies], values[tests + bodies :]
    out: Values = jax.lax.while_loop(
        lambda state: interpreter.call(params["cond_jaxpr"], *test_consts, *state)[0],
        lambda state: interpreter.wide_call(params["body_jaxpr"], *body_consts, *state),
        init,
    )
    return out


def _cond(interpreter: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    index, *operands = values

    def taken(branch: ClosedJaxpr) -> Callable[..., Values]:
        return lambda *given: interpreter.wide_call(branch, *given)

    out: Values = jax.lax.switch(index, [taken(branch) for branch in eqn.params["branches"]], *operands)
    return out


def _keep(_: Interpreter, eqn: Any, values: Values) -> Sequence[Any]:
    """A rounding to low precision is a cast by another name."""
    return values


RULES: Mapping[str, Rule] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "reduce_precision": _keep,
    # What is outside JAX is compiled for the dtypes that it was written for.
    **dict.fromkeys(("pure_callback", "io_callback", "debug_callback", "ffi_call", "pallas_call"), low),
}

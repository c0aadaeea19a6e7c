"""What a function's jaxpr tells before it is run: how much work it is, and where gradients are not those of values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from multigrad.findings import Finding
from multigrad_jax._wide import is_low

_JAX = os.path.dirname(jax.__file__)

# Run eagerly, these are compiled by themselves, and anew at each call if their body is a function made in the call,
# as a lambda is. That takes 60 ms or more.
LOOPS = frozenset({"cond", "scan", "while"})
LOOP_DISPATCHES = 4000
# Seconds of a call that is not the first, above which it is taken to compile something anew: a jitted function, say,
# whose static argument is a lambda.
RECOMPILED = 0.03

REPARAMETERISED = Finding(
    "convention",
    "JAX differentiates a sample of the gamma distribution implicitly (gamma, beta, dirichlet, t, chisquare, ...): right for "
    "the mean over many keys, but not the derivative of this sample for this key, which the numerical side gives",
    remedy="check the function of the samples, with these as an input",
)


@dataclass(frozen=True)
class Work:
    """The size of one evaluation.

    Attributes:
        dispatches: eager work, counted in calls of a compiled operation (about 15 us each, or 10^4 entries written).
        widest: entries of the largest array inside.
        findings: the gradients that the user's code stops, and those that are right in the mean alone.
        low: whether something in it is of low precision.
        searches: whether a loop in it ends by a test of values: far from the inputs it need not end at all.
        captures: whether it closes over NumPy arrays.
    """

    dispatches: float
    widest: int
    findings: tuple[Finding, ...]
    low: bool
    searches: bool
    captures: bool


def work_of(function: Callable[..., Any], parts: Sequence[Any], seconds: float = 0.0) -> Work:
    """Trace ``function`` once (0.1 ms per operation or so) and measure it; ``seconds`` is what an eager call took.

    Raises:
        Exception: whatever the function raises on a tracer; it can't be vectorised then.
    """
    closed = jax.make_jaxpr(function)(*parts)
    jaxpr = closed.jaxpr
    equations = list(_equations(jaxpr))
    sizes = [(_size(eqn), times) for eqn, times in equations]
    dispatches = len(jaxpr.eqns) + LOOP_DISPATCHES * _loops(jaxpr) + sum(size * times for size, times in sizes) / 1e4
    return Work(
        dispatches=max(dispatches, LOOP_DISPATCHES) if seconds > RECOMPILED else dispatches,
        widest=max((size for size, _ in sizes), default=1),
        findings=tuple(dict.fromkeys(finding for eqn, _ in equations for finding in _foreign(eqn))),
        low=any(is_low(out.aval) for eqn, _ in equations for out in eqn.outvars),
        searches=any(eqn.primitive.name == "while" for eqn, _ in equations),
        captures=any(isinstance(constant, np.ndarray) for constant in _constants(closed)),
    )


def _equations(jaxpr: Any, times: int = 1) -> Iterator[tuple[Any, int]]:
    for eqn in _open(jaxpr).eqns:
        yield eqn, times
        for inner in _inner_jaxprs(eqn.params):
            yield from _equations(inner, times * eqn.params.get("length", 1))


def _loops(jaxpr: Any) -> int:
    """How many loops and branches are run eagerly: not those inside one another, nor inside what is compiled."""
    jaxpr = _open(jaxpr)
    below = (inner for eqn in jaxpr.eqns if eqn.primitive.name != "jit" for inner in _inner_jaxprs(eqn.params))
    here = sum(eqn.primitive.name in LOOPS for eqn in jaxpr.eqns)
    return here or sum(_loops(inner) for inner in below)


def _constants(closed: Any) -> Iterator[Any]:
    yield from getattr(closed, "consts", ())
    for eqn in _open(closed).eqns:
        for inner in _inner_jaxprs(eqn.params):
            yield from _constants(inner)


def _inner_jaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if hasattr(_open(each), "eqns"):
                yield each


def _open(jaxpr: Any) -> Any:
    """The jaxpr without its constants, if it has any."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def _size(eqn: Any) -> int:
    return sum(int(np.prod(getattr(out.aval, "shape", ()))) for out in eqn.outvars)


def _foreign(eqn: Any) -> tuple[Finding, ...]:
    return (REPARAMETERISED,) if eqn.primitive.name == "random_gamma" else _stopped(eqn)


def _stopped(eqn: Any) -> tuple[Finding, ...]:
    """Report a ``stop_gradient``, unless JAX's own code is the one that stops (``logsumexp`` stops its maximum)."""
    frames = eqn.source_info.traceback.frames if eqn.source_info.traceback else []
    called = next((i for i, frame in enumerate(frames) if frame.function_name == "stop_gradient"), None)
    if eqn.primitive.name != "stop_gradient" or called is None or len(frames) < called + 2:
        return ()
    caller = frames[called + 1]
    if caller.file_name.startswith(_JAX):
        return ()
    return (
        Finding(
            "stop_gradient",
            "the gradient is stopped here: jax.lax.stop_gradient",
            where=f"{os.path.basename(caller.file_name)}:{caller.line_num}, {caller.function_name}",
            remedy="the derivative then differs from the function's own; intended, or left behind?",
        ),
    )

"""In which arithmetic the function is evaluated: float64 wherever that is the same function, else as it is written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multigrad import precision, residual
from multigrad.backends import Array
from multigrad.batches import Batched
from multigrad.errors import first_line
from multigrad.findings import Finding
from multigrad.precision import DOUBLE, Sample
from multigrad_jax._evaluation import Evaluation
from multigrad_jax._promote import promote
from multigrad_jax._rows import Rows
from multigrad_jax._trees import epsilon
from multigrad_jax._wide import WIDE

# What compiling may change by another rounding, relative to the largest entry.
MISCOMPILED = 1e-6
REMEDY = "look for astype, dtype= and host callbacks"

Settled = tuple[Evaluation, tuple[float, float], tuple[Finding, ...]]


def as_it_is(written: Evaluation) -> Settled:
    """Leave it at the user's own precision; returns what ``settle`` does."""
    eps = max(epsilon(leaf.dtype) for leaf in written.arguments.leaves)
    return written, (eps, eps), ()


def settle(written: Evaluation, seed: int) -> Settled:
    """Decide it at the point.

    Args:
        written: the evaluation as the user's own call does it.
        seed: of the points and combinations that are tried.

    Returns:
        The evaluation to use; the unit roundoff of its arithmetic and of that which the function is written for; and
        what was seen.
    """
    original, arguments = written, written.arguments
    with written.mode():  # outside of it a float64 array would be made a float32 one
        own = arguments.own(arguments.x)
    promotion = promote(written.function, own, written.x64)
    leaves = {leaf.dtype for leaf in (*arguments.leaves, *written.results.leaves)}
    low = sorted({dtype for dtype in leaves | set(promotion.low) if epsilon(dtype) > DOUBLE})
    if not low:
        return written, (DOUBLE, DOUBLE), ()
    eps = max(promotion.eps, *map(epsilon, low))
    written, wide = replace(written, function=promotion.written), written.widened(promotion.double)
    u = precision.cotangent(sum(leaf.size for leaf in written.results.leaves), seed)
    points, as_written = precision.sampled(
        lambda point: _sample(written.at(point), u),
        [arguments.x, *(_rounded(written, point) for point in precision.neighbours(arguments.x, eps, seed))],
    )
    if as_written[0].gradient is None and _sample(original, u).gradient is not None:
        # A rule may close over what the function computes: its own trace is then at an end when the rule is called.
        return original, (eps, eps), (precision.as_written(low, eps, "JAX cannot differentiate a trace of it"),)
    try:
        doubled = [_sample(wide.at(point), u, with_gradient=as_written[0].gradient is not None) for point in points]
    except Exception as error:  # noqa: BLE001, of any type: it is the user's code that meets float64
        return original, (eps, eps), (precision.as_written(low, eps, f"in float64 it raises {_named(error)}"),)
    seen = precision.examine(as_written, doubled, eps, arguments.leaves, written.results.leaves)
    if seen.fault:
        return (
            original,
            (eps, eps),
            (precision.as_written(low, eps, f"its values in float64 are other ones: {seen.fault}"),),
        )
    if seen.identical and all(epsilon(dtype) <= DOUBLE for dtype in leaves):
        return original, (DOUBLE, DOUBLE), ()
    noise = residual.foreign_noise(_values(wide), arguments.x, seed)
    how = f" by JAX's 64-bit mode alone, since {promotion.why}" if promotion.why else ""
    note = residual.in_double(low, how, noise, REMEDY)
    return wide, (residual.residual_eps(noise), eps), (*seen.findings, note)


def unsettle(evaluation: Evaluation, seed: int, written: float) -> tuple[Finding, ...]:
    """Look for arithmetic of the roundoff ``written`` in what seems to be float64; what is to be said if it is there."""
    if not residual.has_steps(_values(evaluation), evaluation.arguments.x, written, seed):
        return ()
    names = [str(dtype) for dtype in WIDE if epsilon(str(dtype)) == written]
    return (residual.partly_coarse(names[:1], "", written, REMEDY),)


def miscompiled(compiled: Evaluation, eager: Evaluation, seed: int) -> tuple[Finding, ...]:
    """What is to be said if the function compiled as a whole has other values or derivatives than its operations have.

    XLA 0.10 does so to arrays that are updated by a part of themselves, on a CPU.
    """
    u, v = (
        precision.cotangent(sum(leaf.size for leaf in leaves), seed)
        for leaves in (compiled.results.leaves, compiled.arguments.leaves)
    )
    try:
        ours, theirs = (_seen(evaluation, u, v) for evaluation in (compiled, eager))
    except Exception:  # noqa: BLE001 - there may be no such mode; what is wrong the check itself reports
        return ()
    for what, one, other in zip(
        ("value", "derivative by reverse mode", "derivative by forward mode"), ours, theirs, strict=True
    ):
        size = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
        apart = np.max(np.abs(one - other), initial=0.0, where=np.isfinite(one - other))
        if apart > MISCOMPILED * size:
            evidence = f"compiled as a whole, as by jax.jit, its {what} is off by {apart / size:.2g} of its size"
            remedy = "the operations one by one are what was checked here; under jit the compiler is at fault"
            return (Finding("compiler", evidence, remedy=remedy),)
    return ()


def _seen(evaluation: Evaluation, u: Array, v: Array) -> tuple[Array, Array, Array]:
    with evaluation.mode():
        value = evaluation.plain(evaluation.arguments.x)
        derivative = evaluation.autodiff(value, [])
        return value, derivative.vjp(u[None])[0], derivative.jvp(v[None])[0]


def is_double(written: Evaluation) -> bool:
    """Whether all is in float64: inputs, outputs, and what the trace shows that was made already."""
    low = written.work is None or written.work.low
    return not low and all(
        epsilon(leaf.dtype) <= DOUBLE for leaf in (*written.arguments.leaves, *written.results.leaves)
    )


def _values(evaluation: Evaluation) -> Batched:
    return Batched(Rows(evaluation), sum(leaf.size for leaf in evaluation.results.leaves))


def _sample(evaluation: Evaluation, u: Array, with_gradient: bool | None = None) -> Sample:
    """One sample; its gradient is wanted, or not wanted, or, for None, taken if there is one."""
    with evaluation.mode():
        value = evaluation.plain(evaluation.arguments.x)
        if with_gradient is False:
            return Sample(value, None)
        try:
            return Sample(value, evaluation.autodiff(value, []).vjp(u[None])[0])
        except Exception:
            if with_gradient:
                raise
            return Sample(value, None)  # the core meets the exception again, and reports it


def _rounded(written: Evaluation, row: Array) -> Array:
    """The nearest point that the user's dtypes can hold."""
    return written.arguments.at(row).x


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"

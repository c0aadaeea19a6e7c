"""Naming: which differences between two sides are conventions, and what the others look like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from multigrad._comparison.verdict import Codes, Status
from multigrad._differences.directions import Mask
from multigrad.backends import Array
from multigrad.batches import Batched
from multigrad.consistency.agreement import JITTERS, Claim, spans
from multigrad.consistency.conventions import Convention, Difference, in_reference_shape, phases, recognise
from multigrad.consistency.sides import DOUBLE, Side, roundoff
from multigrad.consistency.slips import diagnose
from multigrad.findings import Finding

NEARBY = 6
# Rounding of values by two algorithms, at most; and the part of a difference that whatever explains it may leave over.
COARSE = 1e-9
PART = 1e-2
# Sums in low precision that differ by so many units in the last place were not added up in the same way.
ACCUMULATED = 32


def differences(a: Side, b: Side, status: Codes) -> Iterator[tuple[int, Difference]]:
    """The output leaves in which two sides differ by value, each with its number among the common ones."""
    inputs = list(in_reference_shape(a.f.x[a.columns], a.inputs))
    ours, theirs = (list(in_reference_shape(side.values, side.outputs)) for side in (a, b))
    for k, span in enumerate(spans(a.outputs)):
        if status[span].max(initial=0) > Status.OK:
            yield k, Difference(ours[k], theirs[k], inputs, _tolerance(a, b, span))


def _tolerance(a: Side, b: Side, span: slice) -> float:
    """The relative difference that counts as none: a small part of what there is to explain, and rounding at least."""
    x, y = a.values[span], b.values[span]
    size = max(float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y))), np.finfo(float).tiny)
    gap = np.abs(x - y)
    part = PART * float(np.max(gap, initial=0.0, where=np.isfinite(gap))) / size
    unit = 64 * max(a.precision, b.precision)
    noise = (a.noise + b.noise)[span]
    measured = JITTERS * float(np.max(noise, initial=0.0, where=np.isfinite(noise))) / size
    return min(max(unit, measured, part or COARSE), max(unit, COARSE))


def set_phases(side: Side, lead: Side, status: Codes) -> list[Convention]:
    """Find the output leaves of ``side`` that are the lead's but for signs or phases that are free; set the signs."""
    found = []
    signs = np.ones(side.rows.size)
    for k, difference in differences(side, lead, status):
        factors = phases(difference)
        if factors is None:
            continue
        pair, span = side.outputs[k], spans(side.outputs)[k]
        flat = np.ravel(factors)
        real = np.where(np.abs(flat.imag) <= 1e-6, np.sign(flat.real), np.nan)
        signs[span] = np.repeat(real, 2) if pair.leaf.complex else real
        rest = "" if np.isfinite(real).all() else ", and their derivatives are not compared"
        evidence = f"the vectors are the same but for factors of modulus 1, which are free{rest}"
        found.append(Convention("phase", pair.reference.path, (side.name, lead.name), evidence))
    side.signs = signs
    return found


def name_values(side: Side, other: Side, status: Codes) -> tuple[list[Convention], list[Finding]]:
    """Name what the differences in value of ``side`` have the form of: conventions, or slips."""
    conventions, slips = [], []
    for k, difference in differences(side, other, status):
        path = side.outputs[k].reference.path
        known = recognise(difference)
        if known is None and agree_nearby(side, other):
            known = ("jump", "they agree all around the inputs: the function jumps there, and its value is a choice")
        if known is not None:
            conventions.append(Convention(known[0], path, (side.name, other.name), known[1]))
        elif words := diagnose(difference):
            slips.append(Finding("diagnosis", f"{side.name} as compared with {other.name}: {words}", path))
    return conventions, slips


def accumulation(a: Side, b: Side) -> list[Convention]:
    """Note where two sides that agree in float64 have accumulated other rounding errors in low precision."""
    found = []
    at = 0
    for pair, other in zip(a.outputs, b.outputs, strict=True):
        span = slice(at, at + pair.leaf.size)
        at = span.stop
        x, y = a.as_written[span], b.as_written[span]
        gap = np.abs(x - y) / np.maximum(np.max(np.abs(y), initial=0.0), 1e-300)
        eps = max(roundoff(pair.leaf.dtype), roundoff(other.leaf.dtype))
        k = int(np.argmax(gap)) if gap.size else 0
        if gap.size and eps > DOUBLE and gap[k] > ACCUMULATED * eps:
            evidence = (
                f"at {pair.reference.place(pair.reference.start + k)} {a.name} gives {x[k]:.9g} and {b.name} {y[k]:.9g} "
                f"in {pair.leaf.dtype}, {gap[k] / eps:.0f} units in the last place; in float64 they agree"
            )
            found.append(Convention("float32_accumulation", pair.reference.path, (a.name, b.name), evidence))
    return found


def agree_nearby(a: Side, b: Side) -> bool:
    """Whether two sides agree at points all around the inputs, which they do not at the inputs."""
    rng = np.random.default_rng(0)
    x = a.f.x[a.columns]
    step = max(1e-6, a.f.eps**0.5, b.f.eps**0.5) * np.maximum(np.abs(x), 1.0)
    points = x + step * rng.uniform(0.5, 1.0, (NEARBY, x.size)) * rng.choice([-1.0, 1.0], (NEARBY, x.size))
    with np.errstate(all="ignore"):
        ours, theirs = (_at(side, points) for side in (a, b))
    finite = np.isfinite([a.values, b.values]).all() and np.isfinite(ours).all()
    return bool(finite and np.allclose(ours, theirs, rtol=64 * max(a.precision, b.precision), atol=0))


def _at(side: Side, points: Array) -> Array:
    X = np.repeat(side.f.x[None], len(points), axis=0)
    X[:, side.columns] = points
    return Batched(side.f, side.f.repeats.shape[1])(X)[:, side.rows] * side.signs


def name_kinks(a: Side, b: Side, one: Claim, other: Claim, chosen: Mask) -> list[Convention]:
    """Name the choices of derivatives at kinks, one for each output and input leaf."""
    found = []
    for output, rows in zip(a.outputs, spans(a.outputs), strict=True):
        for leaf, columns in zip(a.inputs, spans(a.inputs), strict=True):
            where = np.argwhere(chosen[rows, columns])
            if len(where):
                i, j = (int(k) for k in where[0] + [rows.start, columns.start])
                place = f"{output.reference.path} by {leaf.reference.path}"
                evidence = _choices(a, b, one.jacobian[i, j], other.jacobian[i, j], len(where))
                found.append(Convention(_kind(a, one, other, chosen, i, columns), place, (a.name, b.name), evidence))
    return found


def name_stopped(side: Side, names: Sequence[str], claim: Claim) -> list[Convention]:
    """Say where the derivative of ``side``, and of all of ``names``, is not that of the values."""
    found = []
    for output, rows in zip(side.outputs, spans(side.outputs), strict=True):
        for leaf, columns in zip(side.inputs, spans(side.inputs), strict=True):
            where = np.argwhere(claim.status[rows, columns] == Status.MISMATCH)
            if len(where):
                i, j = (int(k) for k in where[0] + [rows.start, columns.start])
                evidence = (
                    f"by {' and '.join(names)} {leaf.reference.place(leaf.reference.start + j - columns.start)} has the "
                    f"derivative {claim.jacobian[i, j]:.6g}, by the values {claim.numeric[i, j]:.6g} ({_count(len(where))}): "
                    "a gradient is stopped, or it is wrong"
                )
                place = f"{output.reference.path} by {leaf.reference.path}"
                found.append(Convention("stop_gradient", place, (names[0], names[-1]), evidence))
    return found


def _choices(a: Side, b: Side, x: float, y: float, count: int) -> str:
    return (
        f"there is no derivative here: {a.name} chooses {x:.6g}, {b.name} {y:.6g}, and both are legal ({_count(count)})"
    )


def _count(count: int) -> str:
    return f"{count} such {'entry' if count == 1 else 'entries'}"


def _kind(side: Side, one: Claim, other: Claim, chosen: Mask, i: int, columns: slice) -> str:
    """Tell a tie (equal inputs compete in one output) from a kink of one input, and from no gradient at all."""
    picked = np.flatnonzero(chosen[i, columns])
    if np.isnan(one.jacobian[i, columns][picked]).any() or np.isnan(other.jacobian[i, columns][picked]).any():
        return "undefined_gradient"
    competing = side.f.x[side.columns][columns][picked]
    return "tie" if len(picked) > 1 and np.ptp(competing) == 0 else "kink"

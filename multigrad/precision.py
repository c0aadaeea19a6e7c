"""How far results in low precision may be from those in float64, and what it means if they are farther.

An adapter that evaluates low-precision code in float64 shows with this that it evaluates the same function, and that
nothing is wrong with the low-precision run itself. How much rounding explains is measured: both are evaluated at
the point and at neighbours a few ulp away, where rounding errors differ and anything else stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from multigrad._comparison.verdict import Rules
from multigrad.backends import Array, Leaf, place
from multigrad.findings import Finding

DOUBLE = 2.0**-52
SINGLE = 2.0**-23
# Arithmetic coarser than this does not show an error of a percent.
COARSE = 2.0**-12
NEIGHBOURS = 3
# An outlier among so few samples is 2.3 standard deviations away from their mean: one flipped branch is no fault.
SPREADS = 10.0
VALUE_ULPS = 20.0
# Numbers below the smallest normal one are rounded as it is: of float32, whose exponents most types share, and of others.
SMALLEST, SMALLEST_OF = 2.0**-126, {"float16": 2.0**-14, "complex32": 2.0**-14}


@dataclass(frozen=True)
class Sample:
    """The function at one point, in one arithmetic.

    Attributes:
        value: shape (m,).
        gradient: of one combination of the outputs, shape (n,); None where there is no reverse mode.
    """

    value: Array
    gradient: Array | None


@dataclass(frozen=True)
class Examination:
    """Low precision and float64 side by side.

    Attributes:
        identical: whether they are the same but for the rounding of float64: no low precision is at work.
        fault: how their values differ by more than rounding, so that they are not the same function; empty if not.
        findings: what is wrong with the low-precision run: ``precision``.
    """

    identical: bool
    fault: str
    findings: tuple[Finding, ...]


def cotangent(m: int, seed: int) -> Array:
    """The combination of m outputs whose gradients are compared, shape (m,)."""
    rng = np.random.default_rng(seed)
    signed: Array = rng.choice([-1.0, 1.0], m) * rng.uniform(0.5, 1.0, m)
    return signed


def neighbours(x: Array, eps: float, seed: int) -> list[Array]:
    """Some points a few units of roundoff ``eps`` away from ``x``, each of shape (n,)."""
    rng = np.random.default_rng(seed)
    return [x + 2 * eps * x * rng.choice([-1.0, 1.0], x.shape) for _ in range(NEIGHBOURS)]


def sampled(take: Callable[[Array], Sample], points: Sequence[Array]) -> tuple[list[Array], list[Sample]]:
    """Sample the function as it is written; what it refuses among the neighbours of the first point is left out.

    Returns:
        The points that are left, and a sample for each.
    """
    taken = [(points[0], take(points[0]))]
    for point in points[1:]:
        with suppress(Exception):
            taken.append((point, take(point)))
    return [point for point, _ in taken], [sample for _, sample in taken]


def examine(
    low: Sequence[Sample], double: Sequence[Sample], eps: float, inputs: Sequence[Leaf], outputs: Sequence[Leaf]
) -> Examination:
    """Compare samples in low precision, of unit roundoff ``eps``, with those in float64 at the same points."""
    values = np.array([s.value for s in low]), np.array([s.value for s in double])
    overflown = np.isfinite(values[1][0]) & ~np.isfinite(values[0][0])
    findings = [_overflow("the value", k, values, outputs) for k in np.flatnonzero(overflown)[:1]]
    fault = ""
    for leaf in outputs:
        k = _outlier(*values, leaf, VALUE_ULPS * eps)
        if k is not None and not overflown[k]:
            fault = f"{leaf.place(k)} is {values[1][0, k]:.9g} in float64 and {values[0][0, k]:.9g} as you run it"
            break
    gradients = _gradients(low), _gradients(double)
    if gradients[0] is not None and gradients[1] is not None and not fault:
        findings += _gradient_findings(gradients[0], gradients[1], eps, inputs, bool(findings))
    return Examination(_identical(*values) and _identical(*gradients), fault, tuple(findings))


def as_written(names: Sequence[str], eps: float, why: str) -> Finding:
    """What is to be said where the function is evaluated in its own arithmetic, of unit roundoff ``eps``.

    That is an error where errors of a percent would pass unseen: such a check is no proof.
    """
    return Finding(
        "promotion" if eps <= COARSE else "precision",
        f"evaluated in {', '.join(names)} as it is written, since {why}; "
        f"errors of the gradient below {visible(eps):.1g} of its size cannot be seen",
        remedy="make the function run in float64, or pass float64 inputs",
    )


def visible(eps: float) -> float:
    """The least relative error of a gradient that shows in arithmetic of unit roundoff ``eps``."""
    return Rules.for_eps(eps, None, 0.0).rtol


def gradient_rtol(eps: float) -> float:
    """How much of a leaf's largest entry a gradient in arithmetic of unit roundoff ``eps`` may lose."""
    return max(1e-3, 8 * eps)


def _gradients(samples: Sequence[Sample]) -> Array | None:
    found = [s.gradient for s in samples]
    return None if any(g is None for g in found) else np.array(found)


def _outlier(low: Array, double: Array, leaf: Leaf, rtol: float) -> int | None:
    """The place of the leaf's entry that differs most at the first point, if rounding does not explain it."""
    if not leaf.size:
        return None
    with np.errstate(all="ignore"):
        difference = low[:, leaf.slice] - double[:, leaf.slice]
        spread = np.std(difference, axis=0)
        largest = np.max(np.abs(double[0, leaf.slice]), initial=0.0, where=np.isfinite(double[0, leaf.slice]))
        largest = max(float(largest), SMALLEST_OF.get(leaf.dtype, SMALLEST))
        allowed = rtol * largest + SPREADS * np.max(spread, initial=0.0, where=np.isfinite(spread))
        same = (low[0] == double[0]) | np.isnan(low[0]) & np.isnan(double[0])
        excess = np.where(same[leaf.slice], 0.0, np.nan_to_num(np.abs(difference[0]), nan=np.inf) - allowed)
    k = int(np.argmax(excess))
    return leaf.start + k if excess[k] > 0 else None


def _gradient_findings(
    low: Array, double: Array, eps: float, inputs: Sequence[Leaf], value_overflows: bool
) -> list[Finding]:
    for leaf in inputs:
        k = _outlier(low, double, leaf, gradient_rtol(eps))
        if k is None:
            continue
        if np.isfinite(double[0, k]) and not np.isfinite(low[0, k]):
            return [] if value_overflows else [_overflow("the gradient", k, (low, double), inputs)]
        return [
            Finding(
                "precision",
                f"as you run it the gradient of one combination of the outputs is {low[0, k]:.6g} here, in float64 "
                f"it is {double[0, k]:.6g}; rounding does not explain the difference",
                leaf.place(k),
                "look for code that is taken in low precision only, or for intermediate values out of its range",
            )
        ]
    return []


def _overflow(what: str, k: int, pair: tuple[Array, Array], leaves: Sequence[Leaf]) -> Finding:
    return Finding(
        "precision",
        f"{what} is {pair[0][0, k]} as you run it and {pair[1][0, k]:.6g} in float64: it leaves the range of low precision",
        place(leaves, int(k)),
        "scale the computation, or do this part of it in a wider type",
    )


def _identical(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    largest = np.max(np.abs(other), initial=0.0, where=np.isfinite(other))
    with np.errstate(all="ignore"):
        close = np.abs(one - other) <= 64 * DOUBLE * largest
    return bool((close | (one == other) | np.isnan(one) & np.isnan(other)).all())

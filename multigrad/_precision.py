"""How far results in low precision may be from those in float64, and what it means if they are farther.

An adapter that evaluates low-precision code in float64 shows with this that it evaluates the same function, and that
nothing is wrong with the low-precision run itself. How much rounding explains is measured: both are evaluated at
the point and at neighbours a few ulp away, where rounding errors differ and anything else stays the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from multigrad import _noise
from multigrad._directions import scale_of
from multigrad._findings import Finding
from multigrad._verdict import Rules
from multigrad.backends import Array, Leaf, place

DOUBLE = 2.0**-52
SINGLE = 2.0**-23
# Arithmetic coarser than this does not show an error of a percent.
COARSE = 2.0**-12
# Noise of float64 values, relative to their size, that is not float64's own: float32 is at work inside.
FOREIGN_NOISE = 1e-10
NEIGHBOURS = 3
# Outputs this small beside the largest are what the rounding of float64 leaves of 0.
DUST = 2.0**-46
ALL_NOISE = 0.01
# Of the points at which that is looked for: float32 changes from one to the next, and a smooth function is a line.
SPACING = 2.0**-20
# An outlier among so few samples is 2.3 standard deviations away from their mean: one flipped branch is no fault.
SPREADS = 10.0
VALUE_ULPS = 20.0
# How many intervals, of how many units of roundoff each, are looked at for jumps; in how many values must jump, and
# by how many units of roundoff at most.
DIRECTIONS, INTERVALS, WIDTHS, JUMPS, HEIGHT = 3, 16, (1.0, 2.0, 4.0), 12, 2.0


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


def foreign_noise(f: Callable[[Array], Array], x: Array, seed: int) -> float:
    """The noise of ``f``, (b, n) -> (b, m), beside ``x`` relative to its values, if too large for float64; else 0.

    It is the lesser of that on two short lines that begin at x, so that neither a kink there nor one nearby counts.
    """
    rng = np.random.default_rng(seed)
    scale = (
        np.where(np.isfinite(x), scale_of(x), 0.0) * rng.choice([-1.0, 1.0], x.shape) * rng.uniform(0.5, 1.0, x.shape)
    )
    steps = SPACING * np.arange(1.0, _noise.POINTS + 1)
    with np.errstate(all="ignore"):
        values = f(np.concatenate([x + steps[:, None] * scale, x - steps[:, None] * scale]))
        noise = float(min(_relative_noise(line) for line in np.split(values, 2)))
    return noise if noise > FOREIGN_NOISE else 0.0


def has_steps(f: Callable[[Array], Array], x: Array, eps: float, seed: int) -> bool:
    """Whether values of ``f``, (b, n) -> (b, m), stand still and jump as those of roundoff ``eps`` inside it would.

    Where that is coarse, it is no noise at the distance of points at which a derivative is taken: such values are
    constant there. A continuous function changes over an interval as its slopes at the ends say. One that the user
    has quantised has its jumps in few of the intervals, or higher ones.
    """
    if eps <= SPACING:
        return False
    rng = np.random.default_rng(seed)
    shape = DIRECTIONS, *x.shape
    directions = np.where(np.isfinite(x), x, 0.0) * rng.choice([-1.0, 1.0], shape) * rng.uniform(0.75, 1.0, shape)
    with np.errstate(all="ignore"):
        return any(_jumps(f, x, along, width * eps, eps) for width in WIDTHS for along in directions)


def _jumps(f: Callable[[Array], Array], x: Array, direction: Array, width: float, eps: float) -> bool:
    """Whether an output jumps by some ``eps`` in most intervals of that width along the direction."""
    ends = width * np.arange(INTERVALS + 1.0)
    points = np.concatenate([x + t[:, None] * direction for t in (ends, ends + SPACING)])
    here, beside = np.split(f(points), 2)
    slopes = (beside - here) / SPACING
    level = np.abs(here[0])
    unexplained = np.abs(np.diff(here, axis=0) - width * (slopes[1:] + slopes[:-1]) / 2)
    allowed = width * np.abs(np.diff(slopes, axis=0)) + FOREIGN_NOISE * level
    condition = np.maximum(1.0, np.abs(here[-1] - here[0]) / (level * ends[-1]))
    low = np.median(unexplained, axis=0) <= HEIGHT * eps * level * condition
    return bool((low & (np.count_nonzero(unexplained > allowed, axis=0) >= JUMPS)).any())


def _relative_noise(line: Array) -> float:
    """Noise on one line of equally spaced points, (POINTS, m), relative to the largest entry of the output."""
    sigma = np.full(line.shape[1], np.inf)
    for order in _noise.ORDERS:
        unit = math.factorial(order) ** 2 / math.factorial(2 * order)
        sigma = np.minimum(sigma, np.sqrt(unit * np.mean(np.diff(line, order, axis=0) ** 2, axis=0)))
    level = np.max(np.abs(line), axis=0, initial=0.0)
    # What float64 leaves of a 0 is all noise, and would be larger by far if float32 had left it.
    dust = (level <= DUST * np.max(level, initial=0.0, where=np.isfinite(level))) & (sigma > ALL_NOISE * level)
    counts = np.isfinite(sigma) & ~dust & (level > 0)
    relative = np.where(counts, sigma / np.where(counts, level, 1.0), 0.0)
    return float(np.max(relative, initial=0.0))


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


def in_double(names: Sequence[str], how: str, noise: float, remedy: str) -> Finding:
    """What is to be said where it is evaluated in float64, with what ``foreign_noise`` has found."""
    evidence = f"written for {', '.join(names)}, evaluated in float64{how}"
    if not noise:
        return Finding("promotion", evidence)
    return Finding(
        "promotion" if residual_eps(noise) <= COARSE else "precision",
        f"{evidence}, but a part of it is not: values carry noise of {noise:.1g}; "
        f"errors of the gradient below {visible(residual_eps(noise)):.1g} of its size cannot be seen",
        remedy=remedy,
    )


def partly_coarse(names: Sequence[str], how: str, eps: float, remedy: str) -> Finding:
    """What is to be said of what is evaluated in float64 but for a part, as ``has_steps`` has found."""
    return Finding(
        "precision",
        f"written for {', '.join(names)}, evaluated in float64{how}, but a part of it is not: values change by steps; "
        f"errors of the gradient below {visible(eps):.1g} of its size cannot be seen",
        remedy=remedy,
    )


def residual_eps(noise: float) -> float:
    """The unit roundoff of an arithmetic that is double but for a part with that noise; 0 for none."""
    return max(SINGLE, 4 * noise) if noise else DOUBLE


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

"""What is left of low precision inside a function that is evaluated in float64: noise, or steps, in its values.

A cast in compiled code, in a callback or in a library call stays where it is, whatever the types around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from multigrad._differences import noise as _noise
from multigrad._differences.directions import Mask, scale_of, share_of
from multigrad.backends import Array
from multigrad.findings import Finding
from multigrad.precision import COARSE, DOUBLE, SINGLE, visible

# Noise of float64 values, relative to their size, that is not float64's own: float32 is at work inside.
FOREIGN_NOISE = 1e-10
# Outputs this small beside the largest are what the rounding of float64 leaves of 0.
DUST = 2.0**-46
ALL_NOISE = 0.01
# An output that stands still between more of the points than this leaves shows no noise.
MOVING = 0.5
# Of the points at which that is looked for: float32 changes from one to the next, and a smooth function is a line.
SPACING = 2.0**-20
# How many intervals, of how many units of roundoff each, are looked at for jumps; in how many values must jump, and
# by how many units of roundoff at most.
DIRECTIONS, INTERVALS, WIDTHS, JUMPS, HEIGHT = 3, 16, (1.0, 2.0, 4.0), 12, 2.0


def foreign_noise(f: Callable[[Array], Array], x: Array, seed: int) -> float:
    """The noise of ``f``, (b, n) -> (b, m), beside ``x`` relative to its values, if too large for float64; else 0.

    It is the lesser of that on two short lines that begin at x, so that neither a kink there nor one nearby counts. What
    is seen where tiny inputs move by far more than their size may be what f does there: where f moves with them by
    their own size as well, there must be noise then too.
    """
    rng = np.random.default_rng(seed)
    direction = np.where(np.isfinite(x), rng.choice([-1.0, 1.0], x.shape) * rng.uniform(0.5, 1.0, x.shape), 0.0)
    with np.errstate(all="ignore"):
        noise, _ = _noise_along(f, x, scale_of(x) * direction)
        share = share_of(x)
        if float(np.max(noise, initial=0.0)) > FOREIGN_NOISE and (share < 1).any():
            beside, moves = _noise_along(f, x, scale_of(x) * share * direction)
            noise = np.where(moves, np.minimum(noise, beside), noise)
    largest = float(np.max(noise, initial=0.0))
    return largest if largest > FOREIGN_NOISE else 0.0


def _noise_along(f: Callable[[Array], Array], x: Array, direction: Array) -> tuple[Array, Mask]:
    """The noise of each output on the line on which it has less, and whether it moves between most points there."""
    steps = SPACING * np.arange(1.0, _noise.POINTS + 1)[:, None]
    lines = np.split(f(np.concatenate([x + steps * direction, x - steps * direction])), 2)
    one, other = (_relative_noise(line) for line in lines)
    lesser = other if np.max(other, initial=0.0) < np.max(one, initial=0.0) else one
    moves = [(np.diff(line, axis=0) != 0).mean(axis=0) > MOVING for line in lines]
    return lesser, np.asarray(moves[0] & moves[1])


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


def _relative_noise(line: Array) -> Array:
    """Noise of each output on one line of equally spaced points, (POINTS, m), relative to its largest entry; (m,)."""
    sigma = np.full(line.shape[1], np.inf)
    for order in _noise.ORDERS:
        unit = math.factorial(order) ** 2 / math.factorial(2 * order)
        sigma = np.minimum(sigma, np.sqrt(unit * np.mean(np.diff(line, order, axis=0) ** 2, axis=0)))
    level = np.max(np.abs(line), axis=0, initial=0.0)
    # What float64 leaves of a 0 is all noise, and would be larger by far if float32 had left it.
    dust = (level <= DUST * np.max(level, initial=0.0, where=np.isfinite(level))) & (sigma > ALL_NOISE * level)
    counts = np.isfinite(sigma) & ~dust & (level > 0)
    return np.where(counts, sigma / np.where(counts, level, 1.0), 0.0)


def residual_eps(noise: float) -> float:
    """The unit roundoff of an arithmetic that is double but for a part with that noise; 0 for none."""
    return max(SINGLE, 4 * noise) if noise else DOUBLE


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

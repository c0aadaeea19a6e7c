"""Plateaus: whether a function that is flat at x is a staircase or has a dead zone there.

Values that do not change over the smallest steps have two readings. A function computed in coarser arithmetic is a
staircase, whose slope shows at larger steps only; relu left of 0 is flat, whatever happens further out. Windows in
which the values do change tell them apart: a staircase has several plateaus in one of them.

The plateaus of x * (1 + erf(x)) far to the left, where the second factor is a multiple of the rounding of 1, have a
slope, which is not that of the function: it is a staircase after a straight line is subtracted.
"""

from __future__ import annotations

import numpy as np

from multigrad._differences.directions import Directions, Mask
from multigrad._differences.ladder import Samples
from multigrad.backends import Array

SAMPLES = 32
WINDOW = 16.0  # the far end of the first, in units of the largest step at which the function is still flat
RATIO = 6.0  # of the far ends of one window and the next
FARTHEST = 2.0**-7  # the last reaches so far; on a slope, where plateaus may be wider, as far as f may be looked at
# The rounding of float32 arithmetic makes steps of 2**-24 of a value or somewhat more; higher ones may be meant.
LOW = 2.0**-20
SINGLE = 2.0**-24
# Steps as high as this, as a fraction of the values, are those of float64's own rounding: every smooth function has them.
FINE = 2.0**-50
# By what factor quotients of a smooth function do not move further away from one rung to the next.
ABRUPT = 2.0**12
# On a plateau of a staircase on a slope, what the values may change by as a fraction of the highest step.
LEVEL = 0.05
# Its moves are its steps or none: between these there are none that small, as a smooth function has beside a pole.
NO_STEP = 0.4
# The highest step, as a fraction of the values beside it and of the largest that the ladder meets.
OWN, FOREIGN = 2.0**-46, 2.0**-30
# A function that is flat up to the shortest step of the short ladder has no finer steps to look for.
FLAT = 2.0**-13


def flat_steps(samples: Samples, here: Array) -> Array:
    """The largest step up to which f does not change at all, shape (C, m); 0 where it does at the smallest."""
    same = (samples.plus == here) & (samples.minus == here)
    lost = np.isnan(samples.up + samples.down)
    from_below = np.logical_and.accumulate((same | lost)[::-1], axis=0)[::-1] & ~lost
    step = np.where(from_below, np.broadcast_to(samples.up, same.shape), 0.0)
    return np.asarray(step.max(axis=0))


def straight_steps(samples: Samples, slope: Array, eps: float) -> Array:
    """The largest step up to which f is straight, with the ``slope`` (C, m), if it abruptly ceases to be; else 0."""
    with np.errstate(all="ignore"):
        width = samples.up + samples.down
        off = np.abs((samples.plus - samples.minus) / width - slope)
        rounding = 4 * eps * np.fmax(np.abs(samples.plus), np.abs(samples.minus)) / width
        abrupt = off[:-1] > ABRUPT * np.maximum(off[1:], rounding[1:])
        step = np.where(abrupt, np.broadcast_to(samples.up, off.shape)[1:], np.inf).min(axis=0)
    return np.asarray(np.where(np.isfinite(step), step, 0.0))


def looks_single(samples: Samples, here: Array, unit: float = SINGLE) -> Mask:
    """Where all values are numbers of that ``unit`` roundoff and as close together as these are, shape (C, m)."""
    values = np.concatenate([samples.plus, samples.minus, np.broadcast_to(here, samples.plus[:1].shape)])
    values = np.sort(np.where(np.isfinite(values), values, here), axis=0)
    steps = np.diff(values, axis=0)
    closest = np.min(np.where(steps > 0, steps, np.inf), axis=0)
    mantissa = np.frexp(values)[0] / unit
    exact = (mantissa == np.round(mantissa)).all(axis=0)
    return np.asarray(exact & (closest < 4 * unit * np.abs(values).max(axis=0)))


def windows(x: Array, directions: Directions, step: float, farthest: float, limit: float) -> Array:
    """Points along one direction on both sides of x, beyond ``step``; shape (windows * 2 * SAMPLES, n).

    The last window begins before ``farthest``; no point is beyond ``limit``.

    A window shows the plateaus of a staircase if it is 3 to 20 times as wide as one. Next to the end of the plateau
    that x is on, ``step`` is much shorter than that.
    """
    return np.asarray(x + distances(step, farthest, limit)[:, None] * directions.dense())


def distances(step: float, farthest: float, limit: float) -> Array:
    """How far along the direction the points of ``windows`` are, shape (windows * 2 * SAMPLES,)."""
    count = max(1, int(np.ceil(np.log(farthest / step) / np.log(RATIO))))
    ends = np.minimum(WINDOW * step * RATIO ** np.arange(count), limit)
    distance = np.linspace(step, ends, SAMPLES).T
    return np.stack([distance, -distance], axis=1).ravel()


def is_staircase(values: Array, here: Array) -> Mask:
    """Tell from f's values on the windows whether there are several plateaus in one; (windows * 2 * SAMPLES, m) -> (m,)."""
    sides = values.reshape(-1, SAMPLES, values.shape[1])
    moved = sides != here
    repeated = moved[:, 1:] & (sides[:, 1:] == sides[:, :-1])
    levels = (moved[:, 1:] & ~repeated).sum(axis=1)
    coarse = np.abs(np.diff(sides, axis=1)).max(axis=1) > FINE * np.abs(sides).max(axis=1)
    return np.asarray(((levels >= 2) & (repeated.sum(axis=1) >= 0.3 * moved.sum(axis=1)) & coarse).any(axis=0))


def is_staircase_on_slope(values: Array, step: float, farthest: float, slope: Array, largest: Array) -> Mask:
    """Tell whether f less a line of ``slope`` has several plateaus in one of the windows up to ``farthest``.

    The steps between them must be what the rounding of values as large as ``largest`` makes of f, and more than its
    own rounding; all but ``values`` have shape (m,).
    """
    residual = values - distances(step, farthest, farthest)[:, None] * slope
    sides = np.abs(values).reshape(-1, SAMPLES, values.shape[1]).max(axis=1)
    moves = np.abs(np.diff(residual.reshape(-1, SAMPLES, values.shape[1]), axis=1))
    highest = moves.max(axis=1)
    own = OWN * (sides + np.abs(slope))  # x + distance is rounded too
    of_rounding = (highest > own) & (highest < FOREIGN * largest)
    still = moves <= LEVEL * highest[:, None]
    steps = (still[:, :-1] & ~still[:, 1:]).sum(axis=1)
    gradual = (~still & (moves < NO_STEP * highest[:, None])).any(axis=1)
    return np.asarray((of_rounding & ~gradual & (steps >= 2) & (still.mean(axis=1) >= 0.3)).any(axis=0))


def is_high(values: Array, here: Array) -> Mask:
    """Whether the steps of the staircase are too high for the rounding of float32, so that f may round on purpose."""
    steps = np.abs(np.diff(values.reshape(-1, SAMPLES, values.shape[1]), axis=1))
    lowest = np.min(np.where(steps > 0, steps, np.inf), axis=(0, 1))
    return np.asarray(lowest > LOW * np.maximum(np.abs(values).max(axis=0), np.abs(here)))

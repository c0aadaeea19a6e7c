"""Plateaus: whether a function that is flat at x is a staircase or has a dead zone there.

Values that do not change over the smallest steps have two readings. A function computed in coarser arithmetic is a
staircase, whose slope shows at larger steps only; relu left of 0 is flat, whatever happens further out. Windows in
which the values do change tell them apart: a staircase has several plateaus in one of them.
"""

from __future__ import annotations

import numpy as np

from multigrad._directions import Directions
from multigrad._kinks import Mask
from multigrad._ladder import Samples
from multigrad.backends import Array

SAMPLES = 32
WINDOW = 16.0  # the far end of the first, in units of the largest step at which the function is still flat
RATIO = 6.0  # of the far ends of one window and the next
FARTHEST = 2.0**-7  # the last reaches so far
# The rounding of float32 arithmetic makes steps of 2**-24 of a value or somewhat more; higher ones may be meant.
LOW = 2.0**-20
# (direction, step) pairs worth looking at in one check.
AT_MOST = 64
# A function that is flat up to the shortest step of the short ladder has no finer steps to look for.
FLAT = 2.0**-13


def flat_steps(samples: Samples, here: Array) -> Array:
    """The largest step up to which f does not change at all, shape (C, m); 0 where it does at the smallest."""
    same = (samples.plus == here) & (samples.minus == here)
    lost = np.isnan(samples.up + samples.down)
    from_below = np.logical_and.accumulate((same | lost)[::-1], axis=0)[::-1] & ~lost
    step = np.where(from_below, np.broadcast_to(samples.up, same.shape), 0.0)
    return np.asarray(step.max(axis=0))


def windows(x: Array, directions: Directions, step: float) -> Array:
    """Points along one direction on both sides of x, beyond ``step``; shape (windows * 2 * SAMPLES, n).

    A window shows the plateaus of a staircase if it is 3 to 20 times as wide as one. Next to the end of the plateau
    that x is on, ``step`` is much shorter than that.
    """
    count = max(1, int(np.ceil(np.log(FARTHEST / step) / np.log(RATIO))))
    ends = WINDOW * step * RATIO ** np.arange(count)
    distance = np.linspace(step, ends, SAMPLES).T
    along = np.stack([distance, -distance], axis=1).reshape(-1, 1) * directions.dense()
    return np.asarray(x + along)


def is_staircase(values: Array, here: Array) -> Mask:
    """Tell from f's values on the windows whether there are several plateaus in one; (windows * 2 * SAMPLES, m) -> (m,)."""
    sides = values.reshape(-1, SAMPLES, values.shape[1])
    moved = sides != here
    repeated = moved[:, 1:] & (sides[:, 1:] == sides[:, :-1])
    levels = (moved[:, 1:] & ~repeated).sum(axis=1)
    return np.asarray(((levels >= 2) & (repeated.sum(axis=1) >= 0.3 * moved.sum(axis=1))).any(axis=0))


def is_high(values: Array, here: Array) -> Mask:
    """Whether the steps of the staircase are too high for the rounding of float32, so that f may round on purpose."""
    steps = np.abs(np.diff(values.reshape(-1, SAMPLES, values.shape[1]), axis=1))
    lowest = np.min(np.where(steps > 0, steps, np.inf), axis=(0, 1))
    return np.asarray(lowest > LOW * np.maximum(np.abs(values).max(axis=0), np.abs(here)))

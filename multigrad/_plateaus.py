"""Plateaus: whether a function that is flat at x is a staircase or has a dead zone there.

Values that do not change over the smallest steps have two readings. A function computed in coarser arithmetic is a
staircase, whose slope shows at larger steps only; relu left of 0 is flat, whatever happens further out. The first
window in which the values do change tells them apart: a staircase has other plateaus in it.
"""

from __future__ import annotations

import numpy as np

from multigrad._directions import Directions
from multigrad._kinks import Mask
from multigrad._ladder import Samples
from multigrad.backends import Array

SAMPLES = 32
WINDOW = 16.0  # its far end, in units of the largest step at which the function is still flat
# (direction, step) pairs worth looking at in one check.
AT_MOST = 64


def flat_steps(samples: Samples, here: Array) -> Array:
    """The largest step up to which f does not change at all, shape (C, m); 0 where it does at the smallest."""
    same = (samples.plus == here) & (samples.minus == here)
    lost = np.isnan(samples.up + samples.down)
    from_below = np.logical_and.accumulate((same | lost)[::-1], axis=0)[::-1] & ~lost
    step = np.where(from_below, np.broadcast_to(samples.up, same.shape), 0.0)
    return np.asarray(step.max(axis=0))


def window(x: Array, directions: Directions, step: float) -> Array:
    """Points along one direction on both sides of x, beyond ``step``; shape (2 * SAMPLES, n)."""
    distance = np.linspace(step, WINDOW * step, SAMPLES)
    along = np.concatenate([distance, -distance])[:, None] * directions.dense()
    return np.asarray(x + along)


def is_staircase(values: Array, here: Array) -> Mask:
    """Tell from f's values on the window, shape (2 * SAMPLES, m), whether it goes on in plateaus; shape (m,).

    Near the end of its plateau a staircase may show a single one more.
    """
    found = np.zeros(values.shape[1], np.bool_)
    for side in (values[:SAMPLES], values[SAMPLES:]):
        moved = side != here
        repeated = moved[1:] & (side[1:] == side[:-1])
        found |= moved.any(axis=0) & (repeated.sum(axis=0) >= 0.3 * moved.sum(axis=0))
    return found

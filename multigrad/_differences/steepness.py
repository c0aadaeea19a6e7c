"""Steepness: how much f moves on the steps of the short ladder, beside which a derivative counts as 0 or as none.

At a stationary point where f is 0 there is nothing else to measure a derivative of 0 by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multigrad._differences.ladder import Samples
from multigrad.backends import Array

# Terms of higher order may make f so many times as steep on the largest step as its curvature does.
SLACK = 4.0


@dataclass(frozen=True)
class Steepness:
    """How steep f is a step away from x, for each output; shapes (m,).

    Attributes:
        largest: the largest one-sided quotient, less the error of values in it.
        curved: the same, but no larger than what the curvature of f at x, which the smaller steps bound, makes of the
            largest step: a barrier or a pole that is met there says nothing of x.
    """

    largest: Array
    curved: Array

    @classmethod
    def of(cls, samples: Samples, here: Array, error: Array) -> Steepness:
        """Read it off f's values on the short ladder, (K, C, m) on each side, of which all have that ``error``, (m,)."""
        high = np.fmax(*(np.fmax.reduce(side, axis=1) for side in (samples.plus, samples.minus)))
        low = np.fmin(*(np.fmin.reduce(side, axis=1) for side in (samples.plus, samples.minus)))
        rise = np.fmax(high - here, here - low)
        step = np.fmin(*(np.fmin.reduce(steps, axis=1) for steps in (samples.up, samples.down)))
        quotient = (rise - 2 * error) / step
        largest = np.where(np.isfinite(quotient), quotient, 0.0).max(axis=0, initial=0.0)
        bound = SLACK * step[0] * np.fmin.reduce((rise + 2 * error) / step**2, axis=0)
        return cls(largest, np.fmin(largest, bound))

    def or_more(self, other: Steepness) -> Steepness:
        """The larger of the two, output by output."""
        return Steepness(np.maximum(self.largest, other.largest), np.maximum(self.curved, other.curved))

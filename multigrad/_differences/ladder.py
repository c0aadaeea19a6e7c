"""The ladder: f's values at a geometric sequence of steps on both sides of x.

A sequential search for the best step would be data-dependent, and hard to vectorise; a whole ladder evaluated at
once carries the same information in one batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from multigrad._differences.directions import TINY, Directions, Index, Mask
from multigrad.backends import FARTHEST, Array

# By what fraction rounding changes a step that counts as exact, and one that is of no use.
EXACT, LOST = 2.0**-50, 0.02
# Shorter steps than two to the power of minus this are no normal numbers.
LOWEST = 1020


@dataclass(frozen=True)
class Samples:
    """f's values along C directions at K rungs, the largest step first.

    Attributes:
        plus: f(x + t v), shape (K, C, m).
        minus: f(x - t v), shape (K, C, m).
        up: the steps really taken on the plus side, after rounding of x + t v, shape (K, C, 1); NaN where
            rounding changes the step by more than 2 %.
        down: likewise on the minus side.
        ratio: between the steps of neighbouring rungs.
    """

    plus: Array
    minus: Array
    up: Array
    down: Array
    ratio: float

    def at(self, c: Index, i: Index) -> Samples:
        """Some of the places (direction, output), as one direction with as many outputs."""
        up, down = (np.broadcast_to(step, self.plus.shape)[:, None, c, i] for step in (self.up, self.down))
        return Samples(self.plus[:, None, c, i], self.minus[:, None, c, i], up, down, self.ratio)

    def along(self, c: Index | Mask) -> Samples:
        """Some of the directions."""
        return Samples(self.plus[:, c], self.minus[:, c], self.up[:, c], self.down[:, c], self.ratio)


def short_ladder(eps: float) -> Array:
    """Three rungs for every direction; exponents of two."""
    bits = -math.log2(eps)
    if bits > 40:
        return np.array([-7.0, -10.0, -13.0])
    return np.array([-3.0, -5.0, -7.0]) if bits > 15 else np.array([-1.0, -2.0, -3.0])


def closer_ladder(eps: float) -> Array:
    """Three smaller rungs, which a kink is less likely to be between; none where rounding would hide everything."""
    return np.array([-16.0, -19.0, -22.0]) if -math.log2(eps) > 40 else np.empty(0)


def long_ladder(eps: float, x: Array, farthest: float = FARTHEST) -> Array:
    """Rungs from ``farthest`` times the scale down to the rounding of the inputs; for suspicious directions only.

    Args:
        eps: unit roundoff of f's arithmetic.
        x: the inputs that are moved, or their own sizes.
        farthest: the longest step.
    """
    lowest = round(0.85 * -math.log2(eps))
    tiny = np.abs(x[(x != 0) & (np.abs(x) < TINY)])
    if tiny.size:
        lowest = max(lowest, min(math.ceil(-math.log2(tiny.min())) + 20, LOWEST))
    step = 2 if -math.log2(eps) > 15 else 1
    return -np.arange(-math.log2(farthest), lowest + 1, step)


def zeros_ladder(eps: float) -> Array:
    """Rungs below those of the long one, for inputs that are 0: what f does beside 0 may have any scale."""
    step = 2 if -math.log2(eps) > 15 else 1
    return -np.arange(round(0.6 * -math.log2(eps)), round(1.7 * -math.log2(eps)), step, dtype=np.float64)


def points(x: Array, directions: Directions, exponents: Array) -> tuple[Array, Array, Array]:
    """Make the points of a ladder and the steps taken: (2 * K * C, n), (K, C, 1 or m) twice."""
    shape = (2, len(exponents), len(directions))
    steps = np.exp2(exponents)[:, None] * directions.weights
    at = x[directions.columns]
    plus, minus = at + steps, at - steps
    X = np.broadcast_to(x, (*shape, x.size)).copy()
    X[0, :, directions.rows, directions.columns] = plus.T
    X[1, :, directions.rows, directions.columns] = minus.T
    up, down = (_taken(moved, directions, exponents) for moved in (plus - at, at - minus))
    return X.reshape(-1, x.size), up, down


def _taken(moved: Array, directions: Directions, exponents: Array) -> Array:
    """The steps that entries see, given how far each column was really moved, shape (K, len(columns))."""
    wanted = np.exp2(exponents)[:, None]
    along = moved / directions.weights
    if (np.abs(along - wanted) <= EXACT * wanted).all():
        return np.broadcast_to(wanted[..., None], (len(wanted), len(directions), 1))
    if directions.owners is not None or len(directions.columns) == len(directions):
        taken = directions.each(along)
    else:
        squares = directions.weights**2
        taken = (directions.sums(along * squares) / directions.sums(squares))[..., None]
    return np.where(np.abs(taken / wanted[..., None] - 1) > LOST, np.nan, taken)


def samples(values: Array, up: Array, down: Array, exponents: Array) -> Samples:
    """Arrange f's values at ``points``, shape (2 * K * C, m)."""
    sides = values.reshape(2, len(exponents), up.shape[1], values.shape[-1])
    return Samples(sides[0], sides[1], up, down, float(np.exp2(exponents[0] - exponents[1])))

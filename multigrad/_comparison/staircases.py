"""Staircases: a look at f beyond its plateau at x, where it matters whether more plateaus follow."""

from __future__ import annotations

import numpy as np

from multigrad._comparison.reading import Reading, TwoReadings
from multigrad._comparison.verdict import Status
from multigrad._differences import plateaus
from multigrad._differences.directions import Directions, Index, Mask
from multigrad._differences.ladder import Samples
from multigrad._differences.sampler import Sampler
from multigrad.backends import Array

# (direction, step) pairs worth looking at in one check.
AT_MOST = 64
# Points longer than this are not looked at: a pair takes up to 2000 of them.
LONGEST = 2**14


def staircases(
    sampler: Sampler, directions: Directions, two: TwoReadings, c: Index, i: Index, farthest: float
) -> tuple[Mask, Mask]:
    """Where f is flat at x, in doubt, and a staircase; and where its steps are high.

    It is looked at no farther away than ``farthest``. With too many to look at, or too long ones, none in doubt is
    taken for flat. The readings are of the places (c, i), shape (1, places).
    """
    flat = two.flat[0]
    doubted = (two.doubted[0] | two.trusted[0]) & (flat > 0)
    pairs = _pairs(c, np.where(doubted, flat, 0.0))
    if len(pairs) > AT_MOST or sampler.x.size > LONGEST:
        return two.doubted & doubted, np.ones_like(two.doubted)
    staircase, high = np.zeros_like(doubted), np.zeros_like(doubted)
    for direction, step in pairs:
        values = _beyond(sampler, directions, direction, step, plateaus.FARTHEST, farthest)
        here = doubted & (c == direction) & (flat == step) & plateaus.is_staircase(values, sampler.here)[i]
        staircase |= here
        high |= here & plateaus.is_high(values, sampler.here)[i]
    return staircase[None], high[None]


def staircases_on_slopes(
    sampler: Sampler,
    directions: Directions,
    sampled: Samples,
    reading: Reading,
    c: Index,
    i: Index,
    farthest: float,
) -> Mask:
    """Where the slope that was read is that of a plateau; the places are (c, i), shape (1, places).

    It is looked for as far as ``farthest``. With too many to look at, those that were looked at stand for others of
    their output.
    """
    wrong = (reading.status[0] == Status.MISMATCH) & ~reading.broken[0]
    straight = plateaus.straight_steps(sampled, reading.value, sampler.eps)[0] * wrong
    pairs = _pairs(c, straight) if sampler.x.size <= LONGEST else []
    found, seen = np.zeros((2, len(straight)), np.bool_)
    largest = np.fmax(np.abs(sampled.plus), np.abs(sampled.minus))
    largest = np.max(largest, axis=0, initial=0.0, where=np.isfinite(largest))[0]
    for direction, step in pairs[:: -(-len(pairs) // AT_MOST) or 1]:
        values = _beyond(sampler, directions, direction, step, farthest, farthest)
        here = np.flatnonzero((c == direction) & (straight == step))
        seen[here] = True
        slope = reading.value[0, here]
        found[here] = plateaus.is_staircase_on_slope(values[:, i[here]], step, farthest, slope, largest[here])
    others = (straight > 0) & ~seen & np.isin(i, i[found])
    return np.asarray((found | others)[None])


def _pairs(c: Index, step: Array) -> list[tuple[int, float]]:
    """Directions and the steps that are to be looked beyond in them: those that are not 0."""
    return sorted({(int(c[k]), float(step[k])) for k in np.flatnonzero(step)})


def _beyond(
    sampler: Sampler, directions: Directions, direction: int, step: float, farthest: float, limit: float
) -> Array:
    return sampler.f(plateaus.windows(sampler.x, directions.take(np.array([direction])), step, farthest, limit))

"""Ties: whether the entries of a row that are each legal at a kink are legal together.

At x = y both partial derivatives of max(x, y) may be anything in [0, 1], but (1, 1) is no gradient of it: along
v = (1, 1) the slope is 1 on every side. A gradient is a convex combination of limits of gradients at points nearby
(Clarke), so its product with v lies between the smallest and the largest slope along v around x.
"""

from __future__ import annotations

import numpy as np

from multigrad._comparison.entries import Entries
from multigrad._comparison.verdict import Status
from multigrad._differences.directions import Index, Mask, signed
from multigrad._differences.sampler import AT_ONCE, Sampler
from multigrad.backends import Array

# The pieces that meet at a tie are found by sampling: with few inputs tied, this many points find all of them. With
# more, a slope that is the same at all points still counts.
FEW, MANY = 4, 64
NEIGHBOURS = 32
# Of what would be called wrong, a piece may have been missed that is the narrowest of many: this many show it.
MORE = 512
PROBES = 4
# By how much of their size slopes at a finite distance may be off that are all the same.
LOOSE = 1e-3
# How far from x slopes are sampled, and over what distance.
AWAY, STEP = 1e-4, 1e-7


def check_ties(sampler: Sampler, found: Entries, settled: Index | None = None) -> None:
    """Call a row's tied entries a mismatch where their sum along some oblique direction is no slope of f.

    ``found`` is the comparison along unit vectors or groups; its statuses are changed in place, but those of rows
    that are ``settled``.
    """
    tied = found.status == Status.NONDIFFERENTIABLE
    count = tied.sum(axis=0)
    rows = np.flatnonzero((count >= 2) & (count <= MANY) & np.isfinite(found.analytical).all(axis=0))
    rows = rows if settled is None else np.setdiff1d(rows, settled)
    if not len(rows):
        return
    most = 2 * NEIGHBOURS * (PROBES + int(np.max(count[rows]))) * sampler.x.size
    for some in np.array_split(rows, min(len(rows), -(-len(rows) * most // AT_ONCE))):
        for points in (NEIGHBOURS, max(NEIGHBOURS, min(MORE, 2**20 // sampler.x.size))):
            some = some[_illegal(sampler, found, tied[:, some], some, points)] if len(some) else some
        for row in some:
            found.status[tied[:, row], row] = Status.MISMATCH


def _illegal(sampler: Sampler, found: Entries, tied: Mask, rows: Index, count: int) -> Mask:
    """In which rows, of which the ``tied`` entries are (C, rows), these are not legal together; shape (rows,).

    Slopes are taken at ``count`` points around x.
    """
    with np.errstate(all="ignore"):
        scale = sampler.unit
        columns = np.unique([found.column(c, rows[k]) for c, k in np.argwhere(tied)])
        probes = np.concatenate([oblique(len(columns), sampler.rng), np.eye(len(columns))])
        around = sampler.rng.uniform(-1.0, 1.0, (count, sampler.x.size))
        slopes = slopes_around(sampler, columns, probes, rows, around)
        gradient = found.claimed(columns, rows)
        claimed = (probes * scale[columns]) @ gradient
        margin = 0.05 * np.abs(probes * scale[columns]) @ np.abs(gradient)
        low, high = np.fmin.reduce(slopes, axis=1), np.fmax.reduce(slopes, axis=1)
        outside = (claimed < low - margin) | (claimed > high + margin)
        same = high - low <= LOOSE * np.maximum(np.abs(low), np.abs(high))
        # What is legal by itself and not seen to be is beyond the distance at which slopes are sampled.
        told = (outside & (same | (tied.sum(axis=0) <= FEW)))[:PROBES].any(axis=0)
        return np.asarray(told & ~outside[PROBES:].any(axis=0))


def oblique(k: int, rng: np.random.Generator) -> Array:
    """Directions that move all of k inputs, shape (PROBES, k): by the same first, then by random amounts.

    No amount is a power of two, for steps along it not to alias with periodic functions.
    """
    probes = signed(rng, 0.7, 1.0, (PROBES, k))
    probes[0] = np.abs(probes[0, 0])
    return probes


def slopes_around(
    sampler: Sampler,
    columns: Index,
    probes: Array,
    rows: Index,
    around: Array,
    away: float = AWAY,
    step: float = STEP,
) -> Array:
    """Slopes of f along the probes at points around x and on both sides of x, shape (probes, points, rows).

    The points are x + ``away * around``, of shape (neighbours, n), and the slopes there are taken over ``step``, all in
    units of the scale of x.
    """
    count = len(probes)
    x, scale = sampler.x, sampler.unit
    neighbours = len(around)
    along = np.zeros((count, x.size))
    along[:, columns] = probes * scale[columns]
    near = (
        x
        + np.where(np.isfinite(x), away * scale * around, 0.0)
        + step * along[:, None, None, :] * np.array([-0.5, 0.5])[None, :, None, None]
    )
    here = x + away * along[:, None, :] * np.array([-1.0, 1.0])[None, :, None]
    values = sampler.f(np.concatenate([near.reshape(-1, x.size), here.reshape(-1, x.size)]))[:, rows]
    pairs, ends = np.split(values, [count * 2 * neighbours])
    low, high = np.moveaxis(pairs.reshape(count, 2, neighbours, -1), 1, 0)
    back, forth = np.moveaxis(ends.reshape(count, 2, -1), 1, 0)
    start = sampler.here[rows]
    sides = np.stack([(start - back) / away, (forth - start) / away], axis=1)
    return np.concatenate([(high - low) / step, sides], axis=1)

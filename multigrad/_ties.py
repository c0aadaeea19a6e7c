"""Ties: whether the entries of a row that are each legal at a kink are legal together.

At x = y both partial derivatives of max(x, y) may be anything in [0, 1], but (1, 1) is no gradient of it: along
v = (1, 1) the slope is 1 on every side. A gradient is a convex combination of limits of gradients at points nearby
(Clarke), so its product with v lies between the smallest and the largest slope along v around x.
"""

from __future__ import annotations

import numpy as np

from multigrad._directions import Index, scale_of
from multigrad._entries import Entries
from multigrad._kinks import Mask
from multigrad._sampler import Sampler
from multigrad._verdict import Status
from multigrad.backends import Array

# The pieces that meet at a tie are found by sampling: with few inputs tied, this many points find all of them.
TIED_AT_MOST = 4
NEIGHBOURS = 32
# Of what would be called wrong, a piece may have been missed that is the narrowest of many: this many show it.
MORE = 512
PROBES = 4
AWAY, STEP = 1e-4, 1e-7


def check_ties(sampler: Sampler, found: Entries, settled: Index | None = None) -> None:
    """Call a row's tied entries a mismatch where their sum along some oblique direction is no slope of f.

    ``found`` is the comparison along unit vectors or groups; its statuses are changed in place, but those of rows
    that are ``settled``.
    """
    tied = found.status == Status.NONDIFFERENTIABLE
    count = tied.sum(axis=0)
    rows = np.flatnonzero((count >= 2) & (count <= TIED_AT_MOST) & np.isfinite(found.analytical).all(axis=0))
    rows = rows if settled is None else np.setdiff1d(rows, settled)
    if not len(rows):
        return
    with np.errstate(all="ignore"):
        scale = scale_of(sampler.x)
        columns = np.unique([found.column(c, rows[k]) for c, k in np.argwhere(tied[:, rows])])
        probes = np.concatenate([_probes(len(columns), sampler.rng), np.eye(len(columns))])
        slopes = slopes_around(sampler, columns, probes, rows)
        illegal = _illegal(found.claimed(columns, rows), probes * scale[columns], slopes)
        rows = rows[illegal]
        if len(rows):
            slopes = slopes_around(sampler, columns, probes, rows, max(NEIGHBOURS, min(MORE, 2**20 // sampler.x.size)))
            rows = rows[_illegal(found.claimed(columns, rows), probes * scale[columns], slopes)]
    for row in rows:
        found.status[tied[:, row], row] = Status.MISMATCH


def _illegal(gradient: Array, along: Array, slopes: Array) -> Mask:
    """Whether products of the gradient, shape (k, rows), with vectors ``along`` (probes, k) are no slopes; (rows,)."""
    claimed = along @ gradient
    margin = 0.05 * np.abs(along) @ np.abs(gradient)
    low, high = np.fmin.reduce(slopes, axis=1), np.fmax.reduce(slopes, axis=1)
    outside = (claimed < low - margin) | (claimed > high + margin)
    # What is legal by itself and not seen to be is beyond the distance at which slopes are sampled.
    return np.asarray(outside[:PROBES].any(axis=0) & ~outside[PROBES:].any(axis=0))


def _probes(k: int, rng: np.random.Generator) -> Array:
    """Directions over the tied inputs, shape (PROBES, k); the first moves them all by the same."""
    probes = rng.choice([-1.0, 1.0], (PROBES, k)) * rng.uniform(0.7, 1.0, (PROBES, k))
    probes[0] = np.abs(probes[0, 0])
    return probes


def slopes_around(
    sampler: Sampler,
    columns: Index,
    probes: Array,
    rows: Index,
    neighbours: int = NEIGHBOURS,
) -> Array:
    """Slopes of f along the probes at points around x and on both sides of x, shape (probes, points, rows)."""
    count = len(probes)
    x, scale = sampler.x, scale_of(sampler.x)
    around = np.where(np.isfinite(x), sampler.rng.uniform(-1.0, 1.0, (neighbours, x.size)) * AWAY * scale, 0.0)
    along = np.zeros((count, x.size))
    along[:, columns] = probes * scale[columns]
    near = x + around + STEP * along[:, None, None, :] * np.array([-0.5, 0.5])[None, :, None, None]
    here = x + AWAY * along[:, None, :] * np.array([-1.0, 1.0])[None, :, None]
    values = sampler.f(np.concatenate([near.reshape(-1, x.size), here.reshape(-1, x.size)]))[:, rows]
    pairs, ends = np.split(values, [count * 2 * neighbours])
    low, high = np.moveaxis(pairs.reshape(count, 2, neighbours, -1), 1, 0)
    back, forth = np.moveaxis(ends.reshape(count, 2, -1), 1, 0)
    start = sampler.here[rows]
    sides = np.stack([(start - back) / AWAY, (forth - start) / AWAY], axis=1)
    return np.concatenate([(high - low) / STEP, sides], axis=1)

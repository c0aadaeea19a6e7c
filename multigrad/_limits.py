"""Limits of gradients: ties that no coordinate shows.

The median of three equal numbers stands still if one of them moves, in either sense: every partial derivative is 0. Yet
f is not differentiable there, and the gradient that picks one of the three is the limit of those at points nearby, a
legal choice (Clarke). Around such a point slopes depend on the side that one is on and not on how far away one is.
"""

from __future__ import annotations

import numpy as np

from multigrad._directions import Index, scale_of, signed
from multigrad._entries import Entries
from multigrad._numerical import Numerical
from multigrad._verdict import Status
from multigrad.backends import Array

# Rows and inputs that are looked at; the rest stays as it is.
ROWS, INPUTS = 16, 16
FEW, NEIGHBOURS, PROBES = 8, 128, 3
# Two distances from x, each with the step that slopes are taken with there.
FAR, NEAR = (1e-4, 1e-6), (1e-6, 1e-8)
# Slopes at both distances must be the same to this part of their range.
STEADY = 0.02
# The end of the range is a limit that samples do not reach.
MARGIN = 0.05


def spare_limits(numerical: Numerical, found: Entries) -> None:
    """Take back mismatches that are limits of gradients at a kink; statuses are changed in place."""
    wrong = (found.status == Status.MISMATCH) & np.isfinite(found.analytical)
    rows = np.flatnonzero(wrong.any(axis=0))[:ROWS]
    if not len(rows):
        return
    with np.errstate(all="ignore"):
        for row in _kinked(numerical, rows):
            chosen = np.flatnonzero(wrong[:, row])
            columns = np.unique([found.column(int(c), int(row)) for c in chosen])
            if len(columns) <= INPUTS and _is_limit(numerical, found, columns, int(row)):
                found.status[chosen, row] = Status.NONDIFFERENTIABLE


def _kinked(numerical: Numerical, rows: Index) -> Index:
    """The rows with a kink at x, by a few slopes along one line: few functions with a wrong gradient have one."""
    line = _signs(numerical, 1, np.arange(numerical.x.size))
    reach, steady, _, _ = _compare(numerical, line, FEW, rows)
    return np.asarray(rows[(reach[0] > 0) & (steady[0] >= 0.75)])


def _is_limit(numerical: Numerical, found: Entries, columns: Index, row: int) -> bool:
    """Whether the claimed slopes are in range along each input, all of them one way, and at random."""
    scale = scale_of(numerical.x)
    units = np.zeros((len(columns) + 1, numerical.x.size))
    units[range(len(columns)), columns] = 1.0
    units[-1, columns] = 1.0
    lines = np.concatenate([units * scale, _signs(numerical, PROBES, columns)])
    claimed = lines[:, columns] @ found.claimed(columns, np.array([row]))[:, 0]
    reach, steady, low, high = (part[:, 0] for part in _compare(numerical, lines, NEIGHBOURS, np.array([row])))
    legal = (claimed >= low - MARGIN * reach) & (claimed <= high + MARGIN * reach)
    return bool(legal.all() and (reach > 0).any() and steady.mean() >= 0.9)


def _signs(numerical: Numerical, count: int, columns: Index) -> Array:
    lines = np.zeros((count, numerical.x.size))
    lines[:, columns] = signed(numerical.rng, 0.7, 1.0, (count, len(columns)))
    return lines * np.where(np.isfinite(numerical.x), scale_of(numerical.x), 0.0)


def _compare(numerical: Numerical, lines: Array, count: int, rows: Index) -> tuple[Array, Array, Array, Array]:
    """Take slopes along the lines at two distances.

    Returns:
        For each line and row: the slopes' range, 0 where that may be noise; the part of them that does not depend on
        the distance; the least and the largest.
    """
    x = numerical.x
    sides = np.where(np.isfinite(x), numerical.rng.uniform(-1.0, 1.0, (count, x.size)) * scale_of(x), 0.0)
    far, near = (_slopes(numerical, sides * away, lines * step, rows) / step for away, step in (FAR, NEAR))
    low, high = far.min(axis=1), far.max(axis=1)
    noise = (numerical.relative_noise[rows] + numerical.rules.eps) * np.abs(numerical.here[rows]) / NEAR[1]
    reach = np.where(high - low > 100 * noise, high - low, 0.0)
    steady = (np.abs(far - near) <= STEADY * (high - low)[:, None] + 4 * noise).mean(axis=1)
    return reach, steady, low, high


def _slopes(numerical: Numerical, sides: Array, steps: Array, rows: Index) -> Array:
    """Differences of f along the steps around the points x + sides, shape (lines, sides, rows)."""
    points = numerical.x + sides + steps[:, None, None, :] * np.array([-0.5, 0.5])[None, :, None, None]
    values = numerical.f(points.reshape(-1, numerical.x.size))[:, rows]
    values = values.reshape(len(steps), 2, len(sides), len(rows))
    return np.asarray(values[:, 1] - values[:, 0])

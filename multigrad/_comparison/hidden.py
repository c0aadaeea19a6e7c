"""Hidden kinks: points where f is smooth along every input, and has no derivative all the same.

The median of four equal numbers stays when one of them moves, whichever it is, and moves when all do. Partial
derivatives, 0 each, are then no gradient; what is one lies among the gradients at points nearby (Clarke).
"""

from __future__ import annotations

from math import factorial

import numpy as np

from multigrad._comparison.context import Context
from multigrad._comparison.entries import Entries
from multigrad._comparison.reading import Reading, read
from multigrad._comparison.ties import AWAY, LOOSE, STEP, oblique, slopes_around
from multigrad._comparison.verdict import Rules, Status
from multigrad._differences.directions import Directions, Index, Mask
from multigrad._differences.ladder import long_ladder
from multigrad._differences.sampler import Sampler
from multigrad.backends import Array

# By how much of their size slopes must differ from those of a linear function.
BENT = 0.05
# What fraction of their spread may not have been seen.
UNSEEN = 0.25
# What rounding leaves in them.
ROUNDING = 1e-6
# Slopes much nearer to x, and over what distance they are taken; to what fraction their spread falls where f is smooth.
CLOSER, SHORTER, FALLEN = 1e-6, 1e-8, 0.03
# Of a dozen inputs that are tied, each is seen in every place among so many points.
NEIGHBOURS = 64
# Some are in one place only where several others are in theirs: what is to be called wrong is looked for at more points,
# for so many evaluations and so many numbers in their arguments.
EVALUATIONS, NUMBERS = 2**14, 2**22
# For each order of few inputs, with each of their signs, so many points are enough.
EACH = 4
# Small steps, as powers of eps, on all of which f moves alike at a jump: by this fraction as much, at least.
ALIKE, ALL_OF = np.array([0.4, 0.5, 0.6, 0.7]), 0.75
# Wrong entries that are looked at one by one are those of this many inputs.
AT_MOST = 32


def admit_hidden_kinks(sampler: Sampler, found: Entries, rules: Rules) -> Index:
    """Take back mismatches in rows where f is not differentiable and the gradient is a legal choice.

    ``found`` is the comparison along unit vectors, in their order; its statuses are changed in place. Where the
    gradient is not among those found nearby, and these may not be all, it stays open. Returns the rows that were
    decided on by that.
    """
    wrong = found.status == Status.MISMATCH
    rows = np.flatnonzero(wrong.any(axis=0) & np.isfinite(found.analytical).all(axis=0))
    columns = np.flatnonzero(np.isfinite(sampler.x) & ~_jumps(sampler, found, wrong, rows))
    if not len(rows) or len(columns) < 2:
        return rows[:0]
    with np.errstate(all="ignore"):
        probes = oblique(len(columns), sampler.rng)
        along = probes * sampler.unit[columns] / found.directions.weights[columns]
        claimed, summed = (along @ values[np.ix_(columns, rows)] for values in (found.analytical, found.value))
        slack = np.abs(along) @ found.bar[np.ix_(columns, rows)]
        excess = np.abs(claimed - summed).max(axis=0)
        bent = _bent(sampler, columns, probes, rows, summed, slack, excess, rules)
        rows, claimed = rows[bent], claimed[:, bent]
        if not len(rows):
            return rows
        legal, certain = _by_themselves(sampler, found, wrong, rows)
        around = _Around(slopes_around(sampler, columns, probes, rows, _neighbours(sampler, NEIGHBOURS)), claimed)
        legal &= ~around.off.any(axis=0)
        certain |= (around.off & around.same).any(axis=0)
    for row, status in zip(
        rows[~certain], np.where(legal, Status.NONDIFFERENTIABLE, Status.INCONCLUSIVE)[~certain], strict=True
    ):
        found.status[wrong[:, row], row] = status
    return np.asarray(rows[~certain])


def _jumps(sampler: Sampler, found: Entries, wrong: Mask, rows: Index) -> Mask:
    """Which inputs f jumps or has no finite slope along, shape (n,).

    Beyond a jump f is another function, whose slopes are no choices here: who jumps is not moved.
    """
    broken = (found.broken & ~wrong)[:, rows]
    jumps: Mask = np.asarray((broken & np.isinf(found.bar[:, rows])).any(axis=1))
    kinks = np.flatnonzero(broken.any(axis=1) & ~jumps)
    if len(kinks):
        sampled = sampler.climb(found.directions.take(kinks), np.round(ALIKE * np.log2(sampler.eps)))
        moved = np.abs(np.stack([sampled.plus, sampled.minus])[..., rows] - sampler.here[rows])
        high, low = moved.max(axis=1), moved.min(axis=1)
        # The noise that lines through a jump show is that of the jump. NaN jumps as well.
        stays = (low < ALL_OF * high) | (high <= 8 * sampler.eps * np.abs(sampler.here[rows]))
        jumps[kinks] = (~stays.all(axis=0) & broken[kinks]).any(axis=1)
    return jumps


def _by_themselves(sampler: Sampler, found: Entries, wrong: Mask, rows: Index) -> tuple[Mask, Mask]:
    """Whether the wrong entries of rows are slopes nearby, and whether one is certainly none; shape (rows,).

    A kink somewhere in its row is no excuse for an entry in whose input f is smooth at all points nearby: the slopes are
    the same there, or more so the nearer to x. Where an input shows the kink at x itself, only a slope that is seen
    nearby is one.
    """
    columns = np.flatnonzero(wrong[:, rows].any(axis=1))[:AT_MOST]
    there = np.ix_(columns, rows)
    points = _neighbours(sampler, NEIGHBOURS)
    around = _alone(sampler, found, columns, rows, points)
    closer = _alone(sampler, found, columns, rows, points, CLOSER, SHORTER)
    smooth = closer.width <= FALLEN * around.width
    off, far, same = around.off, around.far, around.same
    again = np.flatnonzero((wrong[there] & off & found.broken[there]).any(axis=1))
    if len(again):
        most = min(min(EVALUATIONS, NUMBERS // sampler.x.size) // (4 * len(again)), EACH * _orders(sampler.x.size))
        more = _alone(sampler, found, columns[again], rows, _neighbours(sampler, max(NEIGHBOURS, most)))
        for before, now in ((off, more.off), (far, more.far), (same, more.same)):
            before[again] &= now
    certain = wrong[there] & (same | (smooth & closer.off) | (off & found.broken[there]))
    return np.asarray(~(wrong[there] & (far | smooth)).any(axis=0)), np.asarray(certain.any(axis=0))


def _alone(
    sampler: Sampler,
    found: Entries,
    columns: Index,
    rows: Index,
    points: Array,
    away: float = AWAY,
    step: float = STEP,
) -> _Around:
    """The entries one by one, shape (columns, rows), beside slopes of f along each input."""
    scale = sampler.unit[columns]
    claimed = found.analytical[np.ix_(columns, rows)] * (scale / found.directions.weights[columns])[:, None]
    return _Around(slopes_around(sampler, columns, np.eye(len(columns)), rows, points, away, step), claimed)


def _neighbours(sampler: Sampler, count: int) -> Array:
    """Points around x in units of the distance, shape (2 * count, n): anywhere, and moved up or down altogether.

    The smallest of many numbers is positive at hardly a point among those anywhere.
    """
    anywhere, amounts = sampler.rng.uniform(-1.0, 1.0, (2, count, sampler.x.size))
    ways = np.where(np.arange(count) % 2, 1.0, -1.0)[:, None]
    return np.concatenate([anywhere, ways * np.abs(amounts)])


def _orders(n: int) -> int:
    """How many pieces comparisons of n numbers and of their signs may cut their neighbourhood into."""
    return 2**n * factorial(n) if n < 9 else EVALUATIONS


class _Around:
    """The claimed slopes along probes, beside those of f around x; attributes have shape (probes, rows).

    Slopes that nearby points have anything between, such as those of equal eigenvalues, are not seen up to the last.

    Args:
        slopes: of f, shape (probes, points, rows).
        claimed: shape (probes, rows).

    Attributes:
        width: of the range that the slopes are in.
        off: where the claimed slope is beyond them.
        far: where it is far beyond.
        same: where they are all the same.
    """

    def __init__(self, slopes: Array, claimed: Array) -> None:
        low, high = np.fmin.reduce(slopes, axis=1), np.fmax.reduce(slopes, axis=1)
        size = np.maximum(np.abs(slopes).max(axis=1), np.abs(claimed))
        beyond = np.maximum(low - claimed, claimed - high) - ROUNDING * size
        self.width: Array = high - low
        self.off: Mask = beyond > LOOSE * self.width
        self.far: Mask = beyond > UNSEEN * self.width
        self.same: Mask = self.width <= LOOSE * size


def _bent(
    sampler: Sampler,
    columns: Index,
    probes: Array,
    rows: Index,
    summed: Array,
    slack: Array,
    excess: Array,
    rules: Rules,
) -> Mask:
    """Whether the slope along some probe is no sum of partial derivatives, beyond the error bars; shape (rows,).

    ``summed`` are the sums of the estimated partial derivatives, give or take ``slack``. What ``excess`` over them is
    to be excused, shape (rows,), must show: where f is 0 up to terms of second order, rounding alone looks bent.
    """
    k = len(columns)
    weights = (probes * sampler.unit[columns]).ravel()
    oblique = Directions(sampler.x.size, np.arange(len(probes) + 1) * k, np.tile(columns, len(probes)), weights)
    slope = _look_along(sampler, oblique, rules)
    value, bar = slope.value[:, rows], slope.bar[:, rows]
    apart = np.abs(value - summed) > 2 * (bar + slack) + BENT * np.abs(value)
    step = np.sqrt(rules.eps) * np.array([1.0, -1.0])[:, None, None]
    values = sampler.f((sampler.x + step * oblique.dense()).reshape(-1, sampler.x.size))
    quotients = (values[:, rows].reshape(2, *value.shape) - sampler.here[rows]) / step
    shows = np.abs(quotients - summed).max(axis=0) > BENT * excess
    return np.asarray(((apart | slope.broken[:, rows]) & shows).any(axis=0))


def _look_along(sampler: Sampler, directions: Directions, rules: Rules) -> Reading:
    """The derivatives along directions, read off the long ladder; shapes (C, m)."""
    sampled = sampler.climb(directions, long_ladder(rules.eps, sampler.share[directions.columns], rules.farthest))
    nothing = np.zeros((len(directions), len(sampler.here)))
    context = Context(*[nothing] * 3, *[nothing[0]] * 4)
    two = read(sampled, sampler.here, sampler.noise, nothing, context, rules)
    # A kink beside x is one at x for who takes it for noise.
    return two.bold.where(two.cautious.broken & ~two.bold.broken, two.cautious)

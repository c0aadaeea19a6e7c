"""The numerical side: derivatives along directions with a bar on every entry, compared with the analytical side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from multigrad._comparison import acceptance, verdict
from multigrad._comparison.averaging import average
from multigrad._comparison.context import Context
from multigrad._comparison.dust import ULPS
from multigrad._comparison.entries import Entries
from multigrad._comparison.nothing import are_all, are_dust, are_nothing
from multigrad._comparison.reading import Reading, read
from multigrad._comparison.regrouping import regroup
from multigrad._comparison.staircases import staircases, staircases_on_slopes
from multigrad._comparison.verdict import Codes, Rules, Status
from multigrad._differences import kinks, ladder
from multigrad._differences.directions import Directions, Index, Mask
from multigrad._differences.estimate import estimate, quotients
from multigrad._differences.sampler import BLOCK, Sampler
from multigrad._differences.steepness import Steepness
from multigrad.backends import Array, Leaf

# Directions that go up the long ladder at once; where a whole block of them is wrong, the rest is not tried.
SUSPECTS = 256
# Points are made once, and values are gone through dozens of times: so many times as many numbers of them go into a block.
POINTS = 4


class Numerical:
    """Compares derivatives with what f does around x, as far as it has been looked at.

    Args:
        sampler: f at x and around it.
        outputs: the leaves that f returns.
        rules: the constants of the verdict.
        progress: told what is done, how much of it, of how much.
    """

    def __init__(
        self,
        sampler: Sampler,
        outputs: Sequence[Leaf],
        rules: Rules,
        progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> None:
        self.sampler = sampler
        self.outputs = outputs
        self.rules = rules
        self.progress = progress
        # Of all directions on the short ladder.
        self._steepness = Steepness(np.zeros_like(sampler.here), np.zeros_like(sampler.here))
        # Of those that move no tiny input.
        self._nearby = self._steepness

    def compare(self, directions: Directions, analytical: Array) -> Entries:
        """Compare ``analytical``, the derivatives along the directions, shape (C, m), with f."""
        with np.errstate(all="ignore"):
            context = self._context(directions, analytical)
            found = self._compare(directions, analytical, context)
            self._admit_ignorance(found, context)
            return found

    def _compare(self, directions: Directions, analytical: Array, context: Context) -> Entries:
        with np.errstate(all="ignore"):
            count, m = analytical.shape
            found = Entries.blank(directions, analytical)
            sure = np.empty((count, m), np.bool_)
            size = max(1, self.sampler.f.workers * BLOCK // max(m, self.sampler.x.size // POINTS, 1))
            self.sampler.f.expect(2 * len(ladder.short_ladder(self.rules.eps)) * count)
            for start in range(0, count, size):
                block = slice(start, min(start + size, count))
                sure[block] = self._short(directions.take(block), found, block, context)
                self.progress("directions compared", block.stop, count)
            self._long(directions, found, sure, context)
            average(self.sampler, found, partial(self._own_far, context), self.rules)
            verdict.admit_cone_tips(found.status, analytical, found.broken)
            nothing, unknown = are_nothing(found, self.sampler, self._steepness, self.rules)
            found.status[nothing & (found.status > Status.UNRESOLVED)] = Status.UNRESOLVED
            found.status[unknown] = np.minimum(found.status[unknown], np.int8(Status.INCONCLUSIVE))
            unperturbed = ~np.isfinite(self.sampler.x[directions.columns])
            found.status[directions.rows[unperturbed]] = Status.UNRESOLVED
            found.status[:, ~np.isfinite(self.sampler.here)] = Status.INCONCLUSIVE
        return found

    def unfold(self, found: Entries, units: Directions, J: Array) -> Entries:
        """Make the comparison along unit vectors of one along groups.

        Groups in which something is not plainly right are compared anew, column by column.

        Args:
            found: the comparison along groups.
            units: one direction for each input.
            J: the derivative under test, shape (m, n).
        """
        groups = np.flatnonzero((found.status > Status.UNRESOLVED).any(axis=1))
        columns = np.sort(found.directions.take(groups).columns)
        weights = units.weights[:, None]
        every = Entries.blank(units, units.times(J))
        every.record(..., found.numeric.T * weights, found.bars.T * weights, found.statuses.T)
        with np.errstate(all="ignore"):
            context = self._context(units, every.analytical)
        part = self._compare(units.take(columns), every.analytical[columns], context.of(columns))
        every.record(columns, part.value, part.bar, part.status)
        every.record_smoothness(columns, part.broken, part.smooth)
        every.unexplored = part.unexplored
        self._admit_ignorance(every, context)
        return every

    def _admit_ignorance(self, found: Entries, context: Context) -> None:
        """Where not one entry that is not 0 was resolved, what is unresolved is all that there is to tell.

        It is dust nevertheless where f does not move on the large steps of the long ladder either, as a softmax that
        is summed up; but beside values that could hide anything else nothing counts as dust.
        """
        hidden = ~context.tells_zero(found.bar, self.rules.resolution)
        doubtful = are_all(found, hidden)
        if not doubtful.any():
            return
        nothing, _ = are_nothing(found, self.sampler, self._steepness, self.rules)
        doubtful &= ~nothing & (hidden | ~are_dust(found, context.dust))
        if np.count_nonzero(doubtful.any(axis=1)) <= 4 * SUSPECTS:
            self._follow(found.directions, found, ~doubtful, context)
        if not (np.abs(found.analytical[found.status == Status.OK]) > 0).any():
            told = (found.status == Status.OK) | are_dust(found, np.minimum(context.dust, ULPS * self.rules.eps))
            found.status[doubtful & ~told] = Status.INCONCLUSIVE

    def _short(self, directions: Directions, found: Entries, block: slice, context: Context) -> Mask:
        exponents = ladder.short_ladder(self.rules.eps)
        sampled = self.sampler.climb(directions, exponents)
        self._steepness = self._steepness.or_more(self.sampler.steepness(sampled))
        self._nearby = self._nearby.or_more(self._steepness_nearby(directions, sampled))
        # What is 0 beside what f does a step away may not be 0 on smaller steps, which are for the long ladder.
        own = self._own(context, block)
        analytical = found.analytical[block]
        plain = self._accept(sampled, exponents, analytical, own)
        found.record(block, plain.value, plain.bar, Status.OK)
        sure = plain.accepted
        if sure.all():
            return sure
        c, i = np.nonzero(~sure)
        status, value, bar, sharp = self._judge(sampled.at(c, i), analytical[None, c, i], own.at(c, i), i)
        found.record((block.start + c, i), value, bar, status)
        sure[c, i] = sharp
        return sure

    def _steepness_nearby(self, directions: Directions, sampled: ladder.Samples) -> Steepness:
        if not self.sampler.has_tiny:
            return self._steepness
        whole = (directions.most(self.sampler.share) == 1).all(axis=1)
        return self.sampler.steepness(sampled.along(whole)) if whole.any() else self._nearby

    def _accept(
        self, sampled: ladder.Samples, exponents: Array, analytical: Array, own: Context
    ) -> acceptance.Acceptance:
        at = self.sampler
        return acceptance.accept(sampled, np.exp2(exponents), at.here, at.noise, analytical, own, self.rules)

    def _judge(
        self, sampled: ladder.Samples, analytical: Array, own: Context, outputs: Index
    ) -> tuple[Codes, Array, Array, Mask]:
        """Judge single places on the short ladder, as one direction; ``outputs`` are those that they belong to."""
        at = self.sampler
        q = quotients(sampled, at.here[outputs], at.noise.at(outputs), self.rules.eps)
        best = estimate(q.central, q.central_noise, sampled.ratio)
        said = verdict.judge(analytical, best, own, self.rules)
        sharp = said.sharp & ~kinks.suspected(q, sampled.up, self.rules.rtol * own.scale)
        return said.status[0], best.value[0], best.bar[0], sharp[0]

    def _long(self, directions: Directions, found: Entries, sure: Mask, context: Context) -> None:
        for look in (self._look_closer, self._follow):
            packed = regroup(directions, ~sure)
            if packed is not None:
                part, told = packed.entries(found), packed.take(sure, True).astype(np.bool_)
                look(packed.directions, part, told, packed.context(context))
                packed.write(part, found)
                packed.put(told, sure)
            look(directions, found, sure, context)

    def _look_closer(self, directions: Directions, found: Entries, sure: Mask, context: Context) -> None:
        """Accept on a short ladder of smaller steps what has a kink nearby; zeros are for the long one."""
        suspicious = np.flatnonzero(~sure.all(axis=1))
        exponents = ladder.closer_ladder(self.rules.eps)
        size = max(1, BLOCK // max(found.analytical.shape[1], self.sampler.x.size, 1))
        for start in range(0, len(suspicious) * bool(len(exponents)), size):
            chosen = suspicious[start : start + size]
            sampled = self.sampler.climb(directions.take(chosen), exponents)
            analytical, own = found.analytical[chosen], self._own(context, chosen)
            plain = self._accept(sampled, exponents, analytical, own)
            c, i = np.nonzero(plain.accepted & ~sure[chosen] & (analytical != 0))
            places = chosen[c], i
            found.record(places, plain.value[c, i], plain.bar[c, i], Status.OK)
            sure[places] = True

    def _follow(self, directions: Directions, found: Entries, sure: Mask, context: Context) -> None:
        suspicious = np.flatnonzero(~sure.all(axis=1))
        if not len(suspicious):
            return
        excess = np.abs(found.analytical - found.value) / np.maximum(found.bar, 1e-300)
        excess[~np.isfinite(excess)] = np.inf
        suspicious = suspicious[np.argsort(-excess[suspicious].max(axis=1), kind="stable")]
        size = max(1, min(SUSPECTS, 8 * BLOCK // max(found.analytical.shape[1], self.sampler.x.size, 1)))
        for start in range(0, len(suspicious), size):
            chosen = suspicious[start : start + size]
            self._explore(directions, chosen, found, sure, context)
            self.progress("suspicious directions looked at", start + len(chosen), len(suspicious))
            wrong = (found.status[chosen] == Status.MISMATCH).any(axis=1)
            left = suspicious[start + size :]
            if wrong.all() and start + size >= SUSPECTS and len(left):
                found.unexplored = len(left)
                found.status[left] = np.where(sure[left], found.status[left], Status.INCONCLUSIVE)
                break
        sure[suspicious] = True

    def _explore(self, directions: Directions, chosen: Index, found: Entries, sure: Mask, context: Context) -> None:
        x, part = self.sampler.x, directions.take(chosen)
        self.sampler.look_beside()
        c, i = np.nonzero(~sure[chosen])
        exponents = ladder.long_ladder(self.rules.eps, self.sampler.share[part.columns], self.rules.farthest)
        reading, _ = self._interpret(
            part, exponents, c, i, found.analytical[chosen[c], i], self._own_far(context, chosen)
        )
        _keep(reading, found, (chosen[c], i), np.ones(len(c), np.bool_))
        untold = (reading.status[0] == Status.INCONCLUSIVE) & (reading.bar[0] > np.abs(reading.value[0]))
        untold &= (part.sums((x[part.columns] != 0).astype(np.float64)) == 0)[c]
        if untold.any():
            self._look_beside_zeros(part, chosen, c[untold], i[untold], found, context)

    def _look_beside_zeros(
        self, part: Directions, chosen: Index, c: Index, i: Index, found: Entries, context: Context
    ) -> None:
        """Accept places (c, i) of the ``chosen`` directions on steps below those of the long ladder.

        Steps so small may be lost in some terms of f and not in others: they can tell that a value is right, not wrong.
        """
        rows, c = np.unique(c, return_inverse=True)
        part, chosen = part.take(rows), chosen[rows]
        exponents, own = ladder.zeros_ladder(self.rules.eps), self._own_far(context, chosen)
        reading, moves = self._interpret(part, exponents, c, i, found.analytical[chosen[c], i], own)
        _keep(reading, found, (chosen[c], i), moves & (reading.status[0] == Status.OK))

    def _interpret(
        self, part: Directions, exponents: Array, c: Index, i: Index, analytical: Array, own: Context
    ) -> tuple[Reading, Mask]:
        """Read places (c, i) along the directions ``part`` from a ladder; ``analytical`` is of the places.

        Returns:
            The reading, shape (1, places), and whether f moves on the smallest steps, shape (places,).
        """
        at, farthest = self.sampler, self.rules.farthest
        sampled = at.climb(part, exponents)
        places = sampled.at(c, i)
        two = read(places, at.here[i], at.noise.at(i), analytical[None], own.at(c, i), self.rules)
        reading = two.settle(*staircases(at, part, two, c, i, farthest))
        reading = reading.untold(staircases_on_slopes(at, part, places, reading, c, i, farthest))
        return reading, two.flat[0] == 0

    def _context(self, directions: Directions, analytical: Array) -> Context:
        at = self.sampler
        context = Context.along(directions, analytical, at.share, at.here, self.outputs, self.rules.eps)
        derivatives = np.max(np.abs(analytical), axis=0, initial=0.0, where=np.isfinite(analytical))
        return replace(context, moved=at.moved(derivatives, self.rules.farthest))

    def _own(self, context: Context, block: Index | slice) -> Context:
        """What some of the directions are judged against, now that f has been seen."""
        return replace(context.of(block), noise=self.sampler.excusable)

    def _own_far(self, context: Context, chosen: Index) -> Context:
        """The same for the long ladder, once f has been seen on the short one."""
        at = self.sampler
        far = replace(at.aside, reach=np.maximum(self._steepness.curved, at.aside.reach))
        near = replace(at.beside, reach=np.maximum(self._nearby.curved, at.beside.reach))
        return self._own(context, chosen).curving(far, near, at.within)


def _keep(reading: Reading, found: Entries, places: tuple[Index, Index], kept: Mask) -> None:
    """Record what was read, shape (1, places), of the places that are ``kept``."""
    c, i = (index[kept] for index in places)
    found.record((c, i), reading.value[0, kept], reading.bar[0, kept], reading.status[0, kept])
    found.record_smoothness((c, i), reading.broken[0, kept], reading.smooth[0, kept])

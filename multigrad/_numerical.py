"""The numerical side: derivatives along directions with a bar on every entry, compared with the analytical side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from multigrad import _acceptance, _fit, _kinks, _ladder, _verdict
from multigrad._context import Context
from multigrad._directions import Directions, Index
from multigrad._dust import ULPS
from multigrad._entries import Entries
from multigrad._estimate import estimate, quotients
from multigrad._kinks import Mask
from multigrad._reading import read
from multigrad._regrouping import regroup
from multigrad._sampler import Sampler
from multigrad._staircases import staircases, staircases_on_slopes
from multigrad._steepness import Steepness
from multigrad._verdict import Codes, Rules, Status
from multigrad.backends import Array, Leaf

# Entries of a block of directions times outputs: the block's arrays then stay in the L2 cache.
BLOCK = 2**15
# Directions that go up the long ladder at once; where a whole block of them is wrong, the rest is not tried.
SUSPECTS = 256


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
            found = Entries(
                directions,
                analytical,
                value=np.empty((count, m)),
                bar=np.empty((count, m)),
                status=np.empty((count, m), np.int8),
                broken=np.zeros((count, m), np.bool_),
                smooth=np.full((count, m), np.inf),
            )
            sure = np.empty((count, m), np.bool_)
            size = max(1, self.sampler.f.workers * BLOCK // max(m, self.sampler.x.size, 1))
            for start in range(0, count, size):
                block = slice(start, min(start + size, count))
                sure[block] = self._short(directions.take(block), found, block, context)
                self.progress("directions compared", block.stop, count)
            self._long(directions, found, sure, context)
            self._average(directions, found, context)
            _verdict.admit_cone_tips(found.status, analytical, found.broken)
            self._spare_rounding_of_nothing(found)
            unperturbed = ~np.isfinite(self.sampler.x[directions.columns])
            found.status[directions.rows[unperturbed]] = Status.UNRESOLVED
            found.status[:, ~np.isfinite(self.sampler.here)] = Status.INCONCLUSIVE
        return found

    def _spare_rounding_of_nothing(self, found: Entries) -> None:
        found.status[self._is_nothing(found) & (found.status > Status.UNRESOLVED)] = Status.UNRESOLVED

    def _is_nothing(self, found: Entries) -> Mask:
        """Where f is 0 all around, or no more than its noise, and a derivative what rounding leaves of terms that cancel."""
        noise, rounding = self.sampler.noise, ULPS * self.rules.eps
        near = np.maximum(np.abs(self.sampler.here), noise.level)
        beside = self._steepness.largest * np.exp2(_ladder.short_ladder(self.rules.eps)[-1])
        nothing = (np.maximum(near, beside) <= rounding) & (near <= ULPS * noise.sigma)
        return np.asarray(nothing & (np.abs(found.analytical) <= rounding))

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
        every = Entries(
            units,
            units.times(J),
            found.numeric.T * weights,
            found.bars.T * weights,
            found.statuses.T.copy(),
            np.zeros((units.n, J.shape[0]), np.bool_),
            np.full((units.n, J.shape[0]), np.inf),
        )
        with np.errstate(all="ignore"):
            context = self._context(units, every.analytical)
        part = self._compare(units.take(columns), every.analytical[columns], context.of(columns))
        for kept, new in (
            (every.value, part.value),
            (every.bar, part.bar),
            (every.status, part.status),
            (every.broken, part.broken),
            (every.smooth, part.smooth),
        ):
            kept[columns] = new
        every.unexplored = part.unexplored
        self._admit_ignorance(every, context)
        return every

    def _admit_ignorance(self, found: Entries, context: Context) -> None:
        """Where not one entry that is not 0 was resolved, what is unresolved is all that there is to tell.

        It is dust nevertheless where f does not move on the large steps of the long ladder either, as a softmax that
        is summed up; but beside values that could hide anything else nothing counts as dust.
        """
        doubtful = _are_all(found) & ~self._is_nothing(found) & ~_are_dust(found, context.dust)
        if np.count_nonzero(doubtful.any(axis=1)) <= 4 * SUSPECTS:
            self._follow(found.directions, found, ~doubtful, context)
        if not (np.abs(found.analytical[found.status == Status.OK]) > 0).any():
            told = (found.status == Status.OK) | _are_dust(found, np.minimum(context.dust, ULPS * self.rules.eps))
            found.status[doubtful & ~told] = Status.INCONCLUSIVE

    def _short(self, directions: Directions, found: Entries, block: slice, context: Context) -> Mask:
        exponents = _ladder.short_ladder(self.rules.eps)
        sampled = self.sampler.climb(directions, exponents)
        self._steepness = self._steepness.or_more(self.sampler.steepness(sampled))
        # What is 0 beside what f does a step away may not be 0 on smaller steps, which are for the long ladder.
        own = self._own(context, block)
        analytical = found.analytical[block]
        plain = self._accept(sampled, exponents, analytical, own)
        found.value[block], found.bar[block], sure = plain.value, plain.bar, plain.accepted
        found.status[block] = Status.OK
        if sure.all():
            return sure
        c, i = np.nonzero(~sure)
        status, value, bar, sharp = self._judge(sampled.at(c, i), analytical[None, c, i], own.at(c, i), i)
        for kept, new in ((found.status, status), (found.value, value), (found.bar, bar)):
            kept[block.start + c, i] = new
        sure[c, i] = sharp
        return sure

    def _accept(
        self, sampled: _ladder.Samples, exponents: Array, analytical: Array, own: Context
    ) -> _acceptance.Acceptance:
        at = self.sampler
        return _acceptance.accept(sampled, np.exp2(exponents), at.here, at.noise, analytical, own, self.rules)

    def _judge(
        self, sampled: _ladder.Samples, analytical: Array, own: Context, outputs: Index
    ) -> tuple[Codes, Array, Array, Mask]:
        """Judge single places on the short ladder, as one direction; ``outputs`` are those that they belong to."""
        at = self.sampler
        q = quotients(sampled, at.here[outputs], at.noise.at(outputs), self.rules.eps)
        best = estimate(q.central, q.central_noise, sampled.ratio)
        said = _verdict.judge(analytical, best, own, self.rules)
        sharp = said.sharp & ~_kinks.suspected(q, sampled.up, self.rules.rtol * own.scale)
        return said.status[0], best.value[0], best.bar[0], sharp[0]

    def _long(self, directions: Directions, found: Entries, sure: Mask, context: Context) -> None:
        for look in (self._look_closer, self._follow):
            packed = regroup(directions, ~sure)
            if packed is not None:
                part, told = packed.entries(found), packed.take(sure, True).astype(np.bool_)
                look(packed.directions, part, told, packed.context(context))
                for new, kept in ((part.value, found.value), (part.bar, found.bar), (part.status, found.status)):
                    packed.put(new, kept)
                packed.put(part.broken, found.broken)
                packed.put(part.smooth, found.smooth)
                packed.put(told, sure)
                found.unexplored = part.unexplored
            look(directions, found, sure, context)

    def _look_closer(self, directions: Directions, found: Entries, sure: Mask, context: Context) -> None:
        """Accept on a short ladder of smaller steps what has a kink nearby; zeros are for the long one."""
        suspicious = np.flatnonzero(~sure.all(axis=1))
        exponents = _ladder.closer_ladder(self.rules.eps)
        size = max(1, BLOCK // max(found.analytical.shape[1], self.sampler.x.size, 1))
        for start in range(0, len(suspicious) * bool(len(exponents)), size):
            chosen = suspicious[start : start + size]
            sampled = self.sampler.climb(directions.take(chosen), exponents)
            analytical, own = found.analytical[chosen], self._own(context, chosen)
            plain = self._accept(sampled, exponents, analytical, own)
            c, i = np.nonzero(plain.accepted & ~sure[chosen] & (analytical != 0))
            places = chosen[c], i
            found.value[places], found.bar[places], found.status[places] = plain.value[c, i], plain.bar[c, i], Status.OK
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
        at, part = self.sampler, directions.take(chosen)
        exponents = _ladder.long_ladder(self.rules.eps, at.x[part.columns], self.rules.farthest)
        untold = self._interpret(part, chosen, exponents, ~sure[chosen], found, context)
        # Steps so small may be lost in some terms of f and not in others: they can tell that a value is right, not wrong.
        untold[part.sums((at.x[part.columns] != 0).astype(np.float64)) > 0] = False
        rows = np.flatnonzero(untold.any(axis=1))
        if len(rows):
            exponents = _ladder.zeros_ladder(self.rules.eps)
            self._interpret(part.take(rows), chosen[rows], exponents, untold[rows], found, context, only_accept=True)

    def _interpret(
        self,
        part: Directions,
        chosen: Index,
        exponents: Array,
        asked: Mask,
        found: Entries,
        context: Context,
        only_accept: bool = False,
    ) -> Mask:
        """Read entries that are ``asked`` for, shape (C, m), from a ladder, and keep all, or what is accepted by motion.

        Returns:
            Where nothing is told, and no estimate is larger than its bar.
        """
        at = self.sampler
        sampled = at.climb(part, exponents)
        c, i = np.nonzero(asked)
        analytical = found.analytical[chosen[c], i][None]
        own = replace(self._own(context, chosen), reach=self._reach).at(c, i)
        two = read(sampled.at(c, i), at.here[i], at.noise.at(i), analytical, own, self.rules)
        reading = two.settle(*staircases(at, part, two, c, i, self.rules.farthest))
        reading = reading.untold(staircases_on_slopes(at, part, sampled.at(c, i), reading, c, i, self.rules.farthest))
        kept = np.full(len(c), not only_accept) | ((two.flat[0] == 0) & (reading.status[0] == Status.OK))
        places = chosen[c[kept]], i[kept]
        found.broken[places], found.smooth[places] = reading.broken[0, kept], reading.smooth[0, kept]
        found.status[places] = reading.status[0, kept]
        found.value[places], found.bar[places] = reading.value[0, kept], reading.bar[0, kept]
        untold = np.zeros_like(asked)
        untold[c, i] = (reading.status[0] == Status.INCONCLUSIVE) & (reading.bar[0] > np.abs(reading.value[0]))
        return untold

    def _average(self, directions: Directions, found: Entries, context: Context) -> None:
        """Take another look at entries that rounding hides: both sides agree, but the bar is too wide to say so."""
        close = np.abs(found.analytical - found.value) <= 2 * found.bar
        hidden = (found.status == Status.INCONCLUSIVE) & close & np.isfinite(found.bar) & ~found.broken
        chosen = np.flatnonzero(hidden.any(axis=1))
        if found.unexplored or not 0 < len(chosen) <= _fit.AT_MOST:
            return
        size = max(1, BLOCK // max(found.analytical.shape[1], self.sampler.x.size, 1))
        for start in range(0, len(chosen), size):
            some = chosen[start : start + size]
            at = _fit.exponents(self.sampler.rng, self.rules.farthest)
            values, up, down = self.sampler.along(directions.take(some), at)
            fitted = _fit.fit(values, up, down, at, self.rules.eps, found.smooth[some])
            own = replace(self._own(context, some), reach=self._reach)
            status = _verdict.judge(found.analytical[some], fitted, own, self.rules).status
            # The fit has larger steps than what it is to sharpen, which it must not contradict.
            within = np.abs(fitted.value - found.value[some]) <= found.bar[some] + fitted.bar
            sharp = (status < Status.INCONCLUSIVE) | (fitted.bar <= self.rules.resolution * np.abs(fitted.value))
            better = hidden[some] & within & sharp & (fitted.bar < found.bar[some]) & (status != Status.INCONCLUSIVE)
            for kept, new in ((found.status, status), (found.value, fitted.value), (found.bar, fitted.bar)):
                kept[some] = np.where(better, new, kept[some])

    def _context(self, directions: Directions, analytical: Array) -> Context:
        at = self.sampler
        return Context.along(directions, analytical, at.x, at.here, self.outputs, self.rules.eps)

    def _own(self, context: Context, block: Index | slice) -> Context:
        """What some of the directions are judged against, now that f has been seen."""
        return replace(context.of(block), noise=self.sampler.excusable)

    @property
    def _reach(self) -> Array:
        return self._steepness.or_more(self.sampler.aside).curved


def _are_all(found: Entries) -> Mask:
    """The unresolved entries, if no other was resolved but zeros."""
    unresolved = (found.status == Status.UNRESOLVED) & (found.analytical != 0)
    return np.asarray(unresolved & ~((found.analytical != 0) & ~unresolved).any())


def _are_dust(found: Entries, dust: Array) -> Mask:
    return np.asarray((found.status == Status.UNRESOLVED) & (np.maximum(np.abs(found.analytical), found.bar) <= dust))

"""The numerical side: derivatives along directions with a bar on every entry, compared with the analytical side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from multigrad import _acceptance, _fit, _kinks, _ladder, _noise, _plateaus, _verdict
from multigrad._batches import Batched
from multigrad._directions import Directions, Index, scale_of, share_of
from multigrad._dust import ULPS, rounding_dust
from multigrad._entries import Entries
from multigrad._estimate import Estimate, Quotients, estimate, quotients
from multigrad._kinks import Mask
from multigrad._noise import Noise
from multigrad._reading import Reading, TwoReadings, read
from multigrad._regrouping import regroup
from multigrad._verdict import Codes, Context, Rules, Status
from multigrad.backends import Array, Leaf

# Entries of a block of directions times outputs: the block's arrays then stay in the L2 cache.
BLOCK = 2**15
# Doubles in the points of a ladder that are made at once: 128 MB.
AT_ONCE = 2**24
# Longer points and values than this have their noise measured line by line.
LONG = 2**16
# Directions that go up the long ladder at once; where a whole block of them is wrong, the rest is not tried.
SUSPECTS = 256
# Noise of values, relative to their size, is no excuse beyond this: entries are then not small, but hidden.
NOISIEST = 1e-4
# Beyond this it may be what f does on far steps.
STEEP = 1e-10


class Numerical:
    """f at x and around it, as far as it has been looked at."""

    def __init__(
        self,
        f: Batched,
        x: Array,
        here: Array,
        outputs: Sequence[Leaf],
        rules: Rules,
        rng: np.random.Generator,
        jitter: Array | float = 0.0,
        progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> None:
        """Start at ``x``, shape (n,), where f is ``here``, shape (m,), in the leaves ``outputs``, give or take ``jitter``."""
        self.f = f
        self.x = x
        self.here = here
        self.outputs = outputs
        self.rules = rules
        self.rng = rng
        self.jitter = jitter
        self.progress = progress
        self.noise: Noise | None = None
        # The largest one-sided quotient on a short ladder, for each output.
        self.swing = np.zeros_like(here)

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
            size = max(1, self.f.workers * BLOCK // max(m, self.x.size, 1))
            for start in range(0, count, size):
                block = slice(start, min(start + size, count))
                sure[block] = self._short(directions.take(block), found, block, context)
                self.progress("directions compared", block.stop, count)
            self._long(directions, found, sure, context)
            self._average(directions, found, context)
            _verdict.admit_cone_tips(found.status, analytical, found.broken)
            self._spare_rounding_of_nothing(found)
            unperturbed = ~np.isfinite(self.x[directions.columns])
            found.status[directions.rows[unperturbed]] = Status.UNRESOLVED
            found.status[:, ~np.isfinite(self.here)] = Status.INCONCLUSIVE
        return found

    def _spare_rounding_of_nothing(self, found: Entries) -> None:
        """Where f is exactly 0 all around, a derivative may be what rounding leaves of terms that cancel."""
        if self.noise is None:  # there are no directions
            return
        nothing = (self.here == 0) & (self.noise.level == 0) & (self.swing == 0)
        rounding = nothing & (np.abs(found.analytical) <= ULPS * self.rules.eps)
        found.status[rounding & (found.status == Status.MISMATCH)] = Status.UNRESOLVED

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
        """Where not one entry that is not 0 was resolved, what is unresolved is all that there is to tell."""
        claimed = np.abs(found.analytical)
        dust = np.maximum(claimed, found.bar) <= context.dust
        if not ((found.status != Status.UNRESOLVED) & (claimed > 0)).any():
            found.status[(found.status == Status.UNRESOLVED) & (claimed > 0) & ~dust] = Status.INCONCLUSIVE

    def compare_at(self, eps: float, J: Array) -> Entries:
        """Compare the Jacobian, shape (m, n), with one central difference of the absolute step ``eps``.

        The bar is how much the difference changes when the step is doubled.
        """
        n = self.x.size
        directions = Directions(n, np.arange(n + 1), np.arange(n), np.full(n, eps))
        analytical = directions.times(J)
        exponents = np.array([1.0, 0.0])
        with np.errstate(all="ignore"):
            context = self._context(directions, analytical)
            q = self._quotients(self._climb(directions, exponents))
            value = q.central[-1]
            best = Estimate(value, np.abs(value - q.central[0]) + q.central_noise[-1])
            self.swing = np.maximum(
                self.swing, np.where(np.isfinite(value), np.abs(value), 0.0).max(axis=0, initial=0.0)
            )
            own = self._own(context, slice(None))
            status = _verdict.judge(analytical, best, own, self.rules).status
            steady = np.abs(q.forward - q.backward)
            kink = (steady[-1] > 4 * q.forward_noise[-1]) & (steady[-1] > 0.9 * steady[0])
            low, high = np.minimum(q.forward[-1], q.backward[-1]), np.maximum(q.forward[-1], q.backward[-1])
            never = np.zeros_like(kink)
            kinks = _kinks.Kinks(kink, never, low - best.bar, high + best.bar, best, best, never)
            status = _verdict.admit_kinks(status, analytical, kinks)
        return Entries(directions, analytical, value, best.bar, status, kink, np.full_like(value, np.inf))

    def look_along(self, directions: Directions) -> Reading:
        """The derivatives along directions, read off the long ladder; shapes (C, m)."""
        sampled = self._climb(directions, _ladder.long_ladder(self.rules.eps, self.x[directions.columns]))
        assert self.noise is not None
        nothing = np.zeros((len(directions), len(self.here)))
        context = Context(nothing, nothing, nothing, nothing[0], nothing[0])
        two = read(sampled, self.here, self.noise, self.jitter, nothing, context, self.rules)
        # A kink beside x is one at x for who takes it for noise.
        return two.bold.where(two.cautious.broken & ~two.bold.broken, two.cautious)

    @property
    def relative_noise(self) -> Array:
        """Noise of each output as a fraction of its size, shape (m,)."""
        return np.zeros_like(self.here) if self.noise is None else self.noise.relative

    def _context(self, directions: Directions, analytical: Array) -> Context:
        size = np.where(np.isfinite(analytical), np.abs(analytical), 0.0)
        # What f's rounding alone could make of an entry that is 0: a value over a step of one scale.
        values = np.abs(np.where(np.isfinite(self.here), self.here, 0.0))
        # A tiny input is moved by far more than itself: what it would add by that is no measure of the others.
        share = directions.most(share_of(self.x))
        beside = size * share if (share < 1).any() else size
        dust = np.broadcast_to(rounding_dust(beside, values, self.outputs, self.rules.eps), size.shape)
        scale = np.broadcast_to(np.maximum(beside.max(axis=0, initial=0.0), values), size.shape)
        length = directions.lengths
        row = length * np.maximum((size / length).max(axis=0, initial=0.0), values)
        return Context(scale, row, dust, np.zeros(analytical.shape[1]), np.zeros(analytical.shape[1]))

    def _short(self, directions: Directions, found: Entries, block: slice, context: Context) -> Mask:
        exponents = _ladder.short_ladder(self.rules.eps)
        sampled = self._climb(directions, exponents)
        assert self.noise is not None
        error = np.maximum(self.noise.of(np.abs(self.here), self.rules.eps), self.jitter)
        self.swing = np.maximum(self.swing, _acceptance.swing(sampled, self.here, error))
        # What is 0 beside what f does a step away may not be 0 on smaller steps, which are for the long ladder.
        own = replace(self._own(context, block), reach=np.zeros_like(self.here))
        analytical = found.analytical[block]
        plain = _acceptance.accept(
            sampled, np.exp2(exponents), self.here, self.noise, self.jitter, analytical, own, self.rules
        )
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

    def _judge(
        self, sampled: _ladder.Samples, analytical: Array, own: Context, outputs: Index
    ) -> tuple[Codes, Array, Array, Mask]:
        """Judge single places on the short ladder, as one direction; ``outputs`` are those that they belong to."""
        noise, floor = self._noise_at(outputs)
        q = quotients(sampled, self.here[outputs], noise, self.rules.eps, floor)
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
        size = max(1, BLOCK // max(found.analytical.shape[1], self.x.size, 1))
        for start in range(0, len(suspicious) * bool(len(exponents)), size):
            chosen = suspicious[start : start + size]
            sampled = self._climb(directions.take(chosen), exponents)
            analytical, own = found.analytical[chosen], self._own(context, chosen)
            assert self.noise is not None
            plain = _acceptance.accept(
                sampled, np.exp2(exponents), self.here, self.noise, self.jitter, analytical, own, self.rules
            )
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
        size = max(1, min(SUSPECTS, 8 * BLOCK // max(found.analytical.shape[1], self.x.size, 1)))
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
        part = directions.take(chosen)
        exponents = _ladder.long_ladder(self.rules.eps, self.x[part.columns])
        sampled = self._climb(part, exponents)
        c, i = np.nonzero(~sure[chosen])
        analytical = found.analytical[chosen[c], i][None]
        noise, floor = self._noise_at(i)
        own = self._own(context, chosen).at(c, i)
        two = read(sampled.at(c, i), self.here[i], noise, floor, analytical, own, self.rules)
        reading = two.settle(*self._staircases(part, two, c, i))
        reading = reading.untold(self._slanted_staircases(part, sampled.at(c, i), reading, c, i))
        places = chosen[c], i
        found.broken[places], found.smooth[places] = reading.broken[0], reading.smooth[0]
        found.status[places] = reading.status[0]
        found.value[places], found.bar[places] = reading.value[0], reading.bar[0]

    def _noise_at(self, outputs: Index) -> tuple[Noise, Array | float]:
        """The noise of some outputs, and what every value has besides."""
        noise, jitter = self.noise, self.jitter
        assert noise is not None
        floor = jitter[outputs] if isinstance(jitter, np.ndarray) else jitter
        return Noise(noise.sigma[outputs], noise.level[outputs]), floor

    def _staircases(self, directions: Directions, two: TwoReadings, c: Index, i: Index) -> tuple[Mask, Mask]:
        """Where f is flat at x, in doubt, and a staircase; and where its steps are high.

        With too many to look at, none in doubt is taken for flat. The readings are of the places (c, i), shape
        (1, places).
        """
        flat = two.flat[0]
        doubted = (two.doubted[0] | two.trusted[0]) & (flat > 0)
        pairs = sorted({(int(c[k]), float(flat[k])) for k in np.flatnonzero(doubted)})
        if len(pairs) > _plateaus.AT_MOST:
            return two.doubted & doubted, np.ones_like(two.doubted)
        staircase, high = np.zeros_like(doubted), np.zeros_like(doubted)
        for direction, step in pairs:
            values = self.f(_plateaus.windows(self.x, directions.take(np.array([direction])), step))
            here = doubted & (c == direction) & (flat == step) & _plateaus.is_staircase(values, self.here)[i]
            staircase |= here
            high |= here & _plateaus.is_high(values, self.here)[i]
        return staircase[None], high[None]

    def _slanted_staircases(
        self, directions: Directions, sampled: _ladder.Samples, reading: Reading, c: Index, i: Index
    ) -> Mask:
        """Where the slope that was read is that of a plateau; the places are (c, i), shape (1, places).

        With too many to look at, those that were looked at stand for others of their output.
        """
        wrong = (reading.status[0] == Status.MISMATCH) & ~reading.broken[0]
        straight = _plateaus.straight_steps(sampled, reading.value, self.rules.eps)[0] * wrong
        pairs = sorted({(int(c[k]), float(straight[k])) for k in np.flatnonzero(straight)})
        found, seen = np.zeros((2, len(straight)), np.bool_)
        largest = np.fmax(np.abs(sampled.plus), np.abs(sampled.minus))
        largest = np.max(largest, axis=0, initial=0.0, where=np.isfinite(largest))[0]
        for direction, step in pairs[:: -(-len(pairs) // _plateaus.AT_MOST) or 1]:
            along = directions.take(np.array([direction]))
            values = self.f(_plateaus.windows(self.x, along, step, _plateaus.FARTHER))
            here = np.flatnonzero((c == direction) & (straight == step))
            seen[here] = True
            found[here] = _plateaus.is_staircase_on_slope(
                values[:, i[here]], step, reading.value[0, here], largest[here]
            )
        others = (straight > 0) & ~seen & np.isin(i, i[found])
        return np.asarray((found | others)[None])

    def _average(self, directions: Directions, found: Entries, context: Context) -> None:
        """Take another look at entries that rounding hides: both sides agree, but the bar is too wide to say so."""
        close = np.abs(found.analytical - found.value) <= 2 * found.bar
        hidden = (found.status == Status.INCONCLUSIVE) & close & np.isfinite(found.bar) & ~found.broken
        chosen = np.flatnonzero(hidden.any(axis=1))
        if found.unexplored or not 0 < len(chosen) <= _fit.AT_MOST:
            return
        size = max(1, BLOCK // max(found.analytical.shape[1], self.x.size, 1))
        for start in range(0, len(chosen), size):
            some = chosen[start : start + size]
            at = _fit.exponents(self.rng)
            values, up, down = self._along(directions.take(some), at)
            fitted = _fit.fit(values, up, down, at, self.rules.eps, found.smooth[some])
            own = self._own(context, some)
            status = _verdict.judge(found.analytical[some], fitted, own, self.rules).status
            # The fit has larger steps than what it is to sharpen, which it must not contradict.
            within = np.abs(fitted.value - found.value[some]) <= found.bar[some] + fitted.bar
            sharp = (status < Status.INCONCLUSIVE) | (fitted.bar <= self.rules.resolution * np.abs(fitted.value))
            better = hidden[some] & within & sharp & (fitted.bar < found.bar[some]) & (status != Status.INCONCLUSIVE)
            for kept, new in ((found.status, status), (found.value, fitted.value), (found.bar, fitted.bar)):
                kept[some] = np.where(better, new, kept[some])

    def _own(self, context: Context, block: Index | slice) -> Context:
        noise = self.noise
        assert noise is not None
        relative = np.minimum(noise.relative, NOISIEST) + self.rules.eps
        return Context(context.scale[block], context.row[block], context.dust[block], relative, self.swing)

    def slopes(self, directions: Directions) -> Estimate:
        """Derivatives along the directions as the short ladder tells them, shape (C, m)."""
        with np.errstate(all="ignore"):
            sampled = self._climb(directions, _ladder.short_ladder(self.rules.eps))
            q = self._quotients(sampled)
            return estimate(q.central, q.central_noise, sampled.ratio)

    def measure_noise(self) -> Array:
        """Measure the noise of f by itself; returns the values seen, for functions of them to have theirs measured."""
        lines = _noise.each_line(self.x, self._safe_scale(), self.rules.eps, self.rng)
        values = np.concatenate([self.f(line) for line in lines])
        size = max(1, AT_ONCE // (8 * len(values)))
        parts = [
            _noise.measure(values[:, start : start + size], self.rules.eps) for start in range(0, self.here.size, size)
        ]
        self._take_noise(
            Noise(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("sigma", "level")))
        )
        return values

    def _climb(self, directions: Directions, exponents: Array) -> _ladder.Samples:
        """Evaluate f on a ladder; the noise is measured in the same batch the first time."""
        if self.noise is None and (max(self.x.size, self.here.size) > LONG or self._are_many(directions, exponents)):
            self.measure_noise()
        if self.noise is not None:
            return _ladder.samples(*self._along(directions, exponents), exponents)
        X, up, down = _ladder.points(self.x, directions, exponents)
        lines = _noise.lines(self.x, self._safe_scale(), self.rules.eps, self.rng)
        values = self.f(np.concatenate([lines, X]))
        self._take_noise(_noise.measure(values[: len(lines)], self.rules.eps))
        return _ladder.samples(values[len(lines) :], up, down, exponents)

    def _along(self, directions: Directions, exponents: Array) -> tuple[Array, Array, Array]:
        """f at ``_ladder.points``, shape (2 * K * C, m), and the steps taken."""
        if self._are_many(directions, exponents):
            return self._one_by_one(directions, exponents)
        X, up, down = _ladder.points(self.x, directions, exponents)
        return self.f(X), up, down

    def _are_many(self, directions: Directions, exponents: Array) -> bool:
        return 2 * len(exponents) * len(directions) * max(self.x.size, self.here.size) > AT_ONCE

    def _one_by_one(self, directions: Directions, exponents: Array) -> tuple[Array, Array, Array]:
        """The same rung by rung and direction by direction, where all points at once are too many."""
        shape = (2, len(exponents), len(directions), self.here.size)
        values = np.empty(shape)
        ups, downs = [], []
        for k in range(len(exponents)):
            for c in range(len(directions)):
                X, up, down = _ladder.points(self.x, directions.take(np.array([c])), exponents[k : k + 1])
                values[:, k, c] = self.f(X)
                ups.append(up[0, 0])
                downs.append(down[0, 0])
        width = max(len(step) for step in (*ups, *downs))
        up, down = (
            np.stack([np.broadcast_to(step, width) for step in steps]).reshape(*shape[1:3], width)
            for steps in (ups, downs)
        )
        return values.reshape(-1, shape[-1]), up, down

    def _quotients(self, sampled: _ladder.Samples) -> Quotients:
        assert self.noise is not None
        return quotients(sampled, self.here, self.noise, self.rules.eps, self.jitter)

    def _safe_scale(self) -> Array:
        return np.where(np.isfinite(self.x), scale_of(self.x), 0.0)

    def _take_noise(self, noise: Noise) -> None:
        """Believe the noise, if it is no slope: far steps of tiny inputs beside others may jump about as noise does."""
        share = share_of(self.x)
        steep = noise.relative > STEEP
        if steep.any() and (share < 1).any() and (share == 1).any():
            lines = _noise.lines(self.x, self._safe_scale() * share, self.rules.eps, self.rng)
            own = _noise.measure(self.f(lines), self.rules.eps).sigma
            noise = replace(noise, sigma=np.where(steep, np.minimum(noise.sigma, own), noise.sigma))
        self.noise = noise

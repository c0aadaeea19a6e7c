"""What the long ladder says of suspicious entries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from multigrad._comparison import verdict
from multigrad._comparison.context import Context
from multigrad._comparison.verdict import Codes, Rules, Status
from multigrad._differences import kinks as _kinks
from multigrad._differences.directions import Mask
from multigrad._differences.estimate import CENTRAL, Estimate, Quotients, estimate, extrapolate, quotients, tail_noise
from multigrad._differences.ladder import Samples
from multigrad._differences.noise import Noise
from multigrad._differences.plateaus import FLAT, SINGLE, flat_steps, looks_single
from multigrad.backends import Array

# Noise of this fraction of f's values.
DROWNED = 0.05
# Units of roundoff of the largest value that no rounding of float64 arithmetic hides.
ROUNDINGS = 2.0**10
# Where only what is taken for noise makes f look as if it had a slope, of this fraction.
OVERWHELMED = 0.25
# How much nearer to an estimate than to the slopes on both sides a value that meets it is.
MEETS = 0.01
# The smallest moves of a value that is all rounding, of which the largest is at most so many.
QUANTA = 256
# A slope of so many bars is hardly one.
FAINT = 10.0
# How much further than its values a slope would have to take f, for these to deny it though they are all rounding:
# on steps of the root of eps, where kinks are looked for, it is still beyond them.
STEEP = 2.0**32


@dataclass(frozen=True)
class Reading:
    """The verdict on entries along C directions; shapes (C, m).

    Attributes:
        value: the estimate.
        bar: the bound on its error.
        status: a ``Status`` each.
        broken: where f has no derivative.
        smooth: the length of the steps within which f looks smooth; inf if at all.
        singular: where f has no finite slope.
    """

    value: Array
    bar: Array
    status: Codes
    broken: Mask
    smooth: Array
    singular: Mask

    def where(self, chosen: Mask, other: Reading) -> Reading:
        """Take the entries that are ``chosen`` from here and the rest from ``other``."""
        return Reading(
            np.where(chosen, self.value, other.value),
            np.where(chosen, self.bar, other.bar),
            np.where(chosen, self.status, other.status),
            np.where(chosen, self.broken, other.broken),
            np.where(chosen, self.smooth, other.smooth),
            np.where(chosen, self.singular, other.singular),
        )

    def on_steps(self) -> Reading:
        """The same of a function that has no derivative, so that it cannot be told whether what was read is meant."""
        everywhere = np.ones_like(self.broken)
        return replace(self, status=np.full_like(self.status, Status.INCONCLUSIVE), broken=everywhere)

    def untold(self, chosen: Mask) -> Reading:
        """Say of the entries that are ``chosen`` that it cannot be told."""
        return replace(self, status=np.where(chosen, np.int8(Status.INCONCLUSIVE), self.status))


@dataclass(frozen=True)
class TwoReadings:
    """One reading with all the noise that f was seen to have, and one with what its smallest steps alone show.

    A kink or jump beside x that the lines happen to cross, or all but the smallest steps, passes for noise. What noise
    is taken for decides which steps are believed, so that neither reading may accept, or accuse, by itself.

    Attributes:
        cautious: with the noise as measured.
        bold: with the noise of the smallest steps.
        doubted: where the bold reading is milder than the cautious one.
        flat: where f does not change over the smallest steps: up to which step; elsewhere 0.
        drowned: where f jumps about by much of its size over the smallest steps: what it does is beyond any reading.
        trusted: where a derivative of 0 was accepted since f does not change over the smallest steps, though it has a
            slope over larger ones.
        meant: where a derivative of 0 may be meant: f does not change over steps at which the slope that it has at
            larger ones would show in any rounding but that of float32.
        nil: where the derivative is said to be 0 and f is.
        idle: where an entry is as small as rounding may leave it, and f moves as rounding does, by no more than that.
        lost: where an entry that is not 0 is tiny, and f moves by few roundings: on steps at which it would show, an f that
            is straight for less than that, as the tail of an exponential is, need not show it.
        coarse: with the noise of the arithmetic that the values are rounded in.
        rounded: where f does not change over the smallest steps, and its values are those of such an arithmetic.
    """

    cautious: Reading
    bold: Reading
    doubted: Mask
    flat: Array
    drowned: Mask
    trusted: Mask
    meant: Mask
    nil: Mask
    idle: Mask
    lost: Mask
    coarse: Reading
    rounded: Mask

    def settle(self, staircase: Mask, high: Mask) -> Reading:
        """Decide between the two, given where a flat f is a staircase, and where one with high steps.

        Whether a function that rounds coarsely means its plateaus or the slope over them, it does not say.
        """
        settled = self.bold.where(self.doubted & ~staircase, self.cautious)
        denied = (settled.status < Status.INCONCLUSIVE) & (self.bold.status == Status.MISMATCH) & (self.flat == 0)
        denied |= (settled.status == Status.MISMATCH) & (self.drowned | self.meant)
        # Where f is 0 and stands still its terms cancel, and nothing tells how large their rounding is a step away.
        faint = (self.flat > 0) & (np.abs(settled.value) <= FAINT * settled.bar)
        denied |= (settled.status == Status.MISMATCH) & self.nil & faint
        untold = (self.doubted & high & (settled.status == Status.MISMATCH)) | (self.trusted & staircase & ~high)
        status = np.where(denied | untold, np.int8(Status.INCONCLUSIVE), settled.status)
        open_ = (status == Status.NONDIFFERENTIABLE) | (status == Status.INCONCLUSIVE)
        open_ |= self.lost & (status == Status.MISMATCH)
        status = np.where((self.idle | self.lost) & open_, np.int8(Status.UNRESOLVED), status)
        settled = replace(settled, status=status, smooth=np.minimum(self.cautious.smooth, self.bold.smooth))
        # Values rounded to few bits may be what f is for, and may hide its slope.
        spared = self.rounded & (status == Status.MISMATCH) & (self.coarse.status != Status.MISMATCH)
        return self.coarse.on_steps().where(spared, settled)


def read(samples: Samples, here: Array, noise: Noise, analytical: Array, context: Context, rules: Rules) -> TwoReadings:
    """Judge entries from f's values on the long ladder.

    Args:
        samples: the values, (K, C, m) on each side.
        here: f(x), shape (m,).
        noise: of f.
        analytical: the derivatives along the directions, shape (C, m).
        context: what else they are judged against.
        rules: the constants.
    """
    flat = flat_steps(samples, here)
    largest = np.max(np.abs(samples.plus), axis=0, initial=0.0, where=np.isfinite(samples.plus))
    # Such values may be multiples of a quantum, as (1 + erf(x)) / 2 far to the left is of the rounding of 1: the
    # rounding of the largest value on the ladder is then a part of the noise.
    quantum = np.where((flat > 0) & (noise.sigma == 0), 2 * rules.eps * largest, 0.0)
    tail = np.maximum(noise.floor, 4 * tail_noise(samples))
    # A step between the smallest rungs passes for noise; where f does not move at all before it, there is none.
    smallest = np.where(flat > 0, noise.floor, np.maximum(noise.floor, 4 * tail_noise(samples, rungs=5, powers=(0, 1))))
    quiet = replace(noise, sigma=np.zeros_like(noise.sigma))
    infinite = _kinks.vertical(quotients(samples, here, quiet, rules.eps), samples.ratio)
    exact = replace(context, noise=np.full_like(context.noise, rules.eps))
    loud, least = replace(noise, floor=np.maximum(tail, quantum)), replace(quiet, floor=smallest)
    cautious = _read(samples, here, loud, infinite, analytical, context, rules)
    bold = _read(samples, here, least, infinite, analytical, exact, rules)
    size = np.maximum(noise.level, np.abs(here))
    jumpy = np.maximum(tail, 4 * noise.sigma) > OVERWHELMED * size
    drowned = (smallest > DROWNED * size) | (jumpy & (bold.status != Status.MISMATCH))
    # Where all that f does on steps of any size is to round 0, no slope that is far steeper can hide in it.
    steep = np.abs(analytical) * np.fmax.reduce(samples.up, axis=0) > STEEP * largest
    drowned &= np.isfinite(analytical) & ~(steep & _has_few_bits(samples, largest))
    trusted = (analytical == 0) & (flat > 0) & (flat < FLAT) & (cautious.status < Status.NONDIFFERENTIABLE)
    trusted &= _slopes_beyond(quotients(samples, here, loud, rules.eps), samples.up, flat)
    meant = (analytical == 0) & (np.abs(cautious.value) * flat > ROUNDINGS * rules.eps * largest)
    meant &= ~looks_single(samples, here)
    # Over the smallest steps noise that is denied grows as the quotients at a jump do, which would excuse anything.
    excused = bold.singular & (cautious.status == Status.MISMATCH) & (flat == 0)
    # Nor does it find a slope there; that says something only where a kink is seen over the noise as well.
    lost = (bold.status == Status.INCONCLUSIVE) & np.isinf(cautious.smooth) & (flat == 0)
    excused |= lost & (cautious.status == Status.MISMATCH)
    doubted = (bold.status < cautious.status) & ~excused
    idle = (np.abs(analytical) <= context.dust) & _is_rounding(samples, here, context.dust)
    nil = (analytical == 0) & (here == 0)
    moves = ((samples.plus != here) | (samples.minus != here)).any(axis=0)
    lost = (analytical != 0) & (np.abs(analytical) <= context.tiny) & _is_rounding(samples, here, context.tiny) & moves
    unit = max(SINGLE, rules.written / 2)
    rounded = (flat > 0) & ((cautious.status == Status.MISMATCH) | (bold.status == Status.MISMATCH))
    rounded &= looks_single(samples, here, unit)
    coarser = replace(rules, eps=max(rules.eps, 2 * unit))
    coarse = _read(samples, here, loud, infinite, analytical, context, coarser) if rounded.any() else cautious
    return TwoReadings(cautious, bold, doubted, flat, drowned, trusted, meant, nil, idle, lost, coarse, rounded)


def _slopes_beyond(q: Quotients, steps: Array, flat: Array) -> Mask:
    """Whether f has a slope, and not only a bend, on some step beyond those at which it is ``flat``, (C, m)."""
    return np.asarray(((steps > flat) & (np.abs(q.central) > q.central_noise)).any(axis=0))


def _is_rounding(samples: Samples, here: Array, dust: Array) -> Mask:
    """Whether f moves by few quanta on steps of all sizes, and by no more than ``dust``; shape (C, m)."""
    moves = np.abs(np.concatenate([samples.plus, samples.minus]) - here)
    quantum = np.min(np.where(moves > 0, moves, np.inf), axis=0)
    largest = moves.max(axis=0)
    return np.asarray((largest <= dust) & (largest <= QUANTA * quantum))


def _has_few_bits(samples: Samples, largest: Array) -> Mask:
    """Whether the values are few multiples of a power of two, as sums of rounded terms, and no oscillation, are; (C, m)."""
    quantum = np.exp2(np.ceil(np.log2(largest))) / QUANTA
    values = np.concatenate([samples.plus, samples.minus])
    return np.asarray((np.abs(values) <= QUANTA * quantum).all(axis=0) & (values % quantum == 0).all(axis=0))


def _read(
    samples: Samples,
    here: Array,
    noise: Noise,
    infinite: Mask,
    analytical: Array,
    context: Context,
    rules: Rules,
) -> Reading:
    ratio = samples.ratio
    q = quotients(samples, here, noise, rules.eps)
    left, right = _kinks.sides(q, ratio)
    smallest = np.maximum(context.stationary(rules.eps), context.negligible)
    straddled = _kinks.straddled(q, ratio, smallest)
    best = estimate(q.central, q.central_noise, ratio, least=straddled)
    inside = _kinks.edge(q, left, right, ratio)
    at_edge = ~np.isfinite(best.bar) & np.isfinite(inside.bar)
    best = Estimate(np.where(at_edge, inside.value, best.value), np.where(at_edge, inside.bar, best.bar))
    status = verdict.judge(analytical, best, context, rules).status
    narrow = _kinks.narrow(best, left, right)
    narrowed = verdict.judge(analytical, narrow, context, rules).status
    accepted = (status == Status.INCONCLUSIVE) & (narrowed < Status.NONDIFFERENTIABLE)
    status = np.where(accepted, narrowed, status)
    best = Estimate(np.where(accepted, narrow.value, best.value), np.where(accepted, narrow.bar, best.bar))
    column, column_noise = extrapolate(q.central, q.central_noise, ratio ** CENTRAL[0])
    status = verdict.spare_scale_conflicts(status, analytical, best, column, column_noise, straddled > 0, rules)
    size = np.maximum(np.abs(np.where(np.isfinite(analytical), analytical, 0)), np.abs(best.value))
    importance = np.maximum(rules.rtol * np.where(np.isfinite(size), size, 0.0), smallest)
    kinks = _kinks.find(q, ratio, importance, left, right, infinite)
    status = verdict.admit_kinks(status, analytical, kinks)
    # The mean of two slopes lies between them. One that does not, and that the analytical value meets, makes no kink.
    outside = np.maximum(kinks.low - analytical, analytical - kinks.high)
    met = kinks.kink & (np.abs(analytical - best.value) < MEETS * outside)
    status = np.where(met & (status == Status.MISMATCH), np.int8(Status.INCONCLUSIVE), status)
    smooth = np.min(np.where(straddled > 0, samples.up, np.inf), axis=0)
    return Reading(best.value, best.bar, status, kinks.kink | kinks.singular, smooth, kinks.singular)

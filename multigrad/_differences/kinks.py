"""Kinks: where f has no derivative at x, and which values are a legal choice there.

The gap between forward and backward quotients falls like h where f is smooth, stays where the one-sided slopes
differ, and grows like 1/h across a jump. At a kink a value between the two slopes is in the sub-differential
(F. H. Clarke, "Optimization and Nonsmooth Analysis", 1983, in one dimension).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from multigrad._differences.directions import Mask
from multigrad._differences.estimate import ONE_SIDED, Estimate, Quotients, estimate
from multigrad.backends import Array

# A gap that falls more slowly than this power of the step stays.
STEADY = 0.3
# One that falls more slowly than this has not begun to as where f is smooth: that of abs(x)**1.5 falls like the square
# root, also on steps that are much longer than the distance to its 0.
FALLING = 0.85
# From one step to the next, that of x log x at 0 grows by more than this.
GROWTH = 1.01


@dataclass(frozen=True)
class Kinks:
    """What the long ladder says about smoothness, entry by entry, shape (C, m).

    Attributes:
        kink: the one-sided slopes exist and differ.
        singular: there is no finite slope: a jump, or a vertical tangent.
        low: the smaller one-sided slope, less its bar.
        high: the larger one, plus its bar.
        left: the slope to the left, with an infinite bar if there is none.
        right: the slope to the right, likewise.
        growing: the gap between the slopes grows down to the smallest steps, if ever so slowly.
    """

    kink: Mask
    singular: Mask
    low: Array
    high: Array
    left: Estimate
    right: Estimate
    growing: Mask

    def allow(self, analytical: Array) -> Mask:
        """Whether the value is a legal choice: between the slopes; or 0, infinite or that of one side without slopes."""
        margin = 1e-6 * (self.high - self.low)
        between = (analytical >= self.low - margin) & (analytical <= self.high + margin)
        infinite = np.isinf(analytical)
        outward = infinite & self.growing & ((analytical > self.high) == (np.abs(self.high) > np.abs(self.low)))
        chosen = (analytical == 0) | infinite | _meets(self.left, analytical) | _meets(self.right, analytical)
        return np.asarray((self.kink & (between | outward)) | (self.singular & chosen))


def _meets(slope: Estimate, analytical: Array) -> Mask:
    size = np.abs(slope.value)
    return np.asarray((np.abs(analytical - slope.value) <= slope.bar + 1e-6 * size) & (slope.bar <= 1e-3 * size))


def suspected(q: Quotients, steps: Array, importance: Array) -> Mask:
    """Whether the short ladder gives reason to look for a kink: a gap that does not fall with the step."""
    gap = np.abs(q.forward - q.backward)
    return np.asarray((gap[-1] * steps[-1] > 4 * q.noise[-1]) & (gap[-1] > 0.5 * gap[0]) & (gap[-1] > importance))


def straddled(q: Quotients, ratio: float, least_gap: Array | float = 0.0) -> Array:
    """What a kink between x - h and x + h leaves open at the least, rung by rung; 0 where none shows; (K, C, m).

    There is one where the gap does not fall with the step. A central quotient may lie anywhere between the slopes
    beside it, half the gap away from either: on a step much larger than the distance to the kink it is their mean,
    whichever side x is on. A gap that grows as the steps get smaller has no bound, until it is seen to fall. One below
    ``least_gap``, (C, m), is no kink: a bump of few roundings that f has returned from on longer steps makes it.
    """
    gap, gap_noise = np.abs(q.forward - q.backward), q.forward_noise + q.backward_noise
    sure = gap - gap_noise
    following = np.concatenate([sure[1:], np.full_like(sure[:1], -np.inf)])
    least = np.where(following > gap * ratio**-FALLING, 0.5 * sure, 0.0)
    grows = following > np.maximum(gap * ratio**STEADY, least_gap)
    falls = gap + gap_noise < np.fmax.accumulate(sure, axis=0)
    rungs = np.arange(len(gap))[:, None, None]
    grown, fallen = (np.maximum.accumulate(np.where(mask, rungs, -1), axis=0) for mask in (grows, falls))
    least[grown > fallen] = np.inf
    return np.asarray(np.maximum.accumulate(least[::-1], axis=0)[::-1])


def sides(q: Quotients, ratio: float) -> tuple[Estimate, Estimate]:
    """The slopes to the left and to the right of x."""
    left = estimate(q.backward, q.backward_noise, ratio, ONE_SIDED)
    return left, estimate(q.forward, q.forward_noise, ratio, ONE_SIDED)


def narrow(best: Estimate, left: Estimate, right: Estimate) -> Estimate:
    """Choose the narrowest of the estimates from both sides and from one, where all agree.

    With a kink near x, the smaller steps tell roughly that both slopes at x are the same, and all the steps away from
    the kink what they are, if f is as simple there as it looks: good enough to accept a derivative, not to accuse one.
    """
    for one, other in ((left, right), (right, left)):
        apart = (np.abs(one.value - other.value) > one.bar + other.bar) | (
            np.abs(one.value - best.value) > one.bar + best.bar
        )
        better = ~apart & (one.bar < best.bar) & (one.bar <= other.bar)
        best = Estimate(np.where(better, one.value, best.value), np.where(better, one.bar, best.bar))
    return best


def vertical(q: Quotients, ratio: float) -> Mask:
    """Where quotients grow at one steady rate down to the smallest steps, on both sides or on the only one.

    Noise has no steady rate, so that ``q`` needs no more noise in it than that of rounding.
    """
    one_side_noise = np.where(np.isfinite(q.forward), q.forward_noise, q.backward_noise)
    return _diverges(q.central, q.central_noise, ratio) | _diverges(_one_side(q), one_side_noise, ratio)


def find(q: Quotients, ratio: float, importance: Array, left: Estimate, right: Estimate, infinite: Mask) -> Kinks:
    """Look for kinks, jumps and vertical tangents on the long ladder.

    Args:
        q: quotients at the K rungs.
        ratio: between neighbouring steps.
        importance: gaps below this are of no importance, shape (C, m).
        left: the slope to the left of x.
        right: the slope to the right.
        infinite: where the slopes themselves are.
    """
    gap, gap_noise = np.abs(q.forward - q.backward), q.forward_noise + q.backward_noise
    seen = np.isfinite(gap) & (gap_noise < 0.25 * gap)
    last = _last(seen)
    g0, g1, g2 = (_at(gap, last - i) for i in (2, 1, 0))
    with np.errstate(all="ignore"):
        slope = np.log(g0 / g2) / np.log(ratio**2)
        steady = (slope < STEADY) & (np.log(g0 / g1) / np.log(ratio) < 0.4)
    rungs = np.arange(len(gap))[:, None, None]
    bound = np.where((rungs > last) & np.isfinite(gap), gap + gap_noise, np.inf)
    vanishes = bound.min(axis=0) < 0.5 * g2
    broken = (last >= 2) & steady & ~vanishes & (g2 > importance)
    singular = (broken & (slope < -0.3)) | infinite
    growing = (g2 > GROWTH * g1) & (g1 > GROWTH * g0)
    ahead = _or_quotient(right, q.forward, q.forward_noise, last)
    behind = _or_quotient(left, q.backward, q.backward_noise, last)
    low = np.minimum(ahead.value - ahead.bar, behind.value - behind.bar)
    high = np.maximum(ahead.value + ahead.bar, behind.value + behind.bar)
    return Kinks(broken & ~singular, singular, low, high, left, right, growing)


def edge(q: Quotients, left: Estimate, right: Estimate, ratio: float) -> Estimate:
    """Estimate the derivative from inside, where f is not finite on one side of x at any step.

    A slope that still grows at the smallest steps has no bound.
    """
    out_right = ~np.isfinite(q.forward).any(axis=0)
    out_left = ~np.isfinite(q.backward).any(axis=0)
    quotient = np.abs(np.where(out_left, q.forward, q.backward))
    noise = np.where(out_left, q.forward_noise, q.backward_noise)
    last = _last(np.isfinite(quotient))
    least, most = quotient - noise, quotient + noise
    grows = _at(least, last) > _at(most, last - 1) * ratio**STEADY
    grows |= (_at(least, last) > _at(most, last - 1) * GROWTH) & (_at(least, last - 1) > _at(most, last - 2) * GROWTH)
    bounded = (out_right ^ out_left) & ~grows
    bar = np.where(bounded, np.where(out_left, right.bar, left.bar), np.inf)
    return Estimate(np.where(out_left, right.value, left.value), bar)


def _one_side(q: Quotients) -> Array:
    return np.where(np.isfinite(q.forward), q.forward, np.where(np.isfinite(q.backward), q.backward, np.nan))


def _or_quotient(slope: Estimate, quotient: Array, noise: Array, rung: npt.NDArray[np.intp]) -> Estimate:
    """The one-sided slope; the quotient at ``rung`` itself where extrapolation finds nothing better."""
    plain, plain_bar = _at(quotient, rung), _at(noise, rung)
    plain_bar = plain_bar + 1e-3 * np.abs(plain)
    found = np.isfinite(slope.bar)
    return Estimate(np.where(found, slope.value, plain), np.where(found, slope.bar, plain_bar))


def _diverges(quotient: Array, noise: Array, ratio: float, rungs: int = 7) -> Mask:
    """Whether the quotients grow at one steady rate down to the smallest resolved steps."""
    size = np.abs(quotient)
    seen = np.isfinite(size) & (size > 10 * noise)
    last = _last(seen)
    with np.errstate(all="ignore"):
        rates = np.stack(
            [np.log(_at(size, last - i) / _at(size, last - i - 1)) / np.log(ratio) for i in range(rungs - 1)]
        )
    finest = last >= _last(np.isfinite(size)) - 2
    steady = (rates > 0.2).all(axis=0) & (np.ptp(rates, axis=0) < 0.1)
    return np.asarray(steady & finest & (last >= rungs))


def _last(mask: Mask) -> npt.NDArray[np.intp]:
    """Index of the last True along the rungs, -1 if there is none."""
    rungs = np.arange(len(mask))[:, None, None]
    return np.asarray(np.where(mask, rungs, -1).max(axis=0))


def _at(values: Array, rung: npt.NDArray[np.intp]) -> Array:
    return np.asarray(np.take_along_axis(values, np.maximum(rung, 0)[None], axis=0)[0])

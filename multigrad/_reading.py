"""What the long ladder says of suspicious entries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from multigrad import _kinks, _verdict
from multigrad._estimate import CENTRAL, Estimate, estimate, extrapolate, quotients, tail_noise
from multigrad._kinks import Mask
from multigrad._ladder import Samples
from multigrad._noise import Noise
from multigrad._plateaus import flat_steps
from multigrad._verdict import Codes, Context, Rules, Status
from multigrad.backends import Array


@dataclass(frozen=True)
class Reading:
    """The verdict on entries along C directions; shapes (C, m).

    Attributes:
        value: the estimate.
        bar: the bound on its error.
        status: a ``Status`` each.
        broken: where f has no derivative.
        smooth: the length of the steps within which f looks smooth; inf if at all.
    """

    value: Array
    bar: Array
    status: Codes
    broken: Mask
    smooth: Array

    def where(self, chosen: Mask, other: Reading) -> Reading:
        """Take the entries that are ``chosen`` from here and the rest from ``other``."""
        return Reading(
            np.where(chosen, self.value, other.value),
            np.where(chosen, self.bar, other.bar),
            np.where(chosen, self.status, other.status),
            np.where(chosen, self.broken, other.broken),
            np.where(chosen, self.smooth, other.smooth),
        )


@dataclass(frozen=True)
class TwoReadings:
    """One reading with the noise of f as it was measured, and one with what the smallest steps themselves show.

    Noise is measured on lines that all directions share, and a kink that a line happens to cross passes for noise.
    Where only that keeps the small steps from being believed, they are.

    Attributes:
        cautious: with the noise as measured.
        bold: with the noise of the smallest steps.
        doubted: where the bold reading accepts what the cautious one does not.
        flat: where f does not change over the smallest steps: up to which step; elsewhere 0.
    """

    cautious: Reading
    bold: Reading
    doubted: Mask
    flat: Array

    def settle(self, staircase: Mask) -> Reading:
        """Decide between the two, given where a flat f is a staircase."""
        return self.bold.where(self.doubted & ~staircase, self.cautious)


def read(
    samples: Samples, here: Array, noise: Noise, floor: Array | float, analytical: Array, context: Context, rules: Rules
) -> TwoReadings:
    """Judge entries from f's values on the long ladder.

    Args:
        samples: the values, (K, C, m) on each side.
        here: f(x), shape (m,).
        noise: of f.
        floor: noise that every value has besides.
        analytical: the derivatives along the directions, shape (C, m).
        context: what else they are judged against.
        rules: the constants.
    """
    floor = np.maximum(floor, 4 * tail_noise(samples))
    quiet = replace(noise, sigma=np.zeros_like(noise.sigma))
    flat = flat_steps(samples, here)
    quantum = _quantum(samples, flat, noise, rules)
    cautious = _read(samples, here, noise, np.maximum(floor, quantum), analytical, context, rules)
    supposed = (noise.sigma > 2 * rules.eps * np.abs(here)) | (quantum > 0)
    doubtful = (cautious.status >= Status.INCONCLUSIVE) & supposed
    if not doubtful.any():
        return TwoReadings(cautious, cautious, np.zeros_like(doubtful), flat)
    bold = _read(samples, here, quiet, floor, analytical, context, rules)
    return TwoReadings(cautious, bold, doubtful & (bold.status < Status.INCONCLUSIVE), flat)


def _read(
    samples: Samples, here: Array, noise: Noise, floor: Array, analytical: Array, context: Context, rules: Rules
) -> Reading:
    ratio = samples.ratio
    q = quotients(samples, here, noise, rules.eps, floor)
    left, right = _kinks.sides(q, ratio)
    straddled = _kinks.straddled(q, ratio)
    best = estimate(q.central, q.central_noise, ratio, least=straddled)
    inside = _kinks.edge(q, left, right)
    at_edge = ~np.isfinite(best.bar) & np.isfinite(inside.bar)
    best = Estimate(np.where(at_edge, inside.value, best.value), np.where(at_edge, inside.bar, best.bar))
    status = _verdict.judge(analytical, best, context, rules).status
    narrow = _kinks.narrow(best, left, right)
    narrowed = _verdict.judge(analytical, narrow, context, rules).status
    accepted = (status == Status.INCONCLUSIVE) & (narrowed < Status.NONDIFFERENTIABLE)
    status = np.where(accepted, narrowed, status)
    best = Estimate(np.where(accepted, narrow.value, best.value), np.where(accepted, narrow.bar, best.bar))
    column, column_noise = extrapolate(q.central, q.central_noise, ratio ** CENTRAL[0])
    status = _verdict.spare_scale_conflicts(status, analytical, best, column, column_noise, rules)
    size = np.maximum(np.abs(np.where(np.isfinite(analytical), analytical, 0)), np.abs(best.value))
    kinks = _kinks.find(q, ratio, rules.rtol * np.where(np.isfinite(size), size, 0.0), left, right)
    status = _verdict.admit_kinks(status, analytical, kinks)
    smooth = np.min(np.where(straddled > 0, samples.up, np.inf), axis=0)
    return Reading(best.value, best.bar, status, kinks.kink | kinks.singular, smooth)


def _quantum(samples: Samples, flat: Array, noise: Noise, rules: Rules) -> Array:
    """Noise of values that change neither over the smallest steps nor on the lines that noise is read from.

    They may be multiples of a quantum, as (1 + erf(x)) / 2 far to the left is of the rounding of 1: the rounding of
    the largest value on the ladder is then a part of the noise.
    """
    largest = np.max(np.abs(samples.plus), axis=0, initial=0.0, where=np.isfinite(samples.plus))
    unseen = (flat > 0) & (noise.sigma == 0)
    return np.asarray(np.where(unseen, 2 * rules.eps * largest, 0.0))

"""Verdicts: what is said of an entry, of a block and of a whole check."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from multigrad._comparison.context import Context
from multigrad._differences.directions import Mask
from multigrad._differences.estimate import Estimate
from multigrad._differences.kinks import Kinks
from multigrad.backends import FARTHEST, Array

Codes = npt.NDArray[np.int8]

# Below this a double loses bits of its own.
DENORMAL = 1e-290


class Verdict(enum.StrEnum):
    """The answer of a check, from best to worst."""

    OK = "ok"
    NONDIFFERENTIABLE = "nondifferentiable"
    INCONCLUSIVE = "inconclusive"
    MISMATCH = "mismatch"

    @property
    def severity(self) -> int:
        """Rank: the worst verdict of the parts is the verdict of the whole."""
        return list(Verdict).index(self)


class Status(enum.IntEnum):
    """What is said of one entry. The order is that of severity."""

    OK = 0
    UNRESOLVED = 1  # too small to be told from zero; neither passes nor fails
    NONDIFFERENTIABLE = 2
    INCONCLUSIVE = 3
    MISMATCH = 4

    @property
    def verdict(self) -> Verdict:
        """The verdict of a check whose worst entry this is."""
        return Verdict.OK if self <= Status.UNRESOLVED else Verdict[self.name]


@dataclass(frozen=True)
class Rules:
    """The constants of the verdict.

    Attributes:
        rtol: relative tolerance. There is no absolute one unless asked for: it hides all gradients below it.
        atol: absolute tolerance.
        eps: unit roundoff of f's arithmetic.
        resolution: an entry must be resolved at least to this relative error to be called ok.
        farthest: the longest step that f is looked at with, in units of the scale of x.
        written: unit roundoff of the arithmetic that f is written for, where that is coarser.
    """

    rtol: float
    atol: float
    eps: float
    resolution: float
    farthest: float = FARTHEST
    written: float = 0.0

    @classmethod
    def for_eps(cls, eps: float, rtol: float | None, atol: float, written: float = 0.0) -> Rules:
        """Return the rules for arithmetic of unit roundoff ``eps``: 1e-7 and 1e-3 in float64.

        Code that is ``written`` for a coarser one has constants that are rounded, and iterations that end, at that:
        an error of few units of roundoff is none, and 1e-6 at most is taken for one.
        """
        if eps < 1e-12:
            rtol = max(1e-7, min(8 * written, 1e-6)) if rtol is None else rtol
            return cls(rtol, atol, eps, 1e-3, written=written)
        return cls(max(1e-4, 8 * eps) if rtol is None else rtol, atol, eps, min(0.5, max(2e-2, 64 * eps)))


@dataclass(frozen=True)
class Judgement:
    """The statuses of entries, and which of them need no second look; shape (C, m)."""

    status: Codes
    sharp: Mask


def judge(analytical: Array, estimate: Estimate, context: Context, rules: Rules) -> Judgement:
    """Give every entry its status, taking f for smooth; all shapes (C, m).

    An entry that is sharp is resolved to 1e-6, or a clear 0. The short ladder can only accept such, never accuse.
    """
    value, bar = estimate.value, estimate.bar
    claimed = np.abs(analytical)
    # Where f is infinite a step away nothing was seen, however large it is.
    size = np.maximum(claimed, np.where(np.isfinite(value), np.abs(value), 0.0))
    difference = np.abs(analytical - value)
    # What the two sides may differ by, besides the bar.
    noise = 4 * context.noise * context.scale
    tol = rules.rtol * size + rules.atol + 16 * rules.eps * claimed + noise
    # Beside an infinite value every difference is within a fraction of it.
    agrees = (difference <= tol + bar) & np.isfinite(difference)
    # An entry that is smaller than what noise excuses would agree with its negative.
    nil = (analytical == 0) & context.tells_zero(bar, rules.resolution)
    told = agrees & ((claimed > noise) | nil)
    resolved = told & (bar <= np.maximum(tol, 1e-6 * size))
    if resolved.all():
        return Judgement(np.zeros(analytical.shape, np.int8), resolved)
    zero, dust, small = _small(analytical, estimate, context, rules)
    small |= agrees & (claimed <= context.negligible) & (bar <= context.nothing)
    small |= agrees & ~told & (bar <= tol)
    status = np.full(analytical.shape, Status.INCONCLUSIVE, np.int8)
    status[(difference > tol + 2 * bar) & np.isfinite(bar)] = Status.MISMATCH
    status[small | dust] = Status.UNRESOLVED
    status[(zero & nil) | (told & (bar <= np.maximum(tol, rules.resolution * size)))] = Status.OK
    broken = ~np.isfinite(analytical)
    status[broken] = Status.INCONCLUSIVE
    status[broken & np.isfinite(bar)] = Status.MISMATCH
    return Judgement(status, (resolved | (zero & nil) | dust) & ~broken)


def _small(analytical: Array, estimate: Estimate, context: Context, rules: Rules) -> tuple[Mask, Mask, Mask]:
    """Which entries are 0 and shown to be, which are clearly dust, and which others are too small to resolve."""
    value, bar = estimate.value, estimate.bar
    claimed, seen = np.abs(analytical), np.abs(value)
    no_value = (seen <= bar) & (bar <= context.nothing)
    # Next to a kink the steps at which f stands still are short, and 0 is told only as far as they reach.
    still = (analytical == 0) & (value == 0)
    zero = ((analytical == 0) & no_value) | (still & (bar <= 1e-6 * context.scale))
    dust = (claimed > 0) & (claimed <= context.dust) & no_value
    small = np.maximum(claimed, seen + bar) <= context.stationary(rules.eps)
    small |= still & (bar <= rules.resolution * context.scale)
    # A row that is dust altogether has nothing else to measure its bars by; the short ladder does not tell such.
    small |= (context.scale <= context.dust) & (seen <= bar) & (bar <= context.dust)
    small |= (np.fmax(claimed, seen) < DENORMAL) & ((bar < DENORMAL) | no_value)
    return zero, dust, small


def admit_kinks(status: Codes, analytical: Array, kinks: Kinks) -> Codes:
    """Overrule the statuses where f has no derivative."""
    legal = kinks.allow(analytical)
    status = status.copy()
    status[(kinks.kink | kinks.singular) & legal] = Status.NONDIFFERENTIABLE
    # At a jump the slope of the branch that x is not on is not seen.
    status[kinks.singular & ~legal] = Status.INCONCLUSIVE
    status[(kinks.kink & ~legal) | ((kinks.kink | kinks.singular) & np.isnan(analytical))] = Status.MISMATCH
    return status


def admit_cone_tips(status: Codes, analytical: Array, broken: Mask) -> None:
    """Take NaN for an answer where f has a kink along every input that it depends on, as norm(x) has at 0.

    The gradient is undefined there, and NaN says so; at the edge of a single ramp it is a wrong choice. In place.
    """
    undefined = np.isnan(analytical) & broken
    settled = undefined | (analytical == 0)
    tip = settled.all(axis=0) & (undefined.sum(axis=0) >= 2)
    status[undefined & tip] = Status.NONDIFFERENTIABLE


def spare_scale_conflicts(
    status: Codes,
    analytical: Array,
    estimate: Estimate,
    column: Array,
    column_noise: Array,
    straddling: Mask,
    rules: Rules,
) -> Codes:
    """Take back a mismatch where three consecutive other steps support the analytical value.

    A function that is quantised, noisy in a way that was not measured, or has a kink very near, has one slope on
    one scale and another on the next; which of them is meant cannot be told. ``column`` is the once extrapolated
    one, shape (K - 1, C, m). Steps that are ``straddling`` a kink, shape (K, C, m), support nothing.
    """
    spread = np.abs(np.diff(column, axis=0)) + column_noise[1:]
    fits = np.abs(column[1:] - analytical) <= rules.rtol * np.abs(analytical) + spread
    informative = spread <= rules.resolution * np.abs(analytical)
    excludes = np.abs(column[1:] - estimate.value) > spread + 2 * estimate.bar
    support = fits & informative & excludes & ~straddling[1:-1]
    conflict = (support[2:] & support[1:-1] & support[:-2]).any(axis=0)
    return np.where(
        (status == Status.MISMATCH) & conflict & np.isfinite(analytical), np.int8(Status.INCONCLUSIVE), status
    )


def forgive(status: Codes) -> Codes:
    """Take back every mismatch: it cannot be told."""
    return np.where(status == Status.MISMATCH, np.int8(Status.INCONCLUSIVE), status)

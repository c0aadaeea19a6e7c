"""Cancellation: derivatives by AD that are the small difference of large terms, and have the rounding of those.

(x - sin(x)) / x**3 is 1/6 to thirteen digits at x = 1e-3; its derivative, as a formula no less right, has two. How much
rounding a derivative carries shows on a short line through x, on which it should be a polynomial of low degree. Where
all terms cancel, as in A @ inv(A), nothing else is left of it: then it jumps about 0 on that line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multigrad._comparison.dust import largest_of_leaf
from multigrad._comparison.verdict import Status
from multigrad._differences.directions import Index, Mask
from multigrad._differences.noise import root_mean_square
from multigrad._report.leg import Leg
from multigrad._report.probe_leg import ProbeLeg
from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.findings import Finding

# On the line, its length in units of x, which is to end before a pole beside x, and the degree.
POINTS, SHORT, DEGREE = 16, 2.0**-22, 5
# As many of them show whether it jumps about at all: by this part of an error that rounding explains.
FIRST, PART = 2, 32
# Where all is rounding, poles may be much nearer, and rounding shows over a few thousand ulp.
SHORTER = 2.0**-40
# An error of so many root mean squares of the rounding is none.
SIGMAS = 6.0
# Errors beyond this fraction of an entry, and this of the largest in its output, have another cause, unless it is the
# mean that is right.
LARGEST, DUST = 1e-2, 1e-6
# A bar around 0, and what is claimed beside it, are nothing up to this fraction of the largest in their output.
NOTHING = 1e-9
# Of the numbers in the cotangents or tangents that are tried.
AT_MOST = 2**22


@dataclass(frozen=True)
class Beside:
    """The derivative under test on a short line through x.

    Attributes:
        at: makes the flat function at another point.
        x: the point, shape (n,).
    """

    at: Callable[[Array], FlatFunction]
    x: Array

    def around(self, mode: str, doubtful: Mask, length: float = SHORT) -> tuple[Array, Array]:
        """What rows, or columns, with entries in doubt jump about by on a line of that length, and their mean.

        Args:
            mode: of the derivative, ``reverse`` or ``forward``.
            doubtful: the entries in doubt, shape (m, n).
            length: in units of x.

        Returns:
            Two arrays of shape (m, n), 0 and NaN for others, and where that can't be seen.
        """
        lines = _oriented(doubtful, mode)
        wanted = np.flatnonzero(lines.any(axis=1))
        out = np.zeros(lines.shape), np.full(lines.shape, np.nan)
        for whole, seen in zip(out, self.on_lines(wanted, len(lines), length, mode == "forward"), strict=True):
            whole[wanted] = seen
        return _oriented(out[0], mode), _oriented(out[1], mode)

    def moves(self, leg: Leg, doubtful: Mask, error: Array) -> bool:
        """Whether a small step changes any of the doubtful entries by what may be a part of its error."""
        lines, claimed, error = (_oriented(a, leg.mode) for a in (doubtful, leg.analytical, error))
        wanted = np.flatnonzero(lines.any(axis=1))
        samples = self._samples(wanted, len(lines), _steps(SHORT)[:FIRST], leg.mode == "forward")
        if samples is None:
            return False
        moved = np.max(np.abs(samples - claimed[wanted]), axis=0)
        return bool((lines[wanted] & (moved >= error[wanted] / PART)).any())

    def on_lines(self, wanted: Index, count: int, length: float, forward: bool) -> tuple[Array, Array]:
        """The same of some of ``count`` rows, or columns, as rows of arrays."""
        steps = _steps(length)
        samples = self._samples(wanted, count, steps, forward)
        if samples is None:
            return np.zeros((len(wanted), 1)), np.full((len(wanted), 1), np.nan)
        return _off_polynomial(samples, steps / length), samples.mean(axis=0)

    def _samples(self, wanted: Index, count: int, steps: Array, forward: bool) -> Array | None:
        """Rows, or columns, at some steps from x in units of it, shape (len(steps), len(wanted), n or m); None if unseen."""
        if not 0 < len(wanted) * count <= AT_MOST:
            return None
        units = np.zeros((len(wanted), count))
        units[np.arange(len(wanted)), wanted] = 1.0
        along = np.random.default_rng(0).choice([-1.0, 1.0], self.x.shape) * self.x
        try:
            line = [self.at(self.x + step * along) for step in steps]
            return np.stack([f.jvp(units) if forward else f.vjp(units) for f in line])
        except Exception:  # noqa: BLE001, of any type: the function need not be defined there
            return None


def _steps(length: float) -> Array:
    return np.random.default_rng(1).uniform(-length, length, POINTS)


def _oriented(matrix: Any, mode: str) -> Any:
    """A Jacobian, (m, n), with the lines first that one product of ``mode`` makes; and back."""
    return matrix.T if mode == "forward" else matrix


def leave_dust(leg: Leg, broken: Mask, here: Array, outputs: Sequence[Leaf], beside: Beside) -> Leg:
    """Leave unresolved what jumps about 0 around x, where f shows no derivative: rounding of terms that cancel.

    How large the terms are need not show in f at all: a layer norm of one number is 0, or its bias.

    Args:
        leg: the comparison, shapes (m, n).
        broken: where f has no derivative, shape (m, n).
        here: f(x), shape (m,).
        outputs: the leaves of f.
        beside: the derivative around x.
    """
    with np.errstate(all="ignore"):
        claimed = np.abs(leg.analytical)
        size = np.concatenate([_size(leg), np.abs(here)[:, None]], axis=1)
        largest = _largest(size, outputs)
        doubtful = (leg.status >= Status.INCONCLUSIVE) & ~broken
        doubtful &= (np.abs(leg.numeric) <= leg.bar) & (leg.bar <= NOTHING * largest)
        doubtful &= (claimed > 0) & (claimed <= NOTHING * np.maximum(largest, 1.0))
        if not doubtful.any():
            return leg
        rounding, _ = beside.around(leg.mode, doubtful)
        dust = doubtful & (claimed <= SIGMAS * rounding)
    return leg.with_status(Status.UNRESOLVED, dust)


def excuse_cancellation(leg: Leg, broken: Mask, outputs: Sequence[Leaf], beside: Beside) -> tuple[Leg, list[Finding]]:
    """Take back mismatches that are not larger than what the analytical side jumps about by around x.

    Args:
        leg: the comparison, shapes (m, n).
        broken: where f has no derivative: what jumps there is no rounding; shape (m, n).
        outputs: the leaves of f.
        beside: the derivative around x.

    Returns:
        The comparison, and what is to be said of it.
    """
    with np.errstate(all="ignore"):
        error, size = np.abs(leg.analytical - leg.numeric), _size(leg)
        small = error <= np.maximum(LARGEST * size, DUST * _largest(size, outputs))
        nothing = np.abs(leg.numeric) <= np.maximum(2 * leg.bar, DUST * np.abs(leg.analytical))
        doubtful = (leg.status == Status.MISMATCH) & ~broken
        if not doubtful.any() or not ((doubtful & nothing).any() or beside.moves(leg, doubtful, error)):
            return leg, []
        rounding, mean = beside.around(leg.mode, doubtful & (small | ~nothing))
        centred = np.abs(mean - leg.numeric) <= SIGMAS / np.sqrt(POINTS) * rounding + 2 * leg.bar
        excused = doubtful & (small | centred & ~nothing) & leg.mismatches_within(SIGMAS * rounding)
        rounding, mean = beside.around(leg.mode, doubtful & nothing & ~excused, SHORTER)
        # All that cancels in one output does so from the same terms.
        rounding = np.max(rounding, axis=1, keepdims=True, initial=0.0)
        centred = np.abs(mean - leg.numeric) <= rounding
        excused |= doubtful & nothing & centred & leg.mismatches_within(SIGMAS * rounding)
        if not excused.any():
            return leg, []
        worst = float(np.max(error / size, where=excused, initial=0.0))
    evidence = (
        f"the derivative itself jumps about around the inputs as much as it is off, which is {worst:.1g} of an entry: it "
        "is the small difference of large terms, as a finite difference is, and has their rounding"
    )
    remedy = "check at a point where less cancels, or write the derivative so that it does not"
    return leg.with_status(Status.INCONCLUSIVE, excused), [Finding("precision", evidence, leg.mode, remedy)]


def _size(leg: Leg) -> Array:
    return np.asarray(np.maximum(np.abs(leg.analytical), np.abs(leg.numeric)))


def _largest(size: Array, outputs: Sequence[Leaf]) -> Array:
    """The largest in the leaf of each row, shape (m, 1), those that are not finite apart."""
    return largest_of_leaf(np.where(np.isfinite(size), size, 0.0).T, outputs)[:, None]


def excuse_named(leg: ProbeLeg, beside: Beside) -> ProbeLeg:
    """Take back the mismatches of a few entries that are all rounding, as ``excuse_cancellation`` does."""
    wrong = [k for k, (_, _, a, e, bar, status) in enumerate(leg.named) if _is_nothing(a, e, bar, status)]
    if not wrong:
        return leg
    forward = leg.mode == "forward"
    places = [leg.named[k][1::-1] if forward else leg.named[k][:2] for k in wrong]
    lines = np.unique([line for line, _ in places])
    rounding, mean = beside.on_lines(lines, leg.shape[1 if forward else 0], SHORTER, forward)
    named = list(leg.named)
    for k, (line, place) in zip(wrong, places, strict=True):
        i, j, a, e, bar, _ = named[k]
        here = int(np.searchsorted(lines, line))
        largest = float(rounding[here].max(initial=0.0))
        mean_here = float(mean[here, min(place, mean.shape[1] - 1)])
        if abs(mean_here - e) <= largest and abs(a - e) <= SIGMAS * largest + 2 * bar:
            named[k] = (i, j, a, e, bar, Status.INCONCLUSIVE)
    return replace(leg, named=tuple(named))


def _is_nothing(analytical: float, numeric: float, bar: float, status: Status) -> bool:
    return status is Status.MISMATCH and abs(numeric) <= max(2 * bar, DUST * abs(analytical))


def _off_polynomial(samples: Array, at: Array) -> Array:
    """The root mean square of what a polynomial leaves of samples along the first axis; 0 where they are not finite."""
    powers = np.vander(at, DEGREE + 1)
    left = np.eye(len(at)) - powers @ np.linalg.pinv(powers)
    rest = np.tensordot(left, samples, axes=1)
    size = root_mean_square(rest, 0, len(at) - DEGREE - 1)
    return np.asarray(np.where(np.isfinite(size), size, 0.0))

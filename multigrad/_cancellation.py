"""Cancellation: derivatives by AD that are the small difference of large terms, and have the rounding of those.

(x - sin(x)) / x**3 is 1/6 to thirteen digits at x = 1e-3; its derivative, as a formula no less right, has two. How much
rounding a derivative carries shows on a short line through x, on which it should be a polynomial of low degree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from multigrad._dust import largest_of_leaf
from multigrad._kinks import Mask
from multigrad._leg import Leg
from multigrad._noise import root_mean_square
from multigrad._verdict import Status
from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.findings import Finding

# On the line, its length in units of x, which is to end before a pole beside x, and the degree.
POINTS, SHORT, DEGREE = 16, 2.0**-22, 5
# An error of so many root mean squares of the rounding is none.
SIGMAS = 6.0
# Errors beyond this fraction of an entry, and this of the largest in its output, have another cause.
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

    def rounding(self, mode: str, doubtful: Mask) -> Array:
        """What the rows, or columns, with entries in doubt jump about by; 0 for others, and where that can't be seen.

        Args:
            mode: of the derivative, ``reverse`` or ``forward``.
            doubtful: the entries in doubt, shape (m, n).
        """
        forward = mode == "forward"
        wanted = np.flatnonzero(doubtful.any(axis=0 if forward else 1))
        rounding = np.zeros(doubtful.shape)
        units = np.zeros((len(wanted), doubtful.shape[1 if forward else 0]))
        if units.size > AT_MOST:
            return rounding
        units[np.arange(len(wanted)), wanted] = 1.0
        rng = np.random.default_rng(0)
        along, steps = rng.choice([-1.0, 1.0], self.x.shape) * self.x, rng.uniform(-SHORT, SHORT, POINTS)
        try:
            line = [self.at(self.x + step * along) for step in steps]
            samples = np.stack([f.jvp(units) if forward else f.vjp(units) for f in line])
        except Exception:  # noqa: BLE001, of any type: the function need not be defined there
            return rounding
        seen = _off_polynomial(samples, steps / SHORT)
        if forward:
            rounding[:, wanted] = seen.T
        else:
            rounding[wanted] = seen
        return rounding


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
        dust = doubtful & (claimed <= SIGMAS * beside.rounding(leg.mode, doubtful))
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
        doubtful = (leg.status == Status.MISMATCH) & small & ~broken
        if not doubtful.any():
            return leg, []
        excused = doubtful & leg.mismatches_within(SIGMAS * beside.rounding(leg.mode, doubtful))
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


def _off_polynomial(samples: Array, at: Array) -> Array:
    """The root mean square of what a polynomial leaves of samples along the first axis; 0 where they are not finite."""
    powers = np.vander(at, DEGREE + 1)
    left = np.eye(len(at)) - powers @ np.linalg.pinv(powers)
    rest = np.tensordot(left, samples, axes=1)
    size = root_mean_square(rest, 0, len(at) - DEGREE - 1)
    return np.asarray(np.where(np.isfinite(size), size, 0.0))

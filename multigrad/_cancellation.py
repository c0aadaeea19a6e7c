"""Cancellation: derivatives by AD that are the small difference of large terms, and have the rounding of those.

(x - sin(x)) / x**3 is 1/6 to thirteen digits at x = 1e-3; its derivative, as a formula no less right, has two. How much
rounding a derivative carries shows on a short line through x, on which it should be a polynomial of low degree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
# Of the numbers in the cotangents or tangents that are tried.
AT_MOST = 2**22


def excuse_cancellation(
    leg: Leg, broken: Mask, outputs: Sequence[Leaf], at: Callable[[Array], FlatFunction], x: Array
) -> tuple[Leg, list[Finding]]:
    """Take back mismatches that are not larger than what the analytical side jumps about by around x.

    Args:
        leg: the comparison, shapes (m, n).
        broken: where f has no derivative: what jumps there is no rounding; shape (m, n).
        outputs: the leaves of f.
        at: makes the flat function at another point.
        x: the point, shape (n,).

    Returns:
        The comparison, and what is to be said of it.
    """
    with np.errstate(all="ignore"):
        error = np.abs(leg.analytical - leg.numeric)
        size = np.maximum(np.abs(leg.analytical), np.abs(leg.numeric))
        beside = largest_of_leaf(np.where(np.isfinite(size), size, 0.0).T, outputs)[:, None]
        small = error <= np.maximum(LARGEST * size, DUST * beside)
        doubtful = (leg.status == Status.MISMATCH) & small & ~broken
        if not doubtful.any():
            return leg, []
        excused = doubtful & leg.mismatches_within(SIGMAS * _rounding(leg, doubtful, at, x))
        if not excused.any():
            return leg, []
        worst = float(np.max(error / size, where=excused, initial=0.0))
    evidence = (
        f"the derivative itself jumps about around the inputs as much as it is off, which is {worst:.1g} of an entry: it "
        "is the small difference of large terms, as a finite difference is, and has their rounding"
    )
    remedy = "check at a point where less cancels, or write the derivative so that it does not"
    return leg.with_status(Status.INCONCLUSIVE, excused), [Finding("precision", evidence, leg.mode, remedy)]


def _rounding(leg: Leg, doubtful: Mask, at: Callable[[Array], FlatFunction], x: Array) -> Array:
    """What the rows, or columns, with entries in doubt jump about by; 0 for others, and where that can't be seen."""
    forward = leg.mode == "forward"
    wanted = np.flatnonzero(doubtful.any(axis=0 if forward else 1))
    rounding = np.zeros(doubtful.shape)
    units = np.zeros((len(wanted), doubtful.shape[1 if forward else 0]))
    if units.size > AT_MOST:
        return rounding
    units[np.arange(len(wanted)), wanted] = 1.0
    rng = np.random.default_rng(0)
    along, steps = rng.choice([-1.0, 1.0], x.shape) * x, rng.uniform(-SHORT, SHORT, POINTS)
    try:
        line = [at(x + step * along) for step in steps]
        samples = np.stack([f.jvp(units) if forward else f.vjp(units) for f in line])
    except Exception:  # noqa: BLE001, of any type: the function need not be defined there
        return rounding
    seen = _off_polynomial(samples, steps / SHORT)
    if forward:
        rounding[:, wanted] = seen.T
    else:
        rounding[wanted] = seen
    return rounding


def _off_polynomial(samples: Array, at: Array) -> Array:
    """The root mean square of what a polynomial leaves of samples along the first axis; 0 where they are not finite."""
    powers = np.vander(at, DEGREE + 1)
    left = np.eye(len(at)) - powers @ np.linalg.pinv(powers)
    rest = np.tensordot(left, samples, axes=1)
    size = root_mean_square(rest, 0, len(at) - DEGREE - 1)
    return np.asarray(np.where(np.isfinite(size), size, 0.0))

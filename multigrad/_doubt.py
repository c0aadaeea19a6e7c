"""Errors of a gradient that are smaller than the precision that the code is written for can hold."""

from __future__ import annotations

import math

import numpy as np

from multigrad._comparison.verdict import Status, Verdict
from multigrad._report.leg import Leg
from multigrad._report.report import GradReport
from multigrad.backends import Array
from multigrad.findings import Finding
from multigrad.precision import DOUBLE

# An error of a percent is one in any precision.
LARGEST = 2.0**-8
# A rounded constant, of a phase say, changes all entries of a row by a part of the largest: smaller ones count as this part.
PART = 2.0**-4


def excusable(written: float) -> float:
    """The relative error that rounding explains in code for arithmetic of unit roundoff ``written``."""
    return min(64 * written, LARGEST)


def doubt(report: GradReport, written: float) -> GradReport:
    """Take back a mismatch whose errors are all of the size of rounding in the user's own arithmetic.

    In float64 such an error is seen. It may be one of the gradient; or the code has a constant that is rounded, or
    ends an iteration, at the precision that it is written for.

    Args:
        report: of a function in its own or a finer arithmetic.
        written: the unit roundoff of the arithmetic that it is written for; 0 if nothing was done about it.
    """
    if report.verdict is not Verdict.MISMATCH:
        return report
    wrong = [e for e in report.worst if e.status is Status.MISMATCH]
    entries = max((float(_relative(e.analytical, e.numeric, e.bar)) for e in wrong), default=math.inf)
    legs = [leg for leg in report.legs if isinstance(leg, Leg)]
    whole = bool(legs) and len(legs) == len(report.legs) and not report.probed and not report.extra
    largest = max(map(_of_rows, legs)) if whole else entries
    if not 0 < largest <= excusable(written):  # one within its bars is no error of size, but no legal choice
        return report
    finding = Finding(
        "precision",
        f"the gradient differs from the derivative by {largest:.1g} of its entries, which is not more than the rounding "
        f"of the precision it is written for (unit roundoff {written:.1g}): a rounded constant or the tolerance of an "
        "iteration explains as much, and so does a small error",
        remedy=f"pass inputs of a wider type to tell, or rtol={2 * entries:.0e} to accept it",
    )
    return report.unfounded().with_findings([finding])


def _of_rows(leg: Leg) -> float:
    """The largest of the leg's wrong entries by ``_relative``, where small ones count as a ``PART`` of their row."""
    relative = _relative(leg.analytical, leg.numeric, leg.bar, PART * leg.largest_of_row)
    return float(np.max(relative[leg.status == Status.MISMATCH], initial=0.0))


def may_stand_on_a_step(report: GradReport, written: float) -> bool:
    """Whether an output is said to have no gradient at all, in code for arithmetic of unit roundoff ``written``.

    Between two roundings to that f stands still, whatever its gradient is.
    """
    return written > DOUBLE and any(leg.kept and not leg.analytical.any(axis=1).all() for leg in report.legs)


def dispute(report: GradReport, fine: GradReport) -> GradReport:
    """Take back a mismatch in coarse arithmetic at entries that are right in a fine one, or 0 where f stands still.

    Whether a function whose values change by steps means its plateaus or the slope over them, it does not say.

    Args:
        report: of the function as one of coarse arithmetic.
        fine: of the same function as it was taken for before.
    """
    if report.verdict is not Verdict.MISMATCH or report.extra or report.rules.eps <= fine.rules.eps:
        return report
    before = {leg.mode: leg for leg in fine.legs if leg.kept}
    for leg in report.legs:
        wrong = leg.status == Status.MISMATCH
        legal = before[leg.mode].status if leg.mode in before else np.full(wrong.shape, Status.MISMATCH, np.int8)
        if (wrong & (legal >= np.where(leg.analytical == 0, Status.MISMATCH, Status.INCONCLUSIVE))).any():
            return report
    return report.unfounded().with_findings([])


def _relative(
    analytical: Array | float, numeric: Array | float, bar: Array | float, least: Array | float = 0.0
) -> Array:
    """By how much of their size, which is taken for ``least`` at the least, entries are wrong beyond their bars.

    It is infinite where they are wrong within them, which is no case of rounding.
    """
    with np.errstate(all="ignore"):
        beyond = np.abs(np.subtract(analytical, numeric)) - np.multiply(2, bar)
        relative = beyond / np.maximum(np.maximum(np.abs(analytical), np.abs(numeric)), least)
    return np.where((beyond > 0) & np.isfinite(relative), relative, math.inf)

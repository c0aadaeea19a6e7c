"""Inexact derivatives: a backward pass that iterates, or chooses its steps, to a tolerance of its own.

The adjoint of an ODE solver is as right as its tolerance, and so is a linear solve by iteration. Such a pass is not quite
linear in the cotangent: what a combination of cotangents gives is not quite the combination of its rows. By how much
shows, without any difference of values, how far its entries can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multigrad._analytical.jacobian import Probe
from multigrad._comparison.verdict import Status, Verdict
from multigrad._report.leg import Leg
from multigrad.backends import Array
from multigrad.findings import Finding

# An entry may be off by so many times what the combinations are: a few of them stand for all errors.
SLACK = 64


def inexactness(probes: Sequence[Probe], J: Array, rtol: float) -> float:
    """By how much products with J differ from the same combinations of its rows, as a fraction of their largest terms.

    A fraction beyond ``rtol`` is no inexactness, but a backward pass that is not linear: that counts as 0.
    """
    worst = 0.0
    with np.errstate(all="ignore"):
        for probe in probes:
            gap, terms = np.abs(probe.product - probe.vector @ J), np.abs(probe.vector) @ np.abs(J)
            if terms.any() and np.isfinite(gap).all():
                worst = max(worst, float(gap.max() / terms.max()))
    return worst if worst <= rtol else 0.0


def excuse_inexact(leg: Leg, inexact: float) -> tuple[Leg, list[Finding]]:
    """Take back mismatches that are no larger than what the backward pass itself is off by.

    Entries that are smaller than that altogether are unresolved: they are counted, and nothing else is said of them.

    Args:
        leg: the comparison, shapes (m, n).
        inexact: how much the backward pass is off, as a fraction of the largest entry of a row.

    Returns:
        The comparison, and what is to be said of it.
    """
    if not inexact or leg.verdict is not Verdict.MISMATCH:
        return leg, []
    allowed = SLACK * inexact * leg.largest_of_row
    excused = leg.mismatches_within(allowed)
    small = np.maximum(np.abs(leg.analytical), np.abs(leg.numeric) + leg.bar) <= allowed
    leg = leg.with_status(Status.UNRESOLVED, excused & small)
    if not (excused & ~small).any():
        return leg, []
    return leg.with_status(Status.INCONCLUSIVE, excused & ~small), [not_exact(inexact)]


def not_exact(inexact: float) -> Finding:
    """Say that a backward pass is too inexact to tell more of it."""
    evidence = (
        f"the backward pass is not exact: for random cotangents it differs by {inexact:.1g} from the same combination of "
        "its own rows, and what it is off by is no more than that explains"
    )
    return Finding("precision", evidence, "reverse", "tighten the tolerance of the solver inside, to see more")

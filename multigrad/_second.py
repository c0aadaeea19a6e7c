"""The second order: whether the derivative can be differentiated, and its derivative is right.

The gradient u^T J(x), at random cotangents u, is a function like any other: its derivative by the framework, which
runs the double backward of the rules under test, is compared with differences of it. The cotangent changes as well,
along one random line, since in a longer chain of functions it does so too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from multigrad._comparison.dust import ULPS
from multigrad._comparison.verdict import Status, Verdict
from multigrad._differences.directions import signed
from multigrad._report.leg import Leg
from multigrad._report.report import GradReport
from multigrad._report.sparse_leg import SparseLeg
from multigrad.backends import FlatFunction, place
from multigrad.errors import Defect, InvalidUse, Unsupported
from multigrad.findings import Finding

# Two evaluations of a second derivative by AD, each a sum in its own order.
SYMMETRIC = 1e-6
# Cotangents are as large as this, and so are terms that may cancel in a second derivative, however small that is.
SMALLEST, LARGEST = 1.0, 2.0
NAMES = {"reverse": "reverse over reverse", "forward": "forward over reverse"}


def with_second_order(
    f: FlatFunction, first: GradReport, check: Callable[[FlatFunction], GradReport], seed: int
) -> GradReport:
    """Join what a check of the gradient of f says to the report of the first order.

    Args:
        f: the flat function.
        first: the report on it.
        check: checks a flat function.
        seed: of the cotangents.

    Raises:
        InvalidUse: the adapter knows no second order for this function.
    """
    make = getattr(f, "gradient", None)
    if make is None:
        raise InvalidUse(
            "order_unavailable", "order=2 needs derivatives by the framework itself: this backend has none to offer"
        )
    if not (first.legs or first.probed):
        return first
    rng = np.random.default_rng((seed, 2))
    m = f.repeats.shape[1]
    try:
        g = make(signed(rng, SMALLEST, LARGEST, (m,)), signed(rng, SMALLEST, LARGEST, (m,)))
    except Unsupported as error:
        return first.with_findings([Finding("order_unavailable", str(error), "order 2")])
    except Defect as error:
        return first.with_findings([replace(error.finding, where=f"order 2, {error.finding.where}")])
    second = _but_rounding(check(g))
    second = replace(second, legs=tuple(replace(leg, mode=NAMES[leg.mode]) for leg in second.legs))
    second = replace(second, agreeing=tuple(NAMES[mode] for mode in second.agreeing), extra=second.extra)
    second = second.with_findings(_asymmetry(second.legs, len(f.x), second))
    return first.with_second(second)


def _but_rounding(second: GradReport) -> GradReport:
    """Take back a mismatch whose errors are all as small as the rounding of terms of the size of the cotangents."""
    wrong = [leg for leg in second.legs if leg.verdict is Verdict.MISMATCH]
    dense = [leg for leg in wrong if isinstance(leg, Leg)]
    if second.verdict is not Verdict.MISMATCH or len(dense) < len(wrong) or second.probed:
        return second
    with np.errstate(invalid="ignore"):  # infinite derivatives
        errors = [np.abs(leg.analytical - leg.numeric)[leg.status == Status.MISMATCH] for leg in dense]
    largest = max([float(np.max(error, initial=0.0)) for error in errors] + [entry.error for entry in second.extra])
    if not largest <= ULPS * second.rules.eps * LARGEST:
        return second
    evidence = f"errors of {largest:.1g} are no larger than the rounding of terms that are as large as the cotangents"
    return second.unfounded().with_findings(
        [Finding("precision", evidence, "", "check at a point where second derivatives are larger")]
    )


def _asymmetry(legs: Sequence[Leg | SparseLeg], n: int, second: GradReport) -> list[Finding]:
    """Second derivatives by two inputs are the same in either order."""
    if not legs or second.verdict is not Verdict.MISMATCH or legs[0].analytical.shape[0] != n:
        return []
    H = legs[0].analytical[:, :n]
    gap = np.abs(H - H.T)
    if not np.isfinite(gap).all() or np.max(gap, initial=0.0) <= SYMMETRIC * np.max(np.abs(H), initial=0.0):
        return []
    i, j = (int(k) for k in np.unravel_index(np.argmax(gap), gap.shape))
    places = [place(second.inputs, k) for k in (i, j)]
    evidence = (
        f"the Hessian is not symmetric: d grad({places[0]}) / d {places[1]} is {H[i, j]:.6g}, "
        f"d grad({places[1]}) / d {places[0]} is {H[j, i]:.6g}"
    )
    return [Finding("diagnosis", evidence, "order 2", "the backward computes from values that carry no graph")]

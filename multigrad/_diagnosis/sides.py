"""Sides: the slopes of f on both sides of a kink, in words; what a derivative may be there lies between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from multigrad._comparison.verdict import Rules, Status, Verdict
from multigrad._differences.directions import Mask, scale_of
from multigrad._differences.sampler import Sampler
from multigrad._report.leg import Leg
from multigrad._report.sparse_leg import SparseLeg
from multigrad.backends import FlatFunction, place
from multigrad.findings import Finding

# How many times smaller the second step is, and by what fraction a slope may differ over it.
CLOSER, STEADY = 16.0, 1e-3


def tell_sides(
    f: FlatFunction, legs: Sequence[Leg | SparseLeg], broken: dict[str, Mask], sampler: Sampler, rules: Rules
) -> Iterator[Finding]:
    """Tell them of one entry, the first that is undecided at a kink or wrong there.

    Args:
        f: the function.
        legs: the comparison of each mode.
        broken: by mode, where f has no derivative, shape (m, n).
        sampler: f around x.
        rules: the constants.
    """
    at_kinks = (
        (i, j)
        for leg in legs
        if leg.verdict is not Verdict.OK
        for i, j, *_, status in leg.worst(rules)
        if status is Status.NONDIFFERENTIABLE
        or (status is Status.MISMATCH and leg.mode in broken and broken[leg.mode][i, j])
    )
    for i, j in at_kinks:
        evidence = _in_words(place(f.outputs, i), *_slopes(sampler, i, j))
        yield Finding("kink", evidence, place(f.inputs, j))
        return


def _slopes(sampler: Sampler, i: int, j: int) -> tuple[float, float]:
    """The slope of output ``i`` below and above input ``j``: infinite if there is no finite one, NaN without a value."""
    x = sampler.x
    far = np.sqrt(sampler.eps) * scale_of(x[j : j + 1])[0]
    steps = np.array([[-far, far], [-far / CLOSER, far / CLOSER]])
    X = np.tile(x, (steps.size, 1))
    X[:, j] += steps.ravel()
    with np.errstate(all="ignore"):
        quotients = ((sampler.f(X)[:, i] - sampler.here[i]) / (X[:, j] - x[j])).reshape(steps.shape)
        steady = np.abs(quotients[1] - quotients[0]) <= STEADY * np.maximum(np.abs(quotients[1]), 1.0)
        below, above = np.where(steady | np.isnan(quotients[1]), quotients[1], np.inf).tolist()
    return below, above


def _in_words(output: str, below: float, above: float) -> str:
    if not np.isfinite([below, above]).all():
        return f"{output} has {_named(below)} below and {_named(above)} above it"
    if abs(above - below) <= STEADY * max(abs(below), abs(above)):
        return f"{output} has no kink along this input alone, but where several move"
    return f"{output} has {_named(below)} below and {_named(above)} above it; any value between them is a legal choice"


def _named(slope: float) -> str:
    if np.isnan(slope):
        return "no value"
    return f"the slope {slope + 0.0:.6g}" if np.isfinite(slope) else "no finite slope"

"""Discrepancies: the entries in which sides differ, and the table of what is said of each side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from multigrad._comparison.verdict import Codes, Status
from multigrad._report.leg import Leg
from multigrad._report.sparse_leg import SparseLeg
from multigrad.backends import Array
from multigrad.consistency.agreement import Claim, claims, magnitude, spans
from multigrad.consistency.answers import NOTHING, Cell, Consistency
from multigrad.consistency.matching import Pair
from multigrad.consistency.report import Discrepancy
from multigrad.consistency.sides import Side

SHOWN = 8
MODES = ("reverse", "forward")
# Entries so much smaller than the largest are what rounding leaves of a zero.
DUST = 1e-12


def place(pairs: Sequence[Pair], k: int) -> str:
    """Name a common place as the reference has it: path and index."""
    for pair in pairs:
        if k < pair.leaf.size:
            return pair.reference.place(pair.reference.start + k)
        k -= pair.leaf.size
    raise IndexError(k)


def by_value(sides: Mapping[str, Side], a: Side, b: Side, status: Codes) -> Iterator[Discrepancy]:
    """The entries in which the values of two sides differ most, with what all sides say.

    Those of a leaf whose axes lie in unknown orders are left out: the same place is not the same entry.
    """
    gap = np.where(status > Status.OK, relative_gap(a, b), -1.0)
    for pair, other, span in zip(a.outputs, b.outputs, spans(a.outputs), strict=True):
        if pair.jumbled or other.jumbled:
            gap[span] = -1.0
    for k in np.argsort(-gap, kind="stable")[:SHOWN]:
        if gap[k] >= 0:
            numbers = {name: float(side.values[k]) for name, side in sides.items()}
            yield Discrepancy("value", place(a.outputs, int(k)), "", numbers, excess=float(gap[k]))


def relative_gap(a: Side, b: Side) -> Array:
    """The difference of the values as a fraction of the larger; infinite where one is not finite."""
    x, y = a.values, b.values
    with np.errstate(all="ignore"):
        size = np.maximum(magnitude(x, a.outputs), magnitude(y, b.outputs))
        gap = np.abs(x - y) / np.where(size > 0, size, 1.0)
    same = (x == y) | (np.isnan(x) & np.isnan(y)) | ~np.isfinite(a.signs * b.signs)
    return np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))


def by_derivative(
    sides: Mapping[str, Side], side: Side, claim: Claim, wrong: Codes, other: Array
) -> Iterator[Discrepancy]:
    """The entries of one side's Jacobian that are wrong, by ``other``: its own numerical one, or another side's."""
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(claim.jacobian), np.abs(other))
        excess = np.abs(claim.jacobian - other) / np.where(size > 0, size, 1.0)
    excess = np.where(wrong == Status.MISMATCH, np.where(np.isfinite(excess), excess, np.inf), -1.0)
    for flat in np.argsort(-excess, axis=None, kind="stable")[:SHOWN]:
        i, j = (int(k) for k in np.unravel_index(flat, excess.shape))
        if excess[i, j] < 0:
            return
        said = {name: _said(other, claim.mode, i, j) for name, other in sides.items()}
        yield Discrepancy(
            claim.mode,
            place(side.outputs, i),
            place(side.inputs, j),
            {name: number for name, number in said.items() if number is not None},
            float(claim.numeric[i, j]),
            float(claim.numeric_bar[i, j]),
            float(excess[i, j]),
        )


def _said(side: Side, mode: str, i: int, j: int) -> float | None:
    made = [] if side.borrowed else claims(side)
    chosen = next((claim for claim in made if claim.mode == mode), made[0] if made else None)
    return None if chosen is None else float(chosen.jacobian[i, j])


def table(
    sides: Mapping[str, Side], values: Mapping[str, Cell], differing: Mapping[str, str], stopped: bool
) -> dict[str, dict[str, Cell]]:
    """What is said of each backend: value, reverse, forward.

    Args:
        sides: the sides, checked.
        values: the cells of the first column.
        differing: backends whose derivative is not that of the agreeing ones, with the words to say so.
        stopped: gradients may be stopped.
    """
    return {
        name: {
            "value": values[name],
            **{mode: derivative_cell(side, mode, differing.get(name), stopped) for mode in MODES},
        }
        for name, side in sides.items()
    }


def derivative_cell(side: Side, mode: str, differing: str | None, stopped: bool) -> Cell:
    """What is said of a side's derivative by one mode."""
    if side.report is None or side.borrowed:
        return NOTHING
    leg = next((leg for leg in side.report.legs if leg.mode == mode), None)
    if leg is None:
        return Cell(Consistency.OK, "agrees") if mode in side.report.agreeing else NOTHING
    status = Status(int(leg.status.max(initial=0)))
    if status is Status.MISMATCH and not stopped:
        return Cell(Consistency.MISMATCH, "wrong for its own values")
    if differing:
        return Cell(Consistency.MISMATCH, differing)
    if status is Status.MISMATCH:
        return Cell(Consistency.CONVENTION, "stopped in places")
    if status is Status.NONDIFFERENTIABLE:
        return Cell(Consistency.CONVENTION, "legal choices at kinks", _sharpness(leg))
    if status is Status.INCONCLUSIVE:
        return Cell(Consistency.INCONCLUSIVE, "not told by differences", _sharpness(leg))
    return Cell(Consistency.OK, f"ok, to {_sharpness(leg):.1g}", _sharpness(leg))


def _sharpness(leg: Leg | SparseLeg) -> float:
    """The largest relative error that an entry called ok might still have, dust around zeros left out."""
    size = np.maximum(np.abs(leg.analytical), np.abs(leg.numeric))
    told = (leg.status == Status.OK) & (size > DUST * np.max(size, initial=0.0, where=np.isfinite(size)))
    return float(np.max(leg.bar / np.where(told, size, 1.0), initial=0.0, where=told))


def value_cell(side: Side, other: Side, status: Codes) -> Cell:
    """What is said of a side's values as compared with another's."""
    gap = relative_gap(side, other)
    seen = float(np.max(gap, initial=0.0, where=status == status.max(initial=0)))
    answer = (Consistency.OK, Consistency.INCONCLUSIVE, Consistency.MISMATCH)[_rank(status)]
    if answer is Consistency.OK:
        return Cell(answer, f"ok, to {seen:.1g}", seen)
    count = int((status > Status.OK).sum())
    return Cell(answer, f"differs from {other.name} {_by(side, other)} in {count} of {status.size} entries", seen)


def _by(side: Side, other: Side) -> str:
    """The largest difference of two sides' values, and what part of the larger of the two numbers it is."""
    gap = relative_gap(side, other)
    finite = np.isfinite(gap)
    if not finite.all():
        return "by NaN or infinity"
    with np.errstate(all="ignore"):
        difference = np.where(gap > 0, np.abs(side.values - other.values), 0.0)
    k = int(np.argmax(difference))
    return f"by up to {difference[k]:.2g} ({gap[k]:.2g} of the value)"


def _rank(status: Codes) -> int:
    return {Status.OK: 0, Status.INCONCLUSIVE: 1, Status.MISMATCH: 2}[Status(int(status.max(initial=0)))]

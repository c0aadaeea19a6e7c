"""Outcome: what the evidence adds up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multigrad._consistency_report import Cell, Consistency, ConsistencyReport, Discrepancy
from multigrad._conventions import Convention
from multigrad._discrepancies import SHOWN, table, value_cell
from multigrad._evidence import Evidence
from multigrad._findings import Finding
from multigrad._sides import Side
from multigrad._verdict import Status


@dataclass(frozen=True)
class Outcome:
    """All that is known when nothing more is going to be looked at.

    Attributes:
        blamed: the odd ones out, each with the evidence.
        apart: whether the sides fall into several groups, by values or by derivatives.
        moved: sides that agree in another layout than the user said.
        excused: sides whose values differ by conventions that are legal or accepted.
        differing: sides whose derivatives are not those of the right ones, with the words for it.
        unmatched: leaves without a counterpart.
    """

    evidence: Evidence
    blamed: Mapping[str, str]
    apart: bool
    moved: Sequence[str]
    excused: Sequence[str]
    differing: Mapping[str, str]
    worst: Sequence[Discrepancy]
    conventions: Sequence[Convention]
    findings: Sequence[Finding]
    unmatched: Sequence[Finding]


def report(outcome: Outcome) -> ConsistencyReport:
    """Write it down."""
    evidence = outcome.evidence
    sides, reference = evidence.sides, evidence.call.reference
    verdict, reason = _verdict(outcome)
    right = tuple(name for name in evidence.right if name not in outcome.blamed)
    noted = (*(c.finding for c in outcome.conventions), *outcome.findings, *outcome.unmatched)
    return ConsistencyReport(
        verdict=verdict,
        odd=tuple(name for name in sides if name in outcome.blamed),
        blame=outcome.blamed,
        agreeing=right if len(right) > 1 or reference else (),
        table=table(sides, {name: _value_cell(outcome, side) for name, side in sides.items()}, outcome.differing),
        worst=tuple(sorted(outcome.worst, key=lambda d: -d.excess)[:SHOWN]),
        conventions=tuple(dict.fromkeys(outcome.conventions)),
        findings=tuple(dict.fromkeys(noted)),
        layouts={name: side.layout.axes for name, side in sides.items() if side.layout.axes},
        sides={name: side.report for name, side in sides.items() if side.report is not None},
        reference=evidence.lead.name,
        seconds=0.0,
        reason=reason,
    )


def _verdict(outcome: Outcome) -> tuple[Consistency, str]:
    lost = [f for f in outcome.unmatched if f.kind == "unmatched"]
    if outcome.blamed or outcome.apart or outcome.moved or any(f.where.startswith("output") for f in lost):
        return Consistency.MISMATCH, ""
    reason = _doubt(outcome) or next((f.evidence for f in lost), "")
    if reason:
        return Consistency.INCONCLUSIVE, reason
    return (Consistency.CONVENTION if outcome.conventions else Consistency.OK), ""


def _doubt(outcome: Outcome) -> str:
    """Why it can't be told that the sides are consistent; empty if it can."""
    evidence = outcome.evidence
    for (a, b), status in evidence.values.items():
        if (status == Status.INCONCLUSIVE).any() and not {a, b} & set(outcome.excused):
            return f"{a} and {b} differ in value by more than rounding, but by less than {evidence.rtol:g} of the value"
    for name, side in evidence.sides.items():
        found = [] if side.report is None else side.report.findings
        # That a value is NaN in one and not in another has been seen by comparing them.
        errors = [f for f in found if f.severity == "error" and f.kind != "non_finite"]
        if errors:
            return f"{name}: {errors[0].kind}: {errors[0].evidence}"
    speaking = [side.name for side in evidence.sides.values() if side.differentiated]
    if len(speaking) == 1 and (evidence.claims[speaking[0]][0].status == Status.INCONCLUSIVE).any():
        return f"the derivatives of {speaking[0]}, the only ones, can't be told by differences"
    return ""


def _value_cell(outcome: Outcome, side: Side) -> Cell:
    evidence = outcome.evidence
    if side.name in outcome.moved:
        return Cell(Consistency.MISMATCH, "ok in another layout")
    if evidence.call.reference == side.name and len(evidence.right) == 1:
        return Cell(Consistency.OK, "the reference")
    measured_by = evidence.right if side.name in evidence.right else [evidence.target.name]
    others = [evidence.sides[name] for name in measured_by if name != side.name] or list(evidence.others(side))
    cells = [value_cell(side, other, evidence.values[side.name, other.name]) for other in others]
    cell = max(cells, key=lambda c: (c.answer.severity if c.answer else 0, c.sharpness))
    if side.name in outcome.excused:
        return Cell(Consistency.CONVENTION, f"convention, {cell.note}", cell.sharpness)
    return cell

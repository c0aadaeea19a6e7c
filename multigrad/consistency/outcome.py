"""Outcome: what the evidence adds up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multigrad._comparison.verdict import Status
from multigrad.consistency.answers import MOVED, NOTHING, Cell, Consistency
from multigrad.consistency.conventions import Convention
from multigrad.consistency.discrepancies import SHOWN, derivative_cell, table, value_cell
from multigrad.consistency.evidence import Evidence
from multigrad.consistency.report import ConsistencyReport, Discrepancy
from multigrad.consistency.sides import Side
from multigrad.findings import Finding


@dataclass(frozen=True)
class Weighed:
    """What the evidence of one order of derivatives comes to.

    Attributes:
        blamed: the odd ones out, each with the evidence.
        apart: whether the sides fall into several groups, by values or by derivatives.
        differing: sides whose derivatives are not those of the right ones, with the words for it.
    """

    evidence: Evidence
    blamed: Mapping[str, str]
    apart: bool
    differing: Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """All that is known when nothing more is going to be looked at.

    Attributes:
        first: what the values and first derivatives come to.
        second: the gradients and their derivatives, if they were compared.
        moved: sides that agree in another layout than the user said.
        excused: sides whose values differ by conventions that are legal or accepted.
        unmatched: leaves without a counterpart.
    """

    first: Weighed
    second: Weighed | None
    moved: Sequence[str]
    excused: Sequence[str]
    worst: Sequence[Discrepancy]
    conventions: Sequence[Convention]
    findings: Sequence[Finding]
    unmatched: Sequence[Finding]

    @property
    def evidence(self) -> Evidence:
        """That of the first order."""
        return self.first.evidence

    @property
    def orders(self) -> list[Weighed]:
        """The orders that were compared."""
        return [self.first] if self.second is None else [self.first, self.second]

    @property
    def stopped(self) -> bool:
        """Whether a derivative need not be that of the values."""
        return "stop_gradient" in self.evidence.call.accept

    @property
    def blamed(self) -> Mapping[str, str]:
        """The odd ones out, each with the evidence."""
        later = {} if self.second is None else {n: f"{why}, at order 2" for n, why in self.second.blamed.items()}
        return {**later, **self.first.blamed}


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
        table=_table(outcome),
        worst=_worst(outcome.worst),
        conventions=tuple(dict.fromkeys(outcome.conventions)),
        findings=tuple(dict.fromkeys(noted)),
        layouts={name: side.orders for name, side in sides.items() if side.orders},
        sides={name: side.report for name, side in sides.items() if side.report is not None},
        reference=evidence.lead.name,
        seconds=0.0,
        reason=reason,
        order=evidence.call.order,
    )


def _worst(entries: Sequence[Discrepancy]) -> tuple[Discrepancy, ...]:
    """Each entry once, the worst first."""
    ranked = sorted(entries, key=lambda d: -d.excess)
    once = {(d.what, d.output, d.input): d for d in reversed(ranked)}
    return tuple(sorted(once.values(), key=lambda d: -d.excess)[:SHOWN])


def _table(outcome: Outcome) -> dict[str, dict[str, Cell]]:
    sides = outcome.evidence.sides
    values = {name: _value_cell(outcome, side) for name, side in sides.items()}
    cells = table(sides, values, outcome.first.differing, outcome.stopped)
    if outcome.evidence.call.order == 2:
        for name, row in cells.items():
            row["second"] = _second_cell(outcome, name)
    return cells


def _second_cell(outcome: Outcome, name: str) -> Cell:
    second = outcome.second
    if second is None or name not in second.evidence.sides:
        return NOTHING
    side, target = second.evidence.sides[name], second.evidence.target
    if not second.evidence.alike(name, target.name):
        return Cell(Consistency.MISMATCH, f"another gradient than {target.name}")
    return derivative_cell(side, "reverse", second.differing.get(name), outcome.stopped)


def _verdict(outcome: Outcome) -> tuple[Consistency, str]:
    lost = [f for f in outcome.unmatched if f.kind == "unmatched"]
    apart = any(weighed.apart for weighed in outcome.orders)
    if outcome.blamed or apart or outcome.moved or any(f.where.startswith("output") for f in lost):
        return Consistency.MISMATCH, ""
    refuted = {name: None for weighed in outcome.orders for name in weighed.evidence.refuted}
    if refuted and not outcome.stopped:
        return Consistency.MISMATCH, f"the derivatives of {' and '.join(refuted)} are not those of their own values"
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
    speaking = [side.name for side in evidence.sides.values() if side.differentiated]
    # Whether a value is NaN, and what is made of free phases, has been seen by comparing the sides.
    seen = {"non_finite", "ill_defined"} if len(speaking) > 1 else {"non_finite"}
    for name, side in (item for weighed in outcome.orders for item in weighed.evidence.sides.items()):
        found = [] if side.report is None else side.report.findings
        errors = [f for f in found if f.severity == "error" and f.kind not in seen]
        if errors:
            return f"{name}: {errors[0].kind}: {errors[0].evidence}"
    if len(speaking) == 1 and (evidence.claims[speaking[0]][0].status == Status.INCONCLUSIVE).any():
        return f"the derivatives of {speaking[0]}, the only ones, can't be told by differences"
    return ""


def _value_cell(outcome: Outcome, side: Side) -> Cell:
    evidence = outcome.evidence
    if side.name in outcome.moved:
        return MOVED
    if evidence.call.reference == side.name and len(evidence.right) == 1:
        return Cell(Consistency.OK, "the reference")
    measured_by = evidence.right if side.name in evidence.right else [evidence.target.name]
    others = [evidence.sides[name] for name in measured_by if name != side.name] or list(evidence.others(side))
    cells = [value_cell(side, other, evidence.values[side.name, other.name]) for other in others]
    if any(other.outline != side.outline for other in others):
        return Cell(Consistency.MISMATCH, f"other outputs than {others[0].name}")
    if any(pair.jumbled for pair in side.outputs) and max(cell.answer.severity for cell in cells if cell.answer):
        return Cell(Consistency.MISMATCH, f"its axes are not in the order of {evidence.lead.name}'s")
    cell = max(cells, key=lambda c: (c.answer.severity if c.answer else 0, c.sharpness))
    if side.name in outcome.excused:
        return Cell(Consistency.CONVENTION, f"convention, {cell.note}", cell.sharpness)
    return cell

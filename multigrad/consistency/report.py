"""The report of a comparison between implementations, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from multigrad._report.report import GradReport
from multigrad.consistency.answers import Cell, Consistency
from multigrad.consistency.conventions import Convention
from multigrad.consistency.matching import Axes
from multigrad.findings import Finding


@dataclass(frozen=True, eq=False)
class Discrepancy:
    """One entry in which the sides differ.

    Attributes:
        what: ``value``, ``reverse`` or ``forward``.
        output: path and index of the output, as the reference has it.
        input: path and index of the input; empty for a value.
        numbers: what each backend says.
        numeric: the numerical derivative; None for a value.
        bar: the bound on its error.
        excess: how many times the allowed difference it is.
    """

    what: str
    output: str
    input: str
    numbers: Mapping[str, float]
    numeric: float | None = None
    bar: float = 0.0
    excess: float = 0.0


@dataclass(frozen=True)
class ConsistencyReport:
    """What ``check_consistency`` found.

    ``bool(report)`` is whether the implementations may stand in for one another: the verdict is ok, or all differences
    are conventions that are legal or accepted.

    Attributes:
        verdict: the worst that is said of any side, or between any two.
        odd: the backends that are the odd ones out.
        blame: for each of them the evidence: by majority, by the numerical witness, by the reference.
        agreeing: the backends that the others are measured by; empty if it can't be told which are right.
        table: for each backend the columns ``value``, ``reverse``, ``forward``.
        worst: the entries furthest from agreement, worst first.
        conventions: differences that are choices of the frameworks.
        findings: what else was noticed, layouts and diagnoses among it.
        layouts: for each backend the order of axes, by path, by which it agrees with the reference.
        sides: each backend's own ``GradReport``: its derivative against its own numerical one.
        reference: the backend whose paths are used.
        seconds: wall time.
        reason: why it can't be told, if it can't.
        order: 2 if the derivatives of the gradients were compared as well.
    """

    verdict: Consistency
    odd: tuple[str, ...]
    blame: Mapping[str, str]
    agreeing: tuple[str, ...]
    table: Mapping[str, Mapping[str, Cell]]
    worst: tuple[Discrepancy, ...]
    conventions: tuple[Convention, ...]
    findings: tuple[Finding, ...]
    layouts: Mapping[str, Mapping[str, Axes]]
    sides: Mapping[str, GradReport]
    reference: str
    seconds: float
    reason: str = ""
    order: int = 1

    def __bool__(self) -> bool:
        return self.verdict in (Consistency.OK, Consistency.CONVENTION)

    @property
    def sharpness(self) -> float:
        """The largest relative difference that might have gone unseen in what is called ok."""
        cells = [cell for row in self.table.values() for cell in row.values()]
        return max((cell.sharpness for cell in cells if cell.answer is Consistency.OK), default=0.0)

    def __str__(self) -> str:
        from multigrad.consistency.text import as_text

        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it but the matrices, as values that ``json.dumps`` takes."""
        return {
            "verdict": str(self.verdict),
            "odd": list(self.odd),
            "blame": dict(self.blame),
            "agreeing": list(self.agreeing),
            "reason": self.reason,
            "table": {
                name: {
                    column: {"answer": cell.answer and str(cell.answer), "note": cell.note, "sharpness": cell.sharpness}
                    for column, cell in row.items()
                }
                for name, row in self.table.items()
            },
            "worst": [
                {
                    "what": d.what,
                    "output": d.output,
                    "input": d.input,
                    "numbers": {name: _number(value) for name, value in d.numbers.items()},
                    "numeric": None if d.numeric is None else _number(d.numeric),
                    "bar": _number(d.bar),
                }
                for d in self.worst
            ],
            "conventions": [
                {"name": c.name, "where": c.where, "backends": list(c.backends), "evidence": c.evidence}
                for c in self.conventions
            ],
            "findings": [
                {"kind": f.kind, "where": f.where, "evidence": f.evidence, "remedy": f.remedy} for f in self.findings
            ],
            "layouts": {name: {path: list(p) for path, p in axes.items()} for name, axes in self.layouts.items()},
            "sides": {name: report.to_dict() for name, report in self.sides.items()},
            "reference": self.reference,
            "order": self.order,
            "seconds": self.seconds,
        }


def _number(value: float) -> float | str:
    """JSON has no NaN or infinity."""
    return value if value - value == 0 else str(value)

"""One comparison, from the functions to the report."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from multigrad import _blame, _sides
from multigrad._agreement import Claim, claims, compare_jacobians, compare_values, legal_choices
from multigrad._call import Call, match
from multigrad._consistency_report import Cell, Consistency, ConsistencyReport, Discrepancy
from multigrad._conventions import LEGAL, Convention
from multigrad._discrepancies import SHOWN, by_derivative, by_value, table, value_cell
from multigrad._findings import Finding
from multigrad._naming import name_kinks, name_values, set_phases
from multigrad._sides import Side
from multigrad._verdict import Codes, Status
from multigrad.backends import Array
from multigrad.errors import InvalidUse

RTOL = 1e-7


def compare(call: Call) -> ConsistencyReport:
    """Compare the functions of a call.

    Raises:
        InvalidUse: nothing to differentiate, or inputs that differ.
        Exception: whatever a function raises at the inputs, with a note that names the backend.
    """
    return _Comparison(call).run()


class _Comparison:
    """One comparison in progress.

    Attributes:
        sides: by backend, in the user's order.
        lead: the side whose paths and order are used.
        moved: sides that agree in another layout than the user said.
        groups: the sides by values, as the user gave them.
        right: the group that the others are measured by; empty if there is none.
        differing: sides whose derivatives are not those of the right ones, with the words for it.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.rtol = RTOL if call.rtol is None else call.rtol
        self.findings: list[Finding] = []
        self.conventions: list[Convention] = []
        self.worst: list[Discrepancy] = []
        self.moved: list[str] = []
        self.differing: dict[str, str] = {}
        self.apart = False

    def run(self) -> ConsistencyReport:
        with np.errstate(all="ignore"):
            self._make_sides()
            self._match()
            self._group()
            self._look_for_layouts()
            self._differentiate()
            self._compare_derivatives()
            self._name_values()
            self._blame()
        return self._report()

    def _make_sides(self) -> None:
        made: dict[str, Side] = {}
        failed: dict[str, Exception] = {}
        for name in self.call.functions:
            try:
                made[name] = self.call.side(name)
            except InvalidUse:
                raise
            except Exception as error:  # of any type, as it is the user's code: shapes may fit in another layout
                failed[name] = error
        lead = self.call.reference or next(iter(made or failed))
        if lead in failed:
            raise failed[lead]
        self.lead = made[lead]
        for name, error in failed.items():
            found = self.call.in_another_layout(name, self.lead)
            if found is None:
                raise error
            made[name], finding = found
            self._moved(name, finding)
        self.sides = {name: made[name] for name in self.call.functions}

    def _moved(self, name: str, finding: Finding) -> None:
        self.moved.append(name)
        self.findings.append(finding)

    def _match(self) -> None:
        self.unmatched = match(self.sides, self.lead)
        if not self.lead.inputs:
            raise InvalidUse(
                "different_inputs",
                "no input holds the same numbers in all backends: " + "; ".join(f.evidence for f in self.unmatched),
            )
        for side in self._others(self.lead):
            status = compare_values(side, self.lead, self.rtol)
            self.conventions += set_phases(side, self.lead, status)

    def _others(self, side: Side) -> Iterator[Side]:
        return (other for other in self.sides.values() if other is not side)

    # ---- values

    def _compare_values(self) -> None:
        self.values: dict[tuple[str, str], Codes] = {}
        for a, b in combinations(self.sides.values(), 2):
            self.values[a.name, b.name] = self.values[b.name, a.name] = compare_values(a, b, self.rtol)

    def _alike(self, a: str, b: str) -> bool:
        return self.values[a, b].max(initial=0) < Status.MISMATCH

    def _group(self) -> None:
        self._compare_values()
        self.groups = _blame.groups(
            list(self.sides), lambda a, b: self._alike(a, b) and (a in self.moved) == (b in self.moved)
        )
        self.right = _blame.right_group(self.groups, self.call.reference)
        self.target = self.sides[self.right[0]] if self.right else self.lead

    def _look_for_layouts(self) -> None:
        """Try other orders of axes for the sides that are not like the target."""
        for side in [s for s in self._others(self.target) if not self._alike(s.name, self.target.name)]:
            entries = list(by_value(self.sides, side, self.target, self.values[side.name, self.target.name]))
            found = self.call.in_another_layout(side.name, self.target)
            if found is None:
                continue
            self.worst += entries
            self.sides[side.name], finding = found
            self._moved(side.name, finding)
        if self.moved:
            self.unmatched = match(self.sides, self.lead)
            self._compare_values()

    # ---- derivatives

    def _differentiate(self) -> None:
        call = self.call
        for side in self.sides.values():
            modes = call.modes[:1] if side.name in call.jac else call.modes
            _sides.check(side, modes, call.rtol, call.seed)
        self.refuted = [name for name, side in self.sides.items() if self._refuted(side)]
        for side in [s for s in self.sides.values() if not s.legs]:
            alike = [s for s in self._others(side) if s.differentiated and self._alike(s.name, side.name)]
            lender = next((s for s in alike if s.name not in self.refuted), None)
            if lender is not None:
                _sides.check_with(side, _of_lender(lender), call.rtol, call.seed)
        self.claims = {name: claims(side) for name, side in self.sides.items()}

    def _refuted(self, side: Side) -> bool:
        assert side.report is not None
        wrong = any((claim.status == Status.MISMATCH).any() for claim in claims(side))
        return wrong or bool(side.report.extra)

    def _compare_derivatives(self) -> None:
        """Compare the sides that are like the target, pairwise; those refuted by their own functions are told alone."""
        self.jacobians: dict[tuple[str, str], Codes] = {}
        group = [n for n in self.sides if n == self.target.name or self._alike(n, self.target.name)]
        voting = [n for n in group if self.claims[n] and n not in self.refuted]
        for a, b in combinations(voting, 2):
            self.jacobians[a, b] = self.jacobians[b, a] = self._differ(self.sides[a], self.sides[b])
        self.voices = _blame.groups(voting, lambda a, b: not (self.jacobians[a, b] == Status.MISMATCH).any())
        for name in self.refuted:
            side = self.sides[name]
            for claim in self.claims[name]:
                self.worst += by_derivative(self.sides, side, claim, claim.status)

    def _differ(self, a: Side, b: Side) -> Codes:
        one, other = self.claims[a.name][0], self.claims[b.name][0]
        status = compare_jacobians(a, b, one, other, self.call.rtol)
        chosen = legal_choices(one, other, status)
        self.conventions += name_kinks(a, b, one, other, chosen)
        return np.where(chosen, Status.NONDIFFERENTIABLE, status).astype(np.int8)

    # ---- what is said of them

    def _name_values(self) -> None:
        """Name the differences in value; those that are legal or accepted are no mismatch any more."""
        self.excused: list[str] = []
        accepted = {*LEGAL, *self.call.accept}
        for side in self._others(self.target):
            status = self.values[side.name, self.target.name]
            if status.max(initial=0) < Status.MISMATCH:
                continue
            conventions, slips = name_values(side, self.target, status)
            legal = not {side.name, self.target.name} & set(self.refuted)
            self.conventions += conventions if legal else []
            self.findings += slips
            leaves = self._differing_leaves(side, status)
            if legal and len(conventions) == leaves and all(c.name in accepted for c in conventions):
                self.excused.append(side.name)
            self.worst += by_value(self.sides, side, self.target, status)

    def _differing_leaves(self, side: Side, status: Codes) -> int:
        ends = np.cumsum([0, *(pair.leaf.size for pair in side.outputs)])
        return sum(bool(status[a:b].max(initial=0) > Status.OK) for a, b in zip(ends[:-1], ends[1:], strict=True))

    def _blame(self) -> None:
        values = _merge(self.groups, self.excused)
        foreign = [n for n in self.refuted if self._belongs_elsewhere(n)]
        self.blamed = dict(
            _blame.blame(values, self.voices, self.refuted, foreign + self._unconfirmed(), self.call.reference)
        )
        self.apart = len(values) > 1 or len(self.voices) > 1
        self._tell_derivatives()

    def _tell_derivatives(self) -> None:
        innocent = [group for group in self.voices if not set(group) & set(self.blamed)]
        right = (innocent or self.voices or [[]])[0]
        for name in (n for group in self.voices for n in group if n not in right):
            self.differing[name] = f"differs from {right[0]}"
            status = self.jacobians[name, right[0]]
            speaker = name if self.sides[name].differentiated else right[0]
            self.worst += by_derivative(self.sides, self.sides[speaker], self.claims[speaker][0], status)

    def _belongs_elsewhere(self, name: str) -> bool:
        """Whether a derivative that is not of its own function is that of another side's: its forward code is wrong."""
        own = self.claims[name][0]
        for other in self._others(self.sides[name]):
            for claim in self.claims[other.name]:
                numeric = Claim(
                    "numerical", claim.numeric, claim.numeric_bar, claim.numeric, claim.numeric_bar, claim.status
                )
                status = compare_jacobians(self.sides[name], other, own, numeric, self.call.rtol)
                if not (status == Status.MISMATCH).any():
                    return True
        return False

    def _unconfirmed(self) -> list[str]:
        """Sides that differ from another in entries which the other's numerical side confirms and theirs does not."""
        found = []
        for (a, b), status in self.jacobians.items():
            wrong = status == Status.MISMATCH
            ours, theirs = self.claims[a][0].status[wrong], self.claims[b][0].status[wrong]
            if wrong.any() and (theirs == Status.OK).all() and not (ours == Status.OK).any():
                found.append(a)
        return found

    # ---- the report

    def _report(self) -> ConsistencyReport:
        said = tuple(dict.fromkeys((*(c.finding for c in self.conventions), *self.findings, *self.unmatched)))
        verdict, reason = self._verdict()
        right = [name for name in self.right if name not in self.blamed]
        return ConsistencyReport(
            verdict=verdict,
            odd=tuple(name for name in self.sides if name in self.blamed),
            blame=self.blamed,
            agreeing=tuple(right) if len(right) > 1 or self.call.reference else (),
            table=table(
                self.sides, {name: self._value_cell(side) for name, side in self.sides.items()}, self.differing
            ),
            worst=tuple(sorted(dict.fromkeys(self.worst), key=lambda d: -d.excess)[:SHOWN]),
            conventions=tuple(dict.fromkeys(self.conventions)),
            findings=said,
            layouts={name: side.layout.axes for name, side in self.sides.items() if side.layout.axes},
            sides={name: side.report for name, side in self.sides.items() if side.report is not None},
            reference=self.lead.name,
            seconds=0.0,
            reason=reason,
        )

    def _verdict(self) -> tuple[Consistency, str]:
        lost = [f for f in self.unmatched if f.kind == "unmatched"]
        if self.blamed or self.apart or self.moved or any(f.where.startswith("output") for f in lost):
            return Consistency.MISMATCH, ""
        reason = self._doubt()
        if lost:
            reason = reason or lost[0].evidence
        if reason:
            return Consistency.INCONCLUSIVE, reason
        return (Consistency.CONVENTION if self.conventions else Consistency.OK), ""

    def _doubt(self) -> str:
        """Why it can't be told that the sides are consistent; empty if it can."""
        for (a, b), status in self.values.items():
            if (status == Status.INCONCLUSIVE).any() and not {a, b} & set(self.excused):
                return f"the values of {a} and {b} differ by more than rounding, but by less than {self.rtol:g} of their size"
        for name, side in self.sides.items():
            errors = [f for f in ([] if side.report is None else side.report.findings) if f.severity == "error"]
            errors = [f for f in errors if f.kind != "non_finite"]
            if errors:
                return f"{name}: {errors[0].kind}: {errors[0].evidence}"
        speaking = [side for side in self.sides.values() if side.differentiated]
        if len(speaking) == 1 and (self.claims[speaking[0].name][0].status == Status.INCONCLUSIVE).any():
            return f"the derivatives of {speaking[0].name}, the only ones, can't be told from differences"
        return ""

    def _value_cell(self, side: Side) -> Cell:
        if side.name in self.moved:
            return Cell(Consistency.MISMATCH, "ok in another layout")
        others = [self.sides[n] for n in self.right if n != side.name] if side.name in self.right else [self.target]
        others = [other for other in others if other is not side] or list(self._others(side))
        cells = [value_cell(side, other, self.values[side.name, other.name]) for other in others]
        cell = max(cells, key=lambda c: (c.answer.severity if c.answer else 0, c.sharpness))
        if side.name in self.excused:
            return Cell(Consistency.CONVENTION, f"convention, {cell.note}", cell.sharpness)
        alone = side is self.target and len(self.right) == 1
        return Cell(Consistency.OK, "the reference", 0.0) if alone and self.call.reference else cell


def _merge(groups: _blame.Groups, excused: list[str]) -> _blame.Groups:
    """The groups without the sides that are excused, which then go with the first."""
    kept = [[name for name in group if name not in excused] for group in groups]
    return [group for group in kept if group]


def _of_lender(side: Side) -> Array:
    return claims(side)[0].jacobian

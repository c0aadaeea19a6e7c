"""One comparison, from the functions to the report."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from multigrad._comparison.verdict import Codes, Status
from multigrad.backends import left_behind
from multigrad.consistency.agreement import compare_values, spans
from multigrad.consistency.blame import blame
from multigrad.consistency.call import Call, match
from multigrad.consistency.conventions import LEGAL, Convention
from multigrad.consistency.discrepancies import by_derivative, by_value
from multigrad.consistency.evidence import Evidence
from multigrad.consistency.layouts import of_data
from multigrad.consistency.matching import Layout
from multigrad.consistency.naming import accumulation, name_stopped, name_values, set_phases
from multigrad.consistency.outcome import Outcome, Weighed, report
from multigrad.consistency.report import ConsistencyReport, Discrepancy
from multigrad.consistency.second_sides import second_order
from multigrad.consistency.sides import Side
from multigrad.consistency.whereabouts import first_to_differ, locate
from multigrad.errors import InvalidUse
from multigrad.findings import Finding


def compare(call: Call) -> ConsistencyReport:
    """Compare the functions of a call.

    Raises:
        InvalidUse: nothing to differentiate, or inputs that differ.
        Exception: whatever a function raises at the inputs, with a note that names the backend.
    """
    return _Comparison(call).run()


class _Comparison:
    """One comparison in progress."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.findings: list[Finding] = []
        self.conventions: list[Convention] = []
        self.worst: list[Discrepancy] = []
        self.moved: list[str] = []
        self.excused: list[str] = []

    def run(self) -> ConsistencyReport:
        with np.errstate(all="ignore"):
            self.evidence = self._make_sides()
            with left_behind(*(side.f for side in self.evidence.sides.values())):
                return self._compared()

    def _compared(self) -> ConsistencyReport:
        self._match()
        self.evidence.compare_values()
        self.evidence.group(self.moved)
        self._look_for_layouts()
        self.evidence.differentiate()
        self.findings += self.evidence.tell_twins_apart()
        self.evidence.lend()
        self.conventions += self.evidence.compare_derivatives()
        self._name_values()
        first = self._weigh(self.evidence, self.excused)
        self._compare_low_precision()
        return report(self._outcome(first, *self._second_order(first)))

    def _make_sides(self) -> Evidence:
        made: dict[str, Side] = {}
        failed: dict[str, Exception] = {}
        for name in self.call.functions:
            try:
                made[name] = self.call.side(name)
            except InvalidUse:
                raise
            except Exception as error:  # noqa: BLE001, of any type: the user's code; shapes may fit in another layout
                failed[name] = error
        lead = self.call.reference or next(iter(made or failed))
        if lead in failed:
            raise failed[lead]
        for name, reason in failed.items():
            found = self.call.in_another_layout(name, made[lead])
            if found is None:
                raise reason
            made[name] = self._move(name, *found)
        return Evidence(self.call, {name: made[name] for name in self.call.functions}, made[lead])

    def _move(self, name: str, side: Side, finding: Finding) -> Side:
        self.moved.append(name)
        self.findings.append(finding)
        return side

    def _match(self) -> None:
        evidence = self.evidence
        self.unmatched = match(evidence.sides, evidence.lead)
        if not evidence.lead.inputs:
            raise InvalidUse(
                "different_inputs",
                "no input holds the same numbers in all backends: " + "; ".join(f.evidence for f in self.unmatched),
            )
        for side in evidence.others(evidence.lead):
            status = compare_values(side, evidence.lead, evidence.rtol)
            self.conventions += set_phases(side, evidence.lead, status)

    def _look_for_layouts(self) -> None:
        """Try other orders of axes for the sides that are not like the target.

        Paths and orders are the lead's: where it is the lead that lies otherwise, that is said and no more.
        """
        evidence, target = self.evidence, self.evidence.target
        leading = evidence.alike(evidence.lead.name, target.name)
        target = evidence.lead if leading else target
        entries: list[Discrepancy] = []
        for side in [s for s in evidence.others(target) if not evidence.alike(s.name, target.name)]:
            found = self.call.in_another_layout(side.name, target)
            if found is not None:
                status = evidence.values[side.name, target.name]
                entries += (
                    by_value(evidence.sides, side, target, status) if _at_one_place(side, found[0].layout) else []
                )
                moved = self._move(side.name, *found)
                evidence.sides[side.name] = moved if leading else side
        if self.moved:
            self.worst += entries
            self.findings[:0] = [f for f in self.unmatched if f.kind == "unmatched" and f.where.startswith("output")]
            self.unmatched = match(evidence.sides, evidence.lead)
            evidence.compare_values()

    def _name_values(self) -> None:
        """Name the differences in value; those that are legal or accepted are excused."""
        evidence, target = self.evidence, self.evidence.target
        for side in evidence.others(target):
            status = evidence.values[side.name, target.name]
            if (status == Status.OK).all() or side.name in self.moved:
                continue
            conventions, slips = name_values(side, target, status)
            named = {*(slip.where for slip in slips), *(convention.where for convention in conventions)}
            self.findings += first_to_differ(side, target, status)
            self.findings += [*slips, *(f for f in self._locate(side, status) if f.where not in named)]
            self.worst += by_value(evidence.sides, side, target, status)
            if evidence.alike(side.name, target.name) or {side.name, target.name} & set(evidence.refuted):
                continue
            self.conventions += conventions
            if 0 < len(conventions) == _leaves(side, status) and all(self._accepts(c) for c in conventions):
                self.excused.append(side.name)

    def _locate(self, side: Side, status: Codes) -> list[Finding]:
        """What the derivatives say of where the values part, of sides that have derivatives."""
        ours, theirs = (self.evidence.claims[name][:1] for name in (side.name, self.evidence.target.name))
        return [
            finding
            for one, other in zip(ours, theirs, strict=False)
            for finding in locate(side, self.evidence.target, one, other, status, self.call.rtol)
        ]

    def _accepts(self, convention: Convention) -> bool:
        return convention.name in LEGAL or convention.name in self.call.accept

    def _weigh(self, evidence: Evidence, excused: Collection[str]) -> Weighed:
        """Who is to blame by the evidence of one order."""
        groups = [[name for name in group if name not in excused] for group in evidence.groups]
        groups = [group for group in groups if group]
        accused, foreign = ([], []) if evidence.stopped else (evidence.refuted, evidence.foreign())
        blamed = blame(groups, evidence.voices, accused, foreign, self.call.reference)
        if self.call.reference in evidence.refuted and "stop_gradient" not in self.call.accept:
            blamed = {name: f"{why}, whose own derivative is not that of its values" for name, why in blamed.items()}
        for names in evidence.refuted_alike():
            self.conventions += name_stopped(evidence.sides[names[0]], names, evidence.claims[names[0]][0])
        apart = len(groups) > 1 or len(evidence.voices) > 1
        differing = self._differing(evidence, set(blamed))
        if "stop_gradient" not in self.call.accept and not (evidence.stopped and differing):
            self._show_refuted(evidence)
        return Weighed(evidence, blamed, apart, differing)

    def _show_refuted(self, evidence: Evidence) -> None:
        for name in evidence.refuted:
            report = evidence.sides[name].report
            found = [] if report is None else report.findings
            self.findings += [replace(f, evidence=f"{name}: {f.evidence}") for f in found if f.kind == "diagnosis"]
            for claim in evidence.claims[name]:
                self.worst += by_derivative(evidence.sides, evidence.sides[name], claim, claim.status, claim.numeric)

    def _compare_low_precision(self) -> None:
        """Note values that differ at the user's precision by more than its rounding, though not in float64."""
        evidence, target = self.evidence, self.evidence.target
        for side in evidence.others(target):
            if evidence.alike(side.name, target.name):
                self.conventions += accumulation(side, target)

    def _second_order(self, first: Weighed) -> tuple[Weighed | None, list[Finding]]:
        if self.call.order == 1:
            return None, []
        if any(convention.name == "symmetric_domain" for convention in self.conventions):
            text = "the gradients are not the same functions: they differ in symmetric_domain"
            return None, [Finding("mode_unavailable", text, "order 2")]
        sides = first.evidence.sides
        names = [
            n for group in first.evidence.voices for n in group if n not in first.blamed and sides[n].differentiated
        ]
        evidence, findings = second_order(first.evidence, names, self.call.seed)
        if evidence is None:
            return None, findings
        self.conventions += evidence.compare_derivatives()
        for side in evidence.others(evidence.target):
            if not evidence.alike(side.name, evidence.target.name):
                status = evidence.values[side.name, evidence.target.name]
                self.worst += by_value(evidence.sides, side, evidence.target, status)
        return self._weigh(evidence, ()), findings

    def _outcome(self, first: Weighed, second: Weighed | None, noticed: list[Finding]) -> Outcome:
        return Outcome(
            first=first,
            second=second,
            moved=self.moved,
            excused=self.excused,
            worst=self.worst,
            conventions=self.conventions,
            findings=[*self.findings, *noticed],
            unmatched=self.unmatched,
        )

    def _differing(self, evidence: Evidence, blamed: set[str]) -> dict[str, str]:
        """The sides whose derivatives differ from those of the innocent, with the words for it."""
        differing = {}
        innocent = [group for group in evidence.voices if not set(group) & blamed]
        right = (innocent or evidence.voices or [[]])[0]
        for name in (n for group in evidence.voices for n in group if n not in right):
            differing[name] = f"differs from {right[0]}"
            status = evidence.jacobians[name, right[0]]
            pair = (name, right[0]) if evidence.sides[name].differentiated else (right[0], name)
            claim, other = (evidence.claims[speaker][0] for speaker in pair)
            self.worst += by_derivative(evidence.sides, evidence.sides[pair[0]], claim, status, other.jacobian)
        return differing


def _at_one_place(side: Side, layout: Layout) -> bool:
    """Whether entries at the same place have to do with each other: the outputs' shapes are one, no data among them moved."""
    shaped = all(pair.leaf.shape == pair.reference.shape for pair in side.outputs)
    return shaped and not any(path.startswith("output") and of_data(axes) for path, axes in layout.axes.items())


def _leaves(side: Side, status: Codes) -> int:
    """The number of output leaves in which a side differs."""
    return sum(bool((status[span] > Status.OK).any()) for span in spans(side.outputs))

"""Evidence: who agrees with whom, in values, in derivatives, and each with the numerical derivative of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

import numpy as np

from multigrad._comparison.verdict import Codes, Status
from multigrad.consistency.agreement import Claim, claims, compare_jacobians, compare_values, legal_choices
from multigrad.consistency.blame import Groups, groups, right_group
from multigrad.consistency.call import Call
from multigrad.consistency.conventions import Convention
from multigrad.consistency.naming import name_kinks
from multigrad.consistency.sides import Side, check, check_with
from multigrad.consistency.symmetry import lost_in_symmetry, name_symmetric
from multigrad.consistency.twins import tell_apart
from multigrad.findings import Finding

RTOL = 1e-7

Pairwise = dict[tuple[str, str], Codes]


class Evidence:
    """What has been found out about the sides so far.

    Attributes:
        sides: by backend, in the user's order.
        lead: the side whose paths and order are common to all.
        rtol: values that differ by more than rounding and less than this leave it open.
        values: statuses of the common outputs, for each two sides.
        groups: the sides by values.
        right: the group that the others are measured by; empty if there is none.
        target: the first of it, or the lead.
        claims: what each side says of the Jacobian.
        refuted: the sides whose derivative is not that of their own function.
        jacobians: statuses of the Jacobians' entries, for each two sides with the target's values.
        voices: those sides by derivatives, the refuted left out unless their word counts.
    """

    def __init__(self, call: Call, sides: dict[str, Side], lead: Side) -> None:
        self.call = call
        self.sides = sides
        self.lead = self.target = lead
        self.rtol = RTOL if call.rtol is None else call.rtol
        self.values: Pairwise = {}
        self.groups: Groups = []
        self.right: list[str] = []
        self.claims: dict[str, list[Claim]] = {}
        self.refuted: list[str] = []
        self.jacobians: Pairwise = {}
        self.voices: Groups = []

    def others(self, side: Side) -> Iterator[Side]:
        """All sides but one."""
        return (other for other in self.sides.values() if other is not side)

    def alike(self, a: str, b: str) -> bool:
        """Whether two sides have the same outputs with the same values, as far as can be told."""
        if a == b:
            return True
        return self.sides[a].outline == self.sides[b].outline and not (self.values[a, b] == Status.MISMATCH).any()

    def compare_values(self) -> None:
        """Compare the values of each two sides."""
        for a, b in combinations(self.sides.values(), 2):
            self.values[a.name, b.name] = self.values[b.name, a.name] = compare_values(a, b, self.rtol)

    def group(self, moved: Collection[str]) -> None:
        """Sort the sides by values; those that had to be moved to another layout are not like the others."""
        self.groups = groups(list(self.sides), lambda a, b: self.alike(a, b) and (a in moved) == (b in moved))
        self.right = right_group(self.groups, self.call.reference)
        self.target = self.sides[self.right[0]] if self.right else self.lead

    def differentiate(self) -> None:
        """Check each side's derivative against its own function."""
        call = self.call
        for side in self.sides.values():
            modes = call.modes[:1] if side.name in call.jac else call.modes
            check(side, modes, call.rtol, call.seed)
        self.refuted = [name for name, side in self.sides.items() if _refuted(side)]

    def tell_twins_apart(self) -> list[Finding]:
        """Pair inputs that hold the same numbers by their derivatives, where each side has inputs of its own."""
        if self.call.shared:
            return []
        return [finding for side in self.others(self.lead) for finding in tell_apart(side, self.lead)]

    def lend(self) -> None:
        """Check a side that has no derivative with another's."""
        for side in [s for s in self.sides.values() if not s.legs]:
            alike = [s for s in self.others(side) if s.differentiated and self.alike(s.name, side.name)]
            lender = next((s for s in alike if s.name not in self.refuted), None)
            if lender is not None:
                check_with(side, claims(lender)[0].jacobian, self.call.rtol, self.call.seed)
        self.claims = {name: claims(side) for name, side in self.sides.items()}

    def compare_derivatives(self) -> list[Convention]:
        """Compare the derivatives of each two sides that are like the target; returns the choices at kinks."""
        conventions: list[Convention] = []
        group = [name for name in self.sides if self.alike(name, self.target.name)]
        voting = [name for name in group if self.claims[name] and self._has_a_voice(name)]
        for a, b in combinations(voting, 2):
            one, other = self.claims[a][0], self.claims[b][0]
            status = compare_jacobians(self.sides[a], self.sides[b], one, other, self.call.rtol)
            chosen = legal_choices(one, other, status)
            conventions += name_kinks(self.sides[a], self.sides[b], one, other, chosen)
            lost = lost_in_symmetry(self.sides[a], self.sides[b], one, other, status, self.call.rtol)
            conventions += name_symmetric(self.sides[a], self.sides[b], one, other, lost)
            chosen |= lost & ("symmetric_domain" in self.call.accept)
            status = np.where(chosen, Status.NONDIFFERENTIABLE, status).astype(np.int8)
            self.jacobians[a, b] = self.jacobians[b, a] = status
        self.voices = groups(voting, lambda a, b: not (self.jacobians[a, b] == Status.MISMATCH).any())
        return conventions

    @property
    def stopped(self) -> bool:
        """Whether a derivative counts as right that is not that of the values, as where gradients are stopped."""
        return bool(self.refuted) and ("stop_gradient" in self.call.accept or self.call.reference in self.refuted)

    def _has_a_voice(self, name: str) -> bool:
        """Whether a side's derivative is compared with the others'; an estimate knows of no stopped gradient."""
        return not self.sides[name].borrowed if self.stopped else name not in self.refuted

    def refuted_alike(self) -> Groups:
        """The refuted sides by what they say, those left out that are alone in it and whose word does not count."""
        speaking = [name for name in self.refuted if self.sides[name].differentiated]
        found = groups(speaking, lambda a, b: self.alike(a, b) and self._say_the_same(a, b))
        return [group for group in found if self.stopped or len(group) > 1]

    def _say_the_same(self, a: str, b: str) -> bool:
        one, other = self.claims[a][0], self.claims[b][0]
        status = compare_jacobians(self.sides[a], self.sides[b], one, other, self.call.rtol)
        return not (status == Status.MISMATCH).any()

    def foreign(self) -> list[str]:
        """Sides whose derivative is another function's, or in whose place another's is confirmed and theirs is not."""
        return [name for name in self.refuted if self._belongs_elsewhere(name)] + self._unconfirmed()

    def _belongs_elsewhere(self, name: str) -> bool:
        side, own = self.sides[name], self.claims[name][0]
        for other in self.others(side):
            for claim in self.claims[other.name]:
                status = compare_jacobians(side, other, own, claim.estimate, self.call.rtol)
                if not (status == Status.MISMATCH).any():
                    return True
        return False

    def _unconfirmed(self) -> list[str]:
        found = []
        for (a, b), status in self.jacobians.items():
            wrong = status == Status.MISMATCH
            ours, theirs = self.claims[a][0].status[wrong], self.claims[b][0].status[wrong]
            if wrong.any() and (theirs == Status.OK).all() and not (ours == Status.OK).any():
                found.append(a)
        return found


def _refuted(side: Side) -> bool:
    wrong = any((claim.status == Status.MISMATCH).any() for claim in claims(side))
    return wrong or (side.report is not None and bool(side.report.extra))

"""Findings: what a check noticed besides the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "note"]

# An error keeps the check from being ok: the code under test is broken in another way than its gradient.
ERRORS = frozenset(
    {
        "nondeterministic_forward",
        "nondeterministic_backward",
        "mutates_input",
        "mutates_cotangent",
        "mutates_state",
        "non_finite",
        "wrong_shape",
        "shape_depends_on_value",
        "undefined_grad",
        "primal_mismatch",
        "nonlinear_backward",
        "ill_defined",
        "precision",
        "order_unavailable",
    }
)

# A note informs.
NOTES = frozenset(
    {
        "detached_output",
        "vmap_fallback",
        "executor",
        "raises_nearby",
        "mode_unavailable",
        "symmetric_domain",
        "stop_gradient",
        "promotion",
        "special_point",
        "no_gradient",
        "diagnosis",
        "convention",
        "compiler",
        "kink",
        "layout",
        "unmatched",
        "held_fixed",
    }
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing.

    Attributes:
        kind: a word of ``ERRORS`` or ``NOTES``.
        evidence: what was seen, with its numbers.
        where: the path of the leaf or entry, or the mode; empty if it concerns the whole function.
        remedy: what to try.
    """

    kind: str
    evidence: str
    where: str = ""
    remedy: str = ""

    @property
    def severity(self) -> Severity:
        """``"error"`` or ``"note"``, told by the kind."""
        return "error" if self.kind in ERRORS else "note"

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{self.kind}{place}: {self.evidence}{remedy}"

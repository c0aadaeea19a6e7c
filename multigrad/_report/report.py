"""The report: what a check returns, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multigrad._comparison.verdict import Rules, Status, Verdict
from multigrad._report.leg import Block, Entry, Leg
from multigrad._report.probe_leg import ProbeLeg
from multigrad._report.sparse_leg import SparseLeg
from multigrad.backends import Leaf, place
from multigrad.findings import Finding

SHOWN = 8  # worst entries in the text


@dataclass(frozen=True, repr=False)
class GradReport:
    """What ``check_grad`` found.

    ``bool(report)`` is whether the gradient may be used: the verdict is ok or nondifferentiable.

    Attributes:
        verdict: the worst that is said of any entry, or of the function.
        findings: what is wrong or worth knowing besides the numbers.
        legs: the comparison in full for each mode that was compared in full.
        probed: modes that were compared along random directions only, since there are too many entries.
        agreeing: modes that were compared with the leg by random products, and agree with it.
        extra: entries that are not of the Jacobian: products with random cotangents that went wrong.
        inputs: the leaves that were perturbed.
        outputs: the leaves that were compared.
        fixed: the inputs that were held fixed, with the reasons.
        rules: the constants of the verdict.
        backend: the adapter's name.
        evaluations: how often the function was evaluated, derivatives not counted.
        seconds: wall time of the check.
        seed: of the random numbers in it.
        reason: why it cannot be told, if it cannot.
        second: the report on the derivative of the derivative, if that was asked for.
        convention: what a gradient with respect to complex numbers is, where there are any.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    legs: tuple[Leg | SparseLeg, ...]
    agreeing: tuple[str, ...]
    extra: tuple[Entry, ...]
    inputs: tuple[Leaf, ...]
    outputs: tuple[Leaf, ...]
    fixed: tuple[str, ...]
    rules: Rules
    backend: str
    evaluations: int
    seconds: float
    seed: int
    reason: str = ""
    second: GradReport | None = None
    probed: tuple[ProbeLeg, ...] = ()
    convention: str = ""

    def __bool__(self) -> bool:
        return self.verdict in (Verdict.OK, Verdict.NONDIFFERENTIABLE)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The comparison cut by output and input leaf, for every leg whose matrices are of a size to be made."""
        return tuple(
            Block(
                out.path,
                leaf.path,
                leg.mode,
                leg.numeric[out.slice, leaf.slice],
                leg.analytical[out.slice, leaf.slice],
                leg.bar[out.slice, leaf.slice],
                leg.status[out.slice, leaf.slice],
            )
            for leg in self.legs
            if leg.kept
            for out in self.outputs
            if out.attached
            for leaf in self.inputs
        )

    @property
    def worst(self) -> tuple[Entry, ...]:
        """The entries furthest from agreement, worst first; those that are wrong, if any is."""
        second = self.second.worst if self.second is not None else ()
        return tuple(sorted((*self.extra, *self._worst_of_legs(), *second), key=_badness)[:SHOWN])

    def with_findings(self, findings: Iterable[Finding]) -> GradReport:
        """The same with more findings, and the verdict that follows."""
        every = tuple(dict.fromkeys((*self.findings, *findings)))
        errors = [finding for finding in every if finding.severity == "error"]
        parts = [self.verdict, *(entry.status.verdict for entry in self.extra)]
        verdict = max([*parts, *[Verdict.INCONCLUSIVE] * bool(errors)], key=lambda v: v.severity)
        reason = f"{errors[0].kind}: {errors[0].evidence}" if errors and not self.reason else self.reason
        reason = reason if verdict is Verdict.INCONCLUSIVE else ""
        return replace(self, findings=every, verdict=verdict, reason=reason)

    def unfounded(self) -> GradReport:
        """The same where the values do not bear the verdict: what was a mismatch cannot be told."""
        legs = tuple(leg.without_mismatch() for leg in self.legs)
        probed = tuple(leg.without_mismatch() for leg in self.probed)
        findings = tuple(f for f in self.findings if f.kind not in ("diagnosis", "nonlinear_backward"))
        verdict = Verdict.INCONCLUSIVE if self.verdict is Verdict.MISMATCH else self.verdict
        return replace(self, legs=legs, probed=probed, extra=(), findings=findings, verdict=verdict)

    def with_second(self, second: GradReport) -> GradReport:
        """The same with a report on the second order, which counts as much."""
        told = [f for f in second.findings if f.severity == "error" or f.kind == "diagnosis"]
        joined = self.with_findings(f if f.where == "order 2" else replace(f, where=_second_order(f)) for f in told)
        verdict = max(joined.verdict, second.verdict, key=lambda v: v.severity)
        reason = joined.reason or (f"order 2: {second.reason}" if second.reason else "")
        return replace(
            joined,
            second=second,
            verdict=verdict,
            reason=reason if verdict is Verdict.INCONCLUSIVE else "",
            evaluations=self.evaluations + second.evaluations,
        )

    def _worst_of_legs(self) -> Iterator[Entry]:
        for leg in (*self.legs, *self.probed):
            for i, j, a, e, bar, status in leg.worst(self.rules):
                allowed = self.rules.rtol * max(abs(a), abs(e)) + self.rules.atol
                yield Entry(place(self.outputs, i), place(self.inputs, j), leg.mode, a, e, bar, allowed, status)

    def count(self, status: Status) -> int:
        """How many entries have that status, over all legs."""
        return sum(leg.count(status) for leg in (*self.legs, *self.probed))

    @property
    def sharpness(self) -> float:
        """The largest relative error that an entry called ok might still have."""
        return max((leg.sharpness for leg in (*self.legs, *self.probed)), default=0.0)

    def __repr__(self) -> str:
        return str(self)  # what a prompt and a failed assertion show; the matrices are in ``blocks``

    def __str__(self) -> str:
        from multigrad._report.text import as_text

        return as_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all of the report but the matrices, as values that ``json.dumps`` takes."""
        return {
            "verdict": str(self.verdict),
            "backend": self.backend,
            "reason": self.reason,
            "sharpness": self.sharpness,
            "rtol": self.rules.rtol,
            "atol": self.rules.atol,
            "counts": {status.name.lower(): self.count(status) for status in Status},
            "modes": {leg.mode: str(leg.verdict) for leg in (*self.legs, *self.probed)}
            | {mode: "agrees" for mode in self.agreeing},
            "findings": [
                {"kind": f.kind, "severity": f.severity, "where": f.where, "evidence": f.evidence, "remedy": f.remedy}
                for f in self.findings
            ],
            "worst": [entry.to_dict() for entry in self.worst],
            "inputs": [_leaf(leaf) for leaf in self.inputs],
            "outputs": [_leaf(leaf) for leaf in self.outputs],
            "fixed": list(self.fixed),
            "probed": {leg.mode: leg.to_dict() for leg in self.probed},
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "seed": self.seed,
            "convention": self.convention,
            "second": self.second.to_dict() if self.second is not None else None,
        }


def refused(finding: Finding, seed: int) -> GradReport:
    """The report on a function that was not fit to be checked at all."""
    empty = GradReport(
        Verdict.INCONCLUSIVE, (), (), (), (), (), (), (), Rules.for_eps(2.0**-52, None, 0.0), "", 0, 0.0, seed
    )
    return empty.with_findings([finding])


def _second_order(finding: Finding) -> str:
    return f"order 2, {finding.where}" if finding.where else "order 2"


def _badness(entry: Entry) -> tuple[int, float]:
    excess = entry.error / max(entry.tolerance + entry.bar, 1e-300)
    return (-int(entry.status), -(excess if np.isfinite(excess) else np.inf))


def _leaf(leaf: Leaf) -> dict[str, Any]:
    return {"path": leaf.path, "shape": list(leaf.shape), "dtype": leaf.dtype}

"""The conclusion of a check: the verdict of all that was seen, the reason for it, and the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from multigrad._comparison.verdict import Rules, Status, Verdict
from multigrad._diagnosis.diagnose import diagnose
from multigrad._diagnosis.sides import tell_sides
from multigrad._differences.directions import Mask
from multigrad._differences.sampler import Sampler
from multigrad._report.leg import Entry, Leg
from multigrad._report.probe_leg import ProbeLeg
from multigrad._report.report import GradReport
from multigrad._report.sparse_leg import MATRICES, SparseLeg
from multigrad.backends import FlatFunction
from multigrad.batches import Batched
from multigrad.errors import Defect
from multigrad.findings import Finding

# A bar as small as this, where no derivative reaches it, is no sign of noise.
STATIONARY = 1e-6
# Relative noise of values that is worth a word.
AUDIBLE = 1e-12

# What the entries of a function with such a fault have in common says nothing of its gradient.
UNFIT = {"nondeterministic_forward", "nondeterministic_backward", "mutates_input", "mutates_state"}


@dataclass
class Seen:
    """What a check has seen of a function.

    Attributes:
        findings: what was noticed.
        legs: the comparison of each mode.
        probed: that along random directions.
        broken: by mode, where f has no derivative, shape (m, n).
        agreeing: the modes that agree with one that was compared.
        extra: wrong products that no single entry shows.
    """

    findings: list[Finding] = field(default_factory=list)
    legs: list[Leg | SparseLeg] = field(default_factory=list)
    probed: list[ProbeLeg] = field(default_factory=list)
    broken: dict[str, Mask] = field(default_factory=dict)
    agreeing: list[str] = field(default_factory=list)
    extra: list[Entry] = field(default_factory=list)


def conclude(
    f: FlatFunction, seen: Seen, values: Batched, sampler: Sampler, rules: Rules, seed: int, stepped: bool
) -> GradReport:
    """Draw the conclusion; ``stepped`` says that the step was given, so that bars tell little."""
    noticed = [*seen.findings, *_idle(f, seen), *tell_sides(f, seen.legs, seen.broken, sampler, rules)]
    findings = tuple(dict.fromkeys((*f.findings, *noticed, *_of_evaluation(values))))
    dense = [leg for leg in seen.legs if isinstance(leg, Leg)]
    if any(leg.verdict is Verdict.MISMATCH for leg in dense) and not UNFIT & {f.kind for f in findings}:
        broken = [seen.broken[leg.mode] for leg in dense]
        findings += tuple(diagnose(dense, broken, f, sampler.here))
    parts = [leg.verdict for leg in (*seen.legs, *seen.probed)]
    parts += [Verdict.MISMATCH] * bool(seen.extra)
    parts += [Verdict.INCONCLUSIVE] * (not parts or any(f.severity == "error" for f in findings))
    verdict = max(parts, key=lambda v: v.severity)
    reason = _reason(findings, seen, values, sampler, stepped) if verdict is Verdict.INCONCLUSIVE else ""
    return GradReport(
        verdict=verdict,
        findings=findings,
        legs=tuple(seen.legs),
        probed=tuple(seen.probed),
        agreeing=tuple(seen.agreeing),
        extra=tuple(seen.extra),
        inputs=tuple(f.inputs),
        outputs=tuple(f.outputs),
        fixed=tuple(f.fixed),
        rules=rules,
        backend="",
        evaluations=values.rows + len(f.repeats),
        seconds=0.0,
        seed=seed,
        reason=reason,
        convention=_convention(f),
    )


def _of_evaluation(values: Batched) -> Iterator[Finding]:
    """What evaluating the function has shown."""
    raised = values.raised
    if isinstance(raised, Defect):
        yield raised.finding
    elif raised is not None:
        evidence = f"the function raises beside the inputs, where it counts as undefined: {type(raised).__name__}"
        yield Finding("raises_nearby", f"{evidence}: {raised}")
    if values.why_looped:
        yield Finding("vmap_fallback", f"evaluated row by row: {values.why_looped}")


def _idle(f: FlatFunction, seen: Seen) -> Iterator[Finding]:
    """List the parameters that get no gradient at all."""
    params = [leaf for leaf in f.inputs if leaf.path.startswith("params")]
    idle = [leaf.path for leaf in params if seen.legs and not seen.legs[0].reaches(leaf)]
    if idle:
        evidence = f"no gradient at all reaches {', '.join(idle)}"
        yield Finding("no_gradient", evidence, "params", "they can't be trained: unused, detached, or multiplied by 0")


def _convention(f: FlatFunction) -> str:
    is_complex = any(leaf.complex for leaf in (*f.inputs, *f.outputs))
    return str(getattr(f, "convention", "")) if is_complex else ""


def _reason(findings: tuple[Finding, ...], seen: Seen, values: Batched, sampler: Sampler, stepped: bool) -> str:
    """Why it can't be told."""
    errors = [f for f in findings if f.severity == "error"]
    if errors:
        return f"{errors[0].kind}: {errors[0].evidence}"
    if not (seen.legs or seen.probed):
        return "no mode gave a derivative: " + "; ".join(f.evidence for f in findings)
    if values.raised is not None:
        return f"the function raises near the inputs: {type(values.raised).__name__}: {values.raised}"
    unexplained = [leg.unexplained for leg in seen.probed if leg.unexplained]
    if unexplained:
        return unexplained[0]
    if not stepped and seen.legs and all(_is_stationary(leg) for leg in seen.legs):
        return (
            "the derivatives are 0 or too small to be told from it: what is left of them is less than the error bars; "
            "check at a point where they are larger"
        )
    noise = float(np.max(sampler.noise.relative, initial=0.0))
    return (
        f"the error bars are too wide; the function's values carry noise of {noise:.1g} of their size"
        if noise > AUDIBLE
        else "the error bars are too wide: difference quotients do not settle at any step around the inputs"
    )


def _is_stationary(leg: Leg | SparseLeg) -> bool:
    """Whether all that cannot be told is smaller than a bar, which is small itself."""
    if leg.size > MATRICES:
        return False
    untold = leg.status == Status.INCONCLUSIVE
    size = np.maximum(np.abs(leg.analytical), np.abs(leg.numeric))
    return bool((size <= 2 * leg.bar)[untold].all() and (leg.bar < STATIONARY)[untold].all())

"""The report as text: verdict first, then the entries that matter, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from multigrad._comparison.verdict import Status, Verdict
from multigrad._report.leg import Entry
from multigrad._report.probe_leg import ProbeLeg

if TYPE_CHECKING:
    from multigrad._report.report import GradReport

MEANING = {
    Verdict.OK: "the gradient is right",
    Verdict.MISMATCH: "the gradient is wrong",
    Verdict.NONDIFFERENTIABLE: "a kink or jump at this point; the gradient is a legal choice there",
    Verdict.INCONCLUSIVE: "it cannot be told whether the gradient is right",
}


def as_text(report: GradReport) -> str:
    """Render a report as a few lines that people can read."""
    lines = [f"{report.verdict}: {_headline(report)}"]
    if report.reason and not any(finding.evidence in report.reason for finding in report.findings):
        lines.append(f"  reason: {report.reason}")
    wanted = _wanted(report)
    if wanted:
        lines += ["", *_table(wanted)]
    lines += ["", *_counts(report)] if wanted else _counts(report)
    lines += [f"  {finding.severity}: {finding}" for finding in report.findings]
    lines.append(_footer(report))
    return "\n".join(lines)


def _headline(report: GradReport) -> str:
    if report.verdict is not Verdict.OK:
        return MEANING[report.verdict]
    first = f", to {report.sharpness:.1g}" if report.sharpness > 0 else ": it is 0"
    if report.second is None:
        return MEANING[report.verdict] + first
    second = f" to {report.second.sharpness:.1g}" if report.second.sharpness > 0 else ", which are 0"
    return f"{MEANING[report.verdict]}{first}; second derivatives{second}"


def _wanted(report: GradReport) -> list[Entry]:
    """The entries to show: of those that decided the verdict."""
    if report.verdict is Verdict.OK:
        return []
    return [e for e in report.worst if e.status.verdict is report.verdict]


def _table(entries: list[Entry]) -> list[str]:
    rows = [("output", "input", "mode", "analytical", "numerical", "±")]
    rows += [(e.output, e.input, e.mode, f"{e.analytical:.9g}", f"{e.numeric:.9g}", f"{e.bar:.1g}") for e in entries]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = 3  # names are aligned left, numbers right
    return [
        "  "
        + "  ".join(
            cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _counts(report: GradReport) -> list[str]:
    sizes = [leg.size for leg in (*report.legs, *report.probed)] or [0]
    each = f" in each of {len(sizes)} modes" if len(sizes) > 1 else ""
    parts = [
        f"{report.count(status)} {words}"
        for status, words in (
            (Status.MISMATCH, "wrong"),
            (Status.INCONCLUSIVE, "not told"),
            (Status.NONDIFFERENTIABLE, "at kinks"),
            (Status.UNRESOLVED, "too small to resolve"),
        )
        if report.count(status)
    ]
    lines = [f"  {sizes[0]} entries{each}" + (": " + ", ".join(parts) if parts else "")]
    lines += [line for leg in report.probed for line in _probed(leg)]
    lines += [
        f"  {leg.mode}: the matrices of {leg.size:.3g} entries are too large to be made"
        for leg in report.legs
        if not leg.kept
    ]
    unexplored = sum(leg.unexplored for leg in report.legs)
    if unexplored:
        lines.append(f"  {unexplored} more inputs look wrong as well and were not followed up")
    if report.probed and report.count(Status.MISMATCH):
        lines.append("  wrong entries are those that were located; there may be more")
    modes = [f"{leg.mode} {leg.verdict}" for leg in (*report.legs, *report.probed)]
    modes += [f"{mode} agrees with {report.legs[0].mode}" for mode in report.agreeing]
    if report.second is not None:
        modes += [f"{leg.mode} {leg.verdict}" for leg in report.second.legs]
        modes += [f"{mode} agrees with {report.second.legs[0].mode}" for mode in report.second.agreeing]
    if modes:
        lines.append("  modes: " + ", ".join(modes))
    if report.convention:
        lines.append(f"  complex numbers count as pairs of reals; {report.convention}")
    if report.fixed:
        lines.append("  held fixed: " + ", ".join(report.fixed))
    if report.verdict is not Verdict.OK:
        lines.append(
            f"  an entry is wrong where |analytical - numerical| > rtol * max(|analytical|, |numerical|) + 2 bars; "
            f"rtol = {report.rules.rtol:g}" + (f", atol = {report.rules.atol:g}" if report.rules.atol else "")
        )
    return lines


def _probed(leg: ProbeLeg) -> list[str]:
    typical = float(np.median(leg.sees)) if leg.sees.size else 0.0
    return [
        f"  {leg.mode} probed along {leg.probes} random directions: one wrong entry shows if its error is more than",
        f"  {leg.sharpness:.1g} of the norm of its row ({typical:.1g} in half of them);",
        f"  errors spread over many entries, of ten times that norm, are missed with a probability below {leg.missed:.1g}",
    ]


def _footer(report: GradReport) -> str:
    return f"  {report.backend}, {report.evaluations} evaluations, {report.seconds:.3g} s, seed {report.seed}"

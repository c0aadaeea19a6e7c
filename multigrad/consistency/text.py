"""The report of a comparison as text: the odd one out first, then the table, then the entries that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from multigrad.consistency.answers import MOVED, Consistency

# Findings that say something of where or how values differ.
SAYING = ("diagnosis", "convention", "layout", "unmatched")

if TYPE_CHECKING:
    from multigrad.consistency.report import ConsistencyReport, Discrepancy


def as_text(report: ConsistencyReport) -> str:
    """Render a report as a few lines that people can read."""
    lines = [f"{report.verdict}: {_headline(report)}"]
    if report.reason:
        lines.append(f"  reason: {report.reason}")
    lines += ["", *_aligned(_rows(report))]
    if report.worst:
        lines += ["", *_aligned(_entries(report))]
    lines += [""] * bool(report.findings)
    lines += [f"  {finding}" for finding in report.findings]
    lines += _advice(report)
    return "\n".join([*lines, f"  paths are those of {report.reference}; {report.seconds:.3g} s"])


def _advice(report: ConsistencyReport) -> list[str]:
    """How to go on where values differ and nothing says in which way."""
    by_value = any(entry.what == "value" for entry in report.worst)
    if report.verdict is not Consistency.MISMATCH or not by_value or any(f.kind in SAYING for f in report.findings):
        return []
    return [
        "",
        '  to find the place return intermediate values too, {"norm": ..., "output": ...}: the first that differs is named',
    ]


def _headline(report: ConsistencyReport) -> str:
    names = list(report.table)
    if report.odd:
        odd = "; ".join(f"{name} ({report.blame[name]})" for name in report.odd)
        return f"the odd one out is {odd}"
    moved = [name for name, row in report.table.items() if row["value"] == MOVED]
    if moved:
        return f"{_listed(names)} have the same values if the arrays of {' and '.join(moved)} lie in another layout"
    match report.verdict:
        case Consistency.OK:
            return f"{_listed(names)} are the same function with the same derivatives, to {report.sharpness:.1g}"
        case Consistency.CONVENTION:
            kinds = dict.fromkeys(convention.name for convention in report.conventions)
            return f"{_listed(names)} differ by convention alone: {', '.join(kinds)}"
        case Consistency.INCONCLUSIVE:
            return f"it cannot be told whether {_listed(names)} are the same function"
    if report.reason:
        return f"{_listed(names)} say the same, and it does not hold"
    return f"{_listed(names)} differ, and it cannot be told which is right"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _rows(report: ConsistencyReport) -> list[tuple[str, ...]]:
    columns = ("value", "reverse", "forward", "second")[: 3 if report.order == 1 else 4]
    rows = [(name, *(row[column].note for column in columns)) for name, row in report.table.items()]
    return [("backend", *columns), *rows]


def _entries(report: ConsistencyReport) -> list[tuple[str, ...]]:
    names = list(report.table)
    head = ("output", "input", "what", *names, "numerical", "±")
    rows = [_entry(entry, names) for entry in report.worst]
    told = [any(row[k] for row in rows) for k in range(len(head))]
    return [tuple(cell for cell, some in zip(row, told, strict=True) if some) for row in (head, *rows)]


def _entry(entry: Discrepancy, names: Sequence[str]) -> tuple[str, ...]:
    numbers = [f"{entry.numbers[name]:.9g}" if name in entry.numbers else "" for name in names]
    numeric = ("", "") if entry.numeric is None else (f"{entry.numeric:.9g}", f"{entry.bar:.1g}")
    return (entry.output, entry.input, entry.what, *numbers, *numeric)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]

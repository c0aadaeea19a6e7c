"""The report: what a check returns, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from multigrad._entries import Entries
from multigrad._findings import Finding
from multigrad._pattern import Sparse
from multigrad._verdict import Codes, Rules, Status, Verdict
from multigrad.backends import Array, Leaf

SHOWN = 8  # worst entries in the text


@dataclass(frozen=True)
class Entry:
    """One entry of the Jacobian that is worth showing.

    Attributes:
        output: path and index of the output, ``output[2]``.
        input: path and index of the input, ``inputs[0]["w"][1, 0]``.
        mode: ``reverse`` or ``forward``.
        analytical: the derivative under test.
        numeric: the estimate of the true one.
        bar: the bound on the estimate's error.
        tolerance: what the two may differ by besides the bar.
        status: what is said of it.
    """

    output: str
    input: str
    mode: str
    analytical: float
    numeric: float
    bar: float
    tolerance: float
    status: Status

    @property
    def error(self) -> float:
        """Absolute difference of the two sides."""
        return abs(self.analytical - self.numeric)


@dataclass(frozen=True)
class Block:
    """The part of the Jacobian that belongs to one output leaf and one input leaf.

    Complex leaves count as pairs of reals, so that a block has shape (output places, input places).

    Attributes:
        output: path of the output leaf.
        input: path of the input leaf.
        mode: the mode that ``analytical`` comes from.
        numeric: the estimates, shape (rows, columns).
        analytical: the derivatives under test, likewise.
        bar: bounds on the error of ``numeric``, likewise.
        status: a ``Status`` for each entry, likewise.
    """

    output: str
    input: str
    mode: str
    numeric: Array
    analytical: Array
    bar: Array
    status: Codes

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst entry."""
        return Status(int(self.status.max(initial=0))).verdict


@dataclass(frozen=True)
class Leg:
    """One mode compared in full: what the Jacobian is by the mode, and by differences.

    Attributes:
        mode: ``reverse`` or ``forward``.
        jacobian: by that mode, shape (m, n).
        entries: the comparison.
    """

    mode: str
    jacobian: Array | Sparse
    entries: Entries

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst entry."""
        return Status(int(self.entries.status.max(initial=0))).verdict

    @property
    def unexplored(self) -> int:
        """How many directions were left half looked at because so many others are wrong."""
        return self.entries.unexplored

    @cached_property
    def analytical(self) -> Array:
        """The Jacobian under test, shape (m, n)."""
        return self.jacobian.dense() if isinstance(self.jacobian, Sparse) else self.jacobian

    @cached_property
    def numeric(self) -> Array:
        """The estimates, shape (m, n)."""
        return self.entries.numeric

    @cached_property
    def bars(self) -> Array:
        """Bounds on the errors of the estimates, shape (m, n)."""
        return self.entries.bars

    @cached_property
    def statuses(self) -> Codes:
        """A ``Status`` for each entry, shape (m, n)."""
        return self.entries.statuses

    @property
    def sharpness(self) -> float:
        """The largest relative error that an entry called ok might still have."""
        e = self.entries
        size = np.maximum(np.abs(e.analytical), np.abs(e.value))
        told = (e.status == Status.OK) & (size > 0)
        return float(np.max(e.bar / np.where(told, size, 1.0), initial=0.0, where=told))

    def worst(self, rules: Rules) -> Iterator[tuple[int, int, float, float, float, Status]]:
        """The worst entries: row, column, analytical, numeric, bar and status."""
        e = self.entries
        size = np.maximum(np.abs(e.analytical), np.abs(e.value))
        allowed = rules.rtol * size + rules.atol * e.directions.lengths + e.bar
        excess = np.abs(e.analytical - e.value) / np.maximum(allowed, 1e-300)
        rank = e.status * 1e6 + np.minimum(np.where(np.isfinite(excess), excess, np.inf), 1e5)
        count = min(SHOWN, rank.size)
        for k in np.argpartition(-rank.ravel(), count - 1)[:count] if count else ():
            c, i = divmod(int(k), rank.shape[1])
            j = e.column(c, i)
            weight = float(e.directions.weight(j))
            J = self.jacobian
            analytical = J.at(i, j) if isinstance(J, Sparse) else float(J[i, j])
            yield i, j, analytical, float(e.value[c, i]) / weight, float(e.bar[c, i]) / abs(weight), Status(int(e.status[c, i]))


@dataclass(frozen=True)
class GradReport:
    """What ``check_grad`` found.

    ``bool(report)`` is whether the gradient may be used: the verdict is ok or nondifferentiable.

    Attributes:
        verdict: the worst that is said of any entry, or of the function.
        findings: what is wrong or worth knowing besides the numbers.
        legs: the comparison in full for each mode that was compared in full.
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
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    legs: tuple[Leg, ...]
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
    reason: str = field(default="")

    def __bool__(self) -> bool:
        return self.verdict in (Verdict.OK, Verdict.NONDIFFERENTIABLE)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The comparison cut by output and input leaf, for every leg."""
        return tuple(
            Block(
                out.path,
                leaf.path,
                leg.mode,
                leg.numeric[out.slice, leaf.slice],
                leg.analytical[out.slice, leaf.slice],
                leg.bars[out.slice, leaf.slice],
                leg.statuses[out.slice, leaf.slice],
            )
            for leg in self.legs
            for out in self.outputs
            if out.attached
            for leaf in self.inputs
        )

    @property
    def worst(self) -> tuple[Entry, ...]:
        """The entries furthest from agreement, worst first; those that are wrong, if any is."""
        return tuple(sorted((*self.extra, *self._worst_of_legs()), key=_badness)[:SHOWN])

    def _worst_of_legs(self) -> Iterator[Entry]:
        for leg in self.legs:
            for i, j, a, e, bar, status in leg.worst(self.rules):
                allowed = self.rules.rtol * max(abs(a), abs(e)) + self.rules.atol
                yield Entry(_place(self.outputs, i), _place(self.inputs, j), leg.mode, a, e, bar, allowed, status)

    def count(self, status: Status) -> int:
        """How many entries have that status, over all legs."""
        return sum(leg.entries.count(status) for leg in self.legs)

    @property
    def sharpness(self) -> float:
        """The largest relative error that an entry called ok might still have."""
        return max((leg.sharpness for leg in self.legs), default=0.0)

    def __str__(self) -> str:
        from multigrad._text import as_text

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
            "modes": {leg.mode: str(leg.verdict) for leg in self.legs} | {mode: "agrees" for mode in self.agreeing},
            "findings": [
                {"kind": f.kind, "severity": f.severity, "where": f.where, "evidence": f.evidence, "remedy": f.remedy}
                for f in self.findings
            ],
            "worst": [
                {
                    "output": e.output,
                    "input": e.input,
                    "mode": e.mode,
                    "analytical": _number(e.analytical),
                    "numeric": _number(e.numeric),
                    "bar": _number(e.bar),
                    "status": e.status.name.lower(),
                }
                for e in self.worst
            ],
            "inputs": [_leaf(leaf) for leaf in self.inputs],
            "outputs": [_leaf(leaf) for leaf in self.outputs],
            "fixed": list(self.fixed),
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "seed": self.seed,
        }


def _badness(entry: Entry) -> tuple[int, float]:
    excess = entry.error / max(entry.tolerance + entry.bar, 1e-300)
    return (-int(entry.status), -(excess if np.isfinite(excess) else np.inf))


def _place(leaves: Sequence[Leaf], k: int) -> str:
    return next(leaf.place(k) for leaf in leaves if leaf.slice.start <= k < leaf.slice.stop)


def _number(value: float) -> float | str:
    """JSON has no NaN or infinity."""
    return value if np.isfinite(value) else str(value)


def _leaf(leaf: Leaf) -> dict[str, Any]:
    return {"path": leaf.path, "shape": list(leaf.shape), "dtype": leaf.dtype}

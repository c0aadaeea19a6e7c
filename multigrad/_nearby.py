"""Blind points: inputs of zeros, ones, integers or equal entries, at which a wrong gradient may happen to be right.

At x = 1 the derivative of x**3 is that of x**2 * 3/2, at 0 every multiple of the derivative of x**2 is right. Such a
point is not checked alone, but a point beside it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from multigrad._analytical.symmetric import is_symmetric, keep_symmetric, moves_with_one_triangle
from multigrad._comparison.verdict import Status, Verdict
from multigrad._detached import only_attached
from multigrad._differences.directions import scale_of, signed
from multigrad._doubt import excusable
from multigrad._report.report import GradReport
from multigrad.backends import FARTHEST, Array, FlatFunction, Leaf
from multigrad.findings import Finding

# How far away, in units of an input's scale.
NEAR, FAR = 0.02, 0.1
# More inputs or outputs than these are taken together, in this many random combinations.
FEW, LINES = 64, 8
SHOWN = 3

Check = Callable[[FlatFunction], GradReport]


def look_nearby(
    f: FlatFunction, report: GradReport, check: Check, seed: int, *, allow_constant: bool = False
) -> GradReport:
    """Check a point beside a special one, if nothing is wrong at the special one itself.

    Only a mismatch beside it counts: the point may leave the function's domain.

    Args:
        f: the flat function.
        report: what is said at the point.
        check: checks a flat function.
        seed: of the step aside, and of the combinations that are looked at.
        allow_constant: say nothing of a derivative that is the same beside the point: numbers for the point alone.
    """
    special = next(_special(f), None)
    if special is None or not report or not hasattr(f, "at"):
        return report
    for x in _beside(f, np.random.default_rng((seed, 1))):
        near = _checked(f, x, check, seed, allow_constant)
        if near is not None:
            return _joined(f, report, near, special, x)
    return report


def _special(f: FlatFunction) -> Iterator[tuple[Leaf, str]]:
    """The leaves whose entries are all integers or all the same, each with what its entries are."""
    for leaf in f.inputs:
        # Parameters begin as zeros and ones in every layer of norms and biases.
        if not leaf.size or not leaf.path.startswith("inputs"):
            continue
        entry = float(f.x[leaf.start])
        equal = leaf.size > 1 and f.x[leaf.start + 1] == entry
        if (equal or entry.is_integer()) and (kind := _kind(f.x[leaf.slice])):
            yield leaf, kind


def _kind(entries: Array) -> str:
    if (entries == entries[0]).all():
        return f"every entry is {entries[0]:g}" if len(entries) > 1 else f"it is {entries[0]:g}"
    return "every entry is an integer" if (entries == np.rint(entries)).all() else ""


def _beside(f: FlatFunction, rng: np.random.Generator) -> Iterator[Array]:
    """Points on random sides, then one above: many domains begin at 0. Symmetric matrices stay so."""
    x = f.x
    away = signed(rng, NEAR, FAR, x.shape) * np.where(np.isfinite(x), scale_of(x), 0.0)
    for leaf in f.inputs:
        if is_symmetric(leaf, x):
            keep_symmetric(leaf, away[None])
    yield x + away
    yield x + np.abs(away)


def _checked(f: FlatFunction, x: Array, check: Check, seed: int, allow_constant: bool) -> GradReport | None:
    m = f.repeats.shape[1]
    try:
        near = f.at(x)  # type: ignore[attr-defined]
        if not np.isfinite(near.repeats).all():
            return None
        u = np.arange(1.0, m + 1)[None]
        if allow_constant and np.array_equal(f.vjp(u), near.vjp(u)):
            return None
        if max(x.size, m) <= FEW:
            found = check(near)
        else:
            farthest = getattr(near, "farthest", FARTHEST)
            sums = _Projected(only_attached(near), np.random.default_rng((seed, 3)), farthest)
            found = check(sums)
            found = found.unfounded() if not found.extra and _is_rounding(found, sums.written) else found
            if found.verdict is Verdict.MISMATCH:  # it is entry by entry that errors are named
                entries = check(near)
                found = entries if entries.legs else found
    except Exception:  # noqa: BLE001, of any type: the function need not be defined there
        return None
    return found if found.legs else None


def _is_rounding(sums: GradReport, written: float) -> bool:
    """Whether random sums are off by the rounding of their terms: most are as large, though a few cancel."""
    return all(
        np.max(np.abs(leg.analytical - leg.numeric), initial=0.0, where=leg.status == Status.MISMATCH)
        <= excusable(written) * np.max(np.abs(leg.numeric), initial=0.0)
        for leg in sums.legs
    )


def _joined(f: FlatFunction, report: GradReport, near: GradReport, special: tuple[Leaf, str], x: Array) -> GradReport:
    leaf, kind = special
    moved = f"{leaf.place(leaf.start)} = {x[leaf.start]:.6g} instead of {f.x[leaf.start]:g}"
    report = replace(report, evaluations=report.evaluations + near.evaluations)
    if near.verdict is not Verdict.MISMATCH:
        seen = "agrees" if near else "tells nothing"
        return report.with_findings(
            [
                Finding(
                    "special_point",
                    f"{kind}, which can hide an error; a point beside it ({moved}, ...) {seen}",
                    leaf.path,
                )
            ]
        )
    entries = [replace(entry, mode=f"{entry.mode}, nearby") for entry in near.worst[:SHOWN]]
    finding = Finding(
        "special_point",
        f"{kind}, which hides the error: at a point beside it ({moved}, ...) the gradient is wrong",
        leaf.path,
        "check at points without zeros, ones, integers or equal entries",
    )
    return replace(report, extra=(*report.extra, *entries)).with_findings([finding, *_diagnoses(near)])


def _diagnoses(near: GradReport) -> Sequence[Finding]:
    return [finding for finding in near.findings if finding.kind in ("diagnosis", "nonlinear_backward")]


class _Projected:
    """Random combinations of the outputs of f at x + s . lines, as a function of a few numbers s.

    Where f reads one triangle of a symmetric matrix, the lines keep that symmetric: its gradient need not be another.
    """

    def __init__(self, f: FlatFunction, rng: np.random.Generator, farthest: float) -> None:
        self._f, self.farthest = f, farthest
        m = f.repeats.shape[1]
        self._lines = signed(rng, 0.5, 1.0, (LINES, f.x.size)) * scale_of(f.x)
        for leaf in f.inputs:
            if is_symmetric(leaf, f.x) and moves_with_one_triangle(f, leaf, NEAR * self._lines[0]):
                keep_symmetric(leaf, self._lines)
        self._mixed = signed(rng, 0.5, 1.0, (LINES, m))
        self.x = np.zeros(LINES)
        self.inputs: Sequence[Leaf] = [Leaf("inputs along random line", (LINES,), "float64", 0)]
        self.outputs: Sequence[Leaf] = [Leaf("random sum of outputs", (LINES,), "float64", 0)]
        self.fixed, self.eps, self.repeats = f.fixed, f.eps, f.repeats @ self._mixed.T
        self.written: float = getattr(f, "written", 0.0)

    @property
    def findings(self) -> Sequence[Finding]:
        return self._f.findings

    def __call__(self, S: Array, /) -> Array:
        return self._f(self._f.x + S @ self._lines) @ self._mixed.T

    def vjp(self, U: Array, /) -> Array:
        return self._f.vjp(U @ self._mixed) @ self._lines.T

    def jvp(self, V: Array, /) -> Array:
        return self._f.jvp(V @ self._lines) @ self._mixed.T

"""Conventions: differences that are a choice of the frameworks rather than a slip of whoever ported the function.

A difference is called a convention only if it has the very form of one, and if the numerical side says that each
implementation is right about itself. Some conventions answer the same question in two right ways (an eigenvector's
sign); others are another definition (the two formulas of gelu), which a port must not mix up unless told to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from multigrad.backends import Array
from multigrad.consistency.matching import Pair
from multigrad.findings import Finding

Numbers = npt.NDArray[Any]

# Right answers to one question: the sides are consistent.
LEGAL = ("kink", "tie", "undefined_gradient", "jump", "nan_propagation", "phase", "float32_accumulation")
# Answers to two questions: the sides are consistent only if the user accepts the convention by name.
DEFINITIONS = ("ddof", "gelu", "conjugation", "padding", "stop_gradient", "symmetric_domain")


@dataclass(frozen=True)
class Convention:
    """A difference that both sides are entitled to.

    Attributes:
        name: a word of ``LEGAL`` or ``DEFINITIONS``.
        where: path, or path and index.
        backends: the two sides that differ.
        evidence: what was seen, with its numbers.
    """

    name: str
    where: str
    backends: tuple[str, str]
    evidence: str

    @property
    def finding(self) -> Finding:
        """As it stands in the report."""
        remedy = f'if both are meant, accept=("{self.name}",)' if self.name in DEFINITIONS else ""
        return Finding("convention", f"{self.name}: {self.evidence}", self.where, remedy)


@dataclass(frozen=True)
class Difference:
    """One output leaf in which two sides differ by value.

    Attributes:
        a: the first side's numbers, in the reference's shape.
        b: the second's.
        inputs: the inputs, likewise.
        tolerance: relative difference that rounding makes.
    """

    a: Numbers
    b: Numbers
    inputs: Sequence[Numbers]
    tolerance: float

    def same(self, a: Numbers, b: Numbers) -> bool:
        """Whether two arrays are the same but for rounding, NaN equal to NaN."""
        with np.errstate(all="ignore"):
            size = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
            return bool(np.allclose(a, b, rtol=self.tolerance, atol=self.tolerance * float(size), equal_nan=True))


Test = Callable[[Difference], str | None]


def recognise(difference: Difference) -> tuple[str, str] | None:
    """Name the convention by which two arrays of values differ: its name, and the evidence."""
    for name, test in TESTS:
        with np.errstate(all="ignore"):
            evidence = test(difference)
        if evidence is not None:
            return name, evidence
    return None


def _nan_propagation(d: Difference) -> str | None:
    a, b = np.isnan(d.a), np.isnan(d.b)
    from_input = any(np.isnan(x).any() for x in d.inputs)
    rest = ~(a | b)
    if from_input and (a != b).any() and d.same(d.a[rest], d.b[rest]):
        return f"an input is NaN; {int(a.sum())} values of one and {int(b.sum())} of the other are NaN, the rest agrees"
    return None


def _ddof(d: Difference) -> str | None:
    ratio = _constant_ratio(d)
    if ratio is None:
        return None
    for n in sorted(_counts(d.inputs)):
        for power, what in ((1.0, "variance"), (0.5, "standard deviation")):
            for expected, first, second in ((n / (n - 1), "n - 1", "n"), ((n - 1) / n, "n", "n - 1")):
                if abs(ratio / expected**power - 1) <= 4 * d.tolerance:
                    return f"a {what} divided by {first} here and by {second} there; n = {n}, the ratio is {ratio:.9g}"
    return None


def _constant_ratio(d: Difference) -> float | None:
    if np.iscomplexobj(d.a) or np.iscomplexobj(d.b):
        return None
    used = d.b != 0
    ratios = d.a[used] / d.b[used]
    if not ratios.size or not np.isfinite(ratios).all() or np.ptp(ratios) > 4 * d.tolerance * abs(ratios[0]):
        return None
    return float(np.median(ratios))


def _counts(inputs: Sequence[Numbers]) -> set[int]:
    """How many numbers a reduction over some axes of an input takes in; at n = 2 a factor of 2 is no evidence."""
    found = set()
    for x in inputs:
        for k in range(1, x.ndim + 1):
            found |= {math.prod(axes) for axes in combinations(x.shape, k)}
    return {n for n in found if n > 2}


def _gelu(d: Difference) -> str | None:
    for x in d.inputs:
        if x.shape != d.a.shape or x.dtype.kind != "f":
            continue
        formulas = {"erf": _gelu_erf(x), "tanh": _gelu_tanh(x), "sigmoid": x / (1 + np.exp(-1.702 * x))}
        ours, theirs = (next((k for k, v in formulas.items() if d.same(y, v)), None) for y in (d.a, d.b))
        if ours and theirs and ours != theirs:
            return f"gelu by the formula with {ours} here and with {theirs} there"
    return None


def _gelu_erf(x: Numbers) -> Numbers:
    return np.asarray(x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))) / 2)


def _gelu_tanh(x: Numbers) -> Numbers:
    return np.asarray(x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)


def _conjugation(d: Difference) -> str | None:
    if np.iscomplexobj(d.a) and np.iscomplexobj(d.b) and d.same(d.a, np.conj(d.b)):
        return "one is the complex conjugate of the other"
    return None


def _padding(d: Difference) -> str | None:
    differ = np.abs(d.a - d.b) > d.tolerance * np.max(np.abs(d.b), initial=0.0)
    long = [(axis, size) for axis, size in enumerate(differ.shape) if size > 4]
    if not long:
        return None
    from_end = [np.minimum(np.arange(size), np.arange(size)[::-1]) for _, size in long]
    shaped = [
        np.expand_dims(x, [k for k in range(differ.ndim) if k != axis])
        for x, (axis, _) in zip(from_end, long, strict=True)
    ]
    depth = np.broadcast_to(np.min(np.broadcast_arrays(*shaped), axis=0), differ.shape)[differ].max(initial=0)
    if depth >= min(size for _, size in long) // 4:
        return None
    return f"they agree inside and differ in the {depth + 1} outermost entries of axes {[axis for axis, _ in long]}"


TESTS: Sequence[tuple[str, Test]] = (
    ("nan_propagation", _nan_propagation),
    ("conjugation", _conjugation),
    ("ddof", _ddof),
    ("gelu", _gelu),
    ("padding", _padding),
)


def phases(d: Difference) -> Numbers | None:
    """The factors of modulus 1 by which vectors of one side differ from the other's, in the shape of the array.

    They are free where the vectors, rows or columns, have unit length (eigenvectors, singular vectors, Q) or are the
    rows of a triangle (R): another factor there is another right answer.
    """
    a, b = d.a, d.b
    if a.ndim < 2 or a.shape != b.shape or not d.same(np.abs(a), np.abs(b)):
        return None
    for axis, free in ((-2, _unit(d, -2)), (-1, _unit(d, -1) or _triangular(d))):
        k = np.argmax(np.abs(b), axis=axis, keepdims=True)
        factor = np.take_along_axis(a, k, axis) / np.take_along_axis(b, k, axis)
        if free and d.same(a, factor * b):
            return np.broadcast_to(factor, a.shape)
    return None


def _unit(d: Difference, axis: int) -> bool:
    length = np.linalg.norm(d.b, axis=axis)
    return d.b.shape[axis] > 1 and bool(np.allclose(length, 1, rtol=0, atol=10 * d.tolerance))


def _triangular(d: Difference) -> bool:
    return d.b.shape[-1] > 1 and bool((np.tril(d.b, -1) == 0).all())


def in_reference_shape(flat: Array, pairs: Sequence[Pair]) -> Iterator[Numbers]:
    """Cut a vector in common places into the leaves, in the reference's shapes."""
    start = 0
    for pair in pairs:
        leaf = pair.reference
        moved = flat[start : start + leaf.size]
        yield (np.ascontiguousarray(moved).view(np.complex128) if leaf.complex else moved).reshape(leaf.shape)
        start += leaf.size

"""Whereabouts: what the derivatives of two functions say of where their values part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from multigrad._comparison.verdict import Codes, Status
from multigrad.backends import Array
from multigrad.consistency.agreement import Claim, compare_jacobians, spans
from multigrad.consistency.matching import Pair
from multigrad.consistency.sides import Side
from multigrad.findings import Finding

LISTED = 4


def locate(side: Side, other: Side, one: Claim, theirs: Claim, differ: Codes, rtol: float | None) -> Iterator[Finding]:
    """Say, for each output leaf whose values differ, which of its derivatives agree nevertheless.

    Args:
        side: the side that is spoken of.
        other: the side that it is compared with.
        one: the first's Jacobian.
        theirs: the second's.
        differ: statuses of the values, shape (m,).
        rtol: the user's relative tolerance.
    """
    status = compare_jacobians(side, other, one, theirs, rtol)
    for pair, rows in zip(side.outputs, spans(side.outputs), strict=True):
        if (differ[rows] > Status.OK).any():
            ours, others = one.jacobian[rows], theirs.jacobian[rows]
            words = (
                _constant(side.values[rows], other.values[rows], others, status[rows])
                or _factor(side.values[rows], other.values[rows], ours, others)
                or _parts(side.inputs, ours, others, status[rows])
            )
            if words:
                yield Finding("diagnosis", f"{side.name} as compared with {other.name}: {words}", pair.reference.path)


def first_to_differ(side: Side, other: Side, differ: Codes) -> Iterator[Finding]:
    """Say which of several outputs is the first whose values differ, where those before it or after it agree."""
    wrong = [bool((differ[rows] > Status.OK).any()) for rows in spans(side.outputs)]
    if any(wrong) and not all(wrong):
        paths = [pair.reference.path for pair in side.outputs]
        first = paths[wrong.index(True)]
        agreeing = _listed([path for path, differs in zip(paths, wrong, strict=True) if not differs])
        words = f"{side.name} as compared with {other.name}: {agreeing} agree, {first} is the first output that differs"
        yield Finding("diagnosis", words, first)


def _constant(a: Array, b: Array, theirs: Array, status: Codes) -> str:
    if not theirs.any() or (status == Status.MISMATCH).any():
        return ""
    gap = a - b
    k = int(np.argmax(np.abs(gap)))
    return f"all derivatives agree, so that it is a constant that is added or left out: {gap[k]:.9g}"


def _factor(a: Array, b: Array, ours: Array, theirs: Array) -> str:
    """A factor that the values and all derivatives have in common."""
    x, y = (np.concatenate([values.ravel(), jacobian.ravel()]) for values, jacobian in ((a, ours), (b, theirs)))
    k = int(np.argmax(np.abs(y)))
    factor = x[k] / y[k]
    size = float(np.max(np.abs(x), initial=0.0))
    if not factor or not np.allclose(x, factor * y, rtol=1e-6, atol=1e-9 * size):
        return ""
    return f"the values and all derivatives have a factor of {factor:.9g}"


def _parts(inputs: Sequence[Pair], ours: Array, theirs: Array, status: Codes) -> str:
    """Which inputs have a part in the difference, and which have none."""
    paths: dict[str, list[str]] = {"agree": [], "differ": [], "unused": []}
    for pair, columns in zip(inputs, spans(inputs), strict=True):
        used, used_there = bool((ours[:, columns] != 0).any()), bool((theirs[:, columns] != 0).any())
        if used_there and not used:
            paths["unused"].append(pair.reference.path)
        elif (status[:, columns] == Status.MISMATCH).any():
            paths["differ"].append(pair.reference.path)
        elif used and used_there:
            paths["agree"].append(pair.reference.path)
    if paths["unused"]:
        return f"it does not depend on {_listed(paths['unused'])}"
    if not paths["agree"] or not paths["differ"]:
        return ""
    many = len(paths["differ"]) > LISTED
    rest = "all others" if many else f"those by {_listed(paths['differ'])}"
    return f"the derivatives by {_listed(paths['agree'])} agree, {rest} differ"


def _listed(paths: Sequence[str]) -> str:
    shown = list(paths[:LISTED])
    rest = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")

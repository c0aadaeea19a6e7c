"""Symmetry: functions of a symmetric matrix that are one function as long as it stays symmetric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from multigrad._comparison.verdict import Codes, Status
from multigrad._differences.directions import Index, Mask
from multigrad.backends import Array
from multigrad.consistency.agreement import Claim, compare_jacobians, spans
from multigrad.consistency.conventions import Convention
from multigrad.consistency.matching import Pair
from multigrad.consistency.sides import Side


def lost_in_symmetry(a: Side, b: Side, one: Claim, other: Claim, status: Codes, rtol: float | None) -> Mask:
    """Entries that differ, but not in answer to changes that keep symmetric matrices symmetric; shape (m, n)."""
    wrong = status == Status.MISMATCH
    turned = _transposed(a)
    if not wrong.any() or (turned == np.arange(turned.size)).all():
        return np.zeros_like(wrong)
    kept = compare_jacobians(a, b, _mean(one, turned), _mean(other, turned), rtol)
    return np.asarray(wrong & (kept != Status.MISMATCH))


def name_symmetric(a: Side, b: Side, one: Claim, other: Claim, lost: Mask) -> Iterator[Convention]:
    """Name the inputs that are symmetric, and by which the sides differ in that way alone."""
    for pair, columns in zip(a.inputs, spans(a.inputs), strict=True):
        where = np.argwhere(lost[:, columns])
        if len(where):
            i, j = int(where[0, 0]), int(where[0, 1]) + columns.start
            place = pair.reference.place(pair.reference.start + int(where[0, 1]))
            evidence = (
                f"it is symmetric, and changes that keep it so tell no difference; by {place} alone {a.name} says "
                f"{one.jacobian[i, j]:.6g} and {b.name} {other.jacobian[i, j]:.6g}: it may be transposed in one of them"
            )
            yield Convention("symmetric_domain", pair.reference.path, (a.name, b.name), evidence)


def _mean(claim: Claim, turned: Index) -> Claim:
    """A Jacobian of the symmetric parts of the inputs."""
    jacobian = (claim.jacobian + claim.jacobian[:, turned]) / 2
    return replace(claim, jacobian=jacobian, bar=(claim.bar + claim.bar[:, turned]) / 2)


def _transposed(side: Side) -> Index:
    """For each common input the place of its mirror image in a symmetric matrix; its own elsewhere."""
    places = np.arange(side.columns.size)
    for pair, span in zip(side.inputs, spans(side.inputs), strict=True):
        if _is_symmetric(side.f.x[side.columns[span]], pair):
            places[span] = np.swapaxes(places[span].reshape(pair.reference.shape), -1, -2).ravel()
    return places


def _is_symmetric(x: Array, pair: Pair) -> bool:
    shape = pair.reference.shape
    if pair.leaf.complex or len(shape) < 2 or shape[-1] != shape[-2]:
        return False
    matrix = x.reshape(shape)
    return bool(np.array_equal(matrix, np.swapaxes(matrix, -1, -2)))

"""Symmetric domains: functions of a symmetric or Hermitian matrix that read one triangle of it.

``cholesky`` and ``eigh`` look at the lower triangle, and their gradients are those of matrices that stay symmetric:
half of each derivative stands on either side of the diagonal. No single entry agrees with a difference quotient,
while the derivative along every direction that leaves the matrix symmetric does.
"""

from __future__ import annotations

import numpy as np

from multigrad._directions import Directions, Index
from multigrad._entries import Entries
from multigrad._findings import Finding
from multigrad._kinks import Mask
from multigrad._numerical import Numerical
from multigrad._purity import FEW_ULP
from multigrad._verdict import Status
from multigrad.backends import Array, FlatFunction, Leaf


def compare_symmetric(f: FlatFunction, numerical: Numerical, found: Entries, J: Array, mode: str) -> list[Finding]:
    """Compare matrices of which one triangle is read along directions that keep them symmetric.

    ``found`` is the comparison of J, shape (m, n), along unit vectors in their order; its statuses are changed in
    place.

    Returns:
        A note for each such input.
    """
    notes = []
    for leaf in f.inputs:
        if not (found.status[leaf.slice] >= Status.INCONCLUSIVE).any() or not _is_square(leaf):
            continue
        at_x = _is_mirrored(leaf, f.x[leaf.slice, None], FEW_ULP * numerical.rules.eps)
        if at_x.all() and _reads_one_triangle(leaf, found):
            if mode == "reverse" and not _is_legal(leaf, J.T[leaf.slice], numerical.rules.rtol):
                continue
            _settle(f, numerical, found, J, leaf)
            notes.append(_note(leaf))
    return notes


def _is_square(leaf: Leaf) -> bool:
    return len(leaf.shape) >= 2 and leaf.shape[-1] == leaf.shape[-2] > 1


def _places(leaf: Leaf) -> Index:
    """The flat places of the leaf, from 0, in the shape of a stack of matrices of real parts: (..., k, k, parts)."""
    return np.arange(leaf.size).reshape((*leaf.shape, 2 if leaf.complex else 1))


def _pairs(leaf: Leaf) -> tuple[Index, Index, Array]:
    """Flat places above the diagonal, their mirrors below, and the sign between the two; shapes (pairs,)."""
    places = _places(leaf)
    row, column = np.triu_indices(leaf.shape[-1], 1)
    upper, lower = places[..., row, column, :], places[..., column, row, :]
    sign = np.broadcast_to(np.array([1.0, -1.0])[: places.shape[-1]], upper.shape)
    return upper.ravel(), lower.ravel(), sign.ravel()


def _is_mirrored(leaf: Leaf, values: Array, relative: float) -> Mask:
    """Whether values at the leaf's places, shape (size, r), are symmetric or Hermitian; shape (r,)."""
    upper, lower, sign = _pairs(leaf)
    apart = np.abs(values[upper] - sign[:, None] * values[lower]).max(axis=0)
    return np.asarray(apart <= relative * np.abs(values).max(axis=0))


def _is_legal(leaf: Leaf, gradients: Array, relative: float) -> bool:
    """Whether gradients, shape (size, m), may be those of functions of a symmetric or Hermitian matrix.

    Not all are symmetric: they may have another part besides, which no direction in the domain meets. But those that
    stand in one triangle alone are derivatives of something else.
    """
    upper, lower, _ = _pairs(leaf)
    sides = [np.max(np.abs(gradients[side]), initial=0.0) for side in (upper, lower)]
    return bool(_is_mirrored(leaf, gradients, relative).all() or min(sides) > 0.1 * max(sides))


def _reads_one_triangle(leaf: Leaf, found: Entries) -> bool:
    """Whether no output moves with one of the triangles, while some output moves with the other."""
    upper, lower, _ = _pairs(leaf)
    moves = np.abs(found.value[leaf.slice]) > found.bar[leaf.slice]
    return bool(moves[upper].any() != moves[lower].any())


def _settle(f: FlatFunction, numerical: Numerical, found: Entries, J: Array, leaf: Leaf) -> None:
    """Replace the statuses off the diagonal by those along symmetric directions."""
    upper, lower, sign = _pairs(leaf)
    columns = leaf.start + np.stack([upper, lower], axis=1)
    weights = found.directions.weights[columns[:, :1]] * np.stack([np.ones_like(sign), sign], axis=1)
    directions = Directions(f.x.size, 2 * np.arange(len(columns) + 1), columns.ravel(), weights.ravel())
    along = numerical.compare(directions, directions.times(J))
    for side in columns.T:
        found.status[side] = along.status
    found.unexplored = along.unexplored
    if leaf.complex:  # the domain has no direction in which the diagonal gets an imaginary part
        outside = leaf.start + np.diagonal(_places(leaf)[..., 1], axis1=-2, axis2=-1).ravel()
        still = np.abs(found.value[outside]) <= found.bar[outside]
        found.status[outside] = np.where(still, Status.UNRESOLVED, found.status[outside])


def _note(leaf: Leaf) -> Finding:
    return Finding(
        "symmetric_domain",
        "the function reads one triangle of this symmetric matrix, and its gradient is that of a matrix that stays "
        "symmetric; compared along symmetric directions",
        leaf.path,
        "symmetrise the matrix inside the function if its triangles are to be independent",
    )

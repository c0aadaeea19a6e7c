"""Symmetric domains: functions of a symmetric or Hermitian matrix that read one triangle of it.

``cholesky`` and ``eigh`` look at the lower triangle, and their gradients are those of matrices that stay symmetric:
half of each derivative stands on either side of the diagonal. No single entry agrees with a difference quotient,
while the derivative along every direction that leaves the matrix symmetric does.
"""

from __future__ import annotations

import numpy as np

from multigrad._comparison.entries import Entries
from multigrad._comparison.numerical import Numerical
from multigrad._comparison.verdict import Status
from multigrad._differences.directions import Directions, Index, Mask
from multigrad._purity import FEW_ULP
from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.findings import Finding


def compare_symmetric(f: FlatFunction, numerical: Numerical, found: Entries, J: Array, mode: str) -> list[Finding]:
    """Compare matrices of which one triangle is read along directions that keep them symmetric.

    ``found`` is the comparison of J, shape (m, n), along unit vectors in their order; it is changed in place.

    Returns:
        A note for each such input.
    """
    settled: list[tuple[Leaf, Entries]] = []
    for leaf in f.inputs:
        if not (found.status[leaf.slice] >= Status.INCONCLUSIVE).any():
            continue
        if is_symmetric(leaf, f.x, FEW_ULP * numerical.rules.eps) and _reads_one_triangle(leaf, found):
            if mode == "reverse" and not _is_legal(leaf, J.T[leaf.slice], numerical.rules.rtol):
                continue
            settled.append((leaf, _settle(f, numerical, found, J, leaf)))
    for leaf, along in settled:
        _restate(found, leaf, along)
    return [_note(leaf) for leaf, _ in settled]


def is_symmetric(leaf: Leaf, x: Array, relative: float = 0.0) -> bool:
    """Whether the leaf is a symmetric or Hermitian matrix at x, shape (n,), or a stack of them."""
    square = len(leaf.shape) >= 2 and leaf.shape[-1] == leaf.shape[-2] > 1
    return square and leaf.size > 0 and bool(_is_mirrored(leaf, x[leaf.slice, None], relative).all())


def keep_symmetric(leaf: Leaf, steps: Array) -> None:
    """Make steps, shape (r, n), such that a symmetric or Hermitian matrix stays so along them. In place."""
    upper, lower, sign = _pairs(leaf)
    steps[:, leaf.start + lower] = sign * steps[:, leaf.start + upper]
    steps[:, _imaginary_diagonal(leaf)] = 0.0


def _imaginary_diagonal(leaf: Leaf) -> Index:
    """The flat places of f's inputs that are 0 in a Hermitian matrix; of a real one, none."""
    return leaf.start + np.diagonal(_places(leaf)[..., 1:], axis1=-3, axis2=-2).ravel()


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


def moves_with_one_triangle(f: FlatFunction, leaf: Leaf, steps: Array) -> bool:
    """Whether f at x moves with one triangle of the leaf and not with the other; ``steps``, shape (n,), move it."""
    upper, lower, _ = _pairs(leaf)
    moves = []
    for triangle in (leaf.start + upper, leaf.start + lower):
        x = f.x.copy()
        x[triangle] += steps[triangle]
        moves.append(not np.array_equal(f(x[None])[0], f.repeats[0], equal_nan=True))
    return moves[0] != moves[1]


def _settle(f: FlatFunction, numerical: Numerical, found: Entries, J: Array, leaf: Leaf) -> Entries:
    """Replace the statuses off the diagonal by those along symmetric directions, which are returned."""
    upper, lower, sign = _pairs(leaf)
    columns = leaf.start + np.stack([upper, lower], axis=1)
    weights = found.directions.weights[columns[:, :1]] * np.stack([np.ones_like(sign), sign], axis=1)
    directions = Directions(f.x.size, 2 * np.arange(len(columns) + 1), columns.ravel(), weights.ravel())
    along = numerical.compare(directions, directions.times(J))
    for side in columns.T:
        found.status[side] = along.status
    found.unexplored = along.unexplored
    if leaf.complex:  # the domain has no direction in which the diagonal gets an imaginary part
        outside = _imaginary_diagonal(leaf)
        still = np.abs(found.value[outside]) <= found.bar[outside]
        found.status[outside] = np.where(still, Status.UNRESOLVED, found.status[outside])
    return along


def _restate(found: Entries, leaf: Leaf, along: Entries) -> None:
    """Split the derivatives ``along`` symmetric directions between the two entries of each pair as the gradient does.

    Only the sum of a pair shows in the domain: rounding that cancels in it is not told from 0. Outputs with a mismatch
    keep the plain partial derivatives, which those who look for its cause go by.
    """
    upper, lower, sign = _pairs(leaf)
    weights = found.directions.weights
    right = ~(found.status == Status.MISMATCH).any(axis=0) & np.isfinite(along.analytical) & np.isfinite(along.value)
    for side, direction in ((upper, np.ones_like(sign)), (lower, sign)):
        places = leaf.start + side
        share = (0.5 * direction * weights[places] / weights[leaf.start + upper])[:, None]
        value = found.analytical[places] + share * (along.value - along.analytical)
        found.value[places] = np.where(right, value, found.value[places])
        found.bar[places] = np.where(right, np.abs(share) * along.bar, found.bar[places])
        claimed = np.abs(found.analytical[places])
        dust = right & (along.status == Status.OK) & (claimed > 0) & (claimed <= found.bar[places])
        found.status[places] = np.where(dust, np.int8(Status.UNRESOLVED), found.status[places])


def _note(leaf: Leaf) -> Finding:
    return Finding(
        "symmetric_domain",
        "the function reads one triangle of this symmetric matrix, and its gradient is that of a matrix that stays "
        "symmetric; compared along symmetric directions",
        leaf.path,
        "symmetrise the matrix inside the function if its triangles are to be independent",
    )

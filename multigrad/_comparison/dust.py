"""Dust: what rounding leaves in derivatives that should be 0.

Derivatives are sums of terms that are as large as the other entries of their output, or as the values themselves;
where the terms cancel, their rounding stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multigrad._sparsity.sparse import Sparse
from multigrad.backends import Array, Leaf

ULPS = 64


def rounding_dust(size: Array, values: Array, outputs: Sequence[Leaf], eps: float) -> Array:
    """Bound what rounding may leave in each entry, shape (1, m).

    Args:
        size: absolute values of the derivatives along the directions, shape (C, m).
        values: absolute values of f, shape (m,).
        outputs: the leaves that it returns: what is summed up for one input may be as large as what is for another.
        eps: unit roundoff of its arithmetic.
    """
    return np.asarray(ULPS * eps * np.maximum(largest_of_leaf(size, outputs), values)[None])


def largest_of_leaf(size: Array, leaves: Sequence[Leaf]) -> Array:
    """The largest in the leaf that each column belongs to: (k, m) -> (m,)."""
    largest = np.zeros(size.shape[1])
    for leaf in leaves:
        largest[leaf.slice] = np.max(size[:, leaf.slice], initial=0.0)
    return largest


def dust_of_product(
    u: Array, J: Array | Sparse, values: Array, inputs: Sequence[Leaf], outputs: Sequence[Leaf], eps: float
) -> Array:
    """Bound what rounding may leave in each entry of u @ J, shape (n,); u and ``values`` have shape (m,)."""
    floor, weight = np.zeros(J.shape[1]), np.abs(u)
    for leaf in inputs:
        for out in outputs:
            size = np.maximum(_largest(J, out.slice, leaf.slice), values[out.slice])
            floor[leaf.slice] += ULPS * eps * (weight[out.slice] @ size)
    return floor


def _largest(J: Array | Sparse, rows: slice, columns: slice) -> float:
    if isinstance(J, Sparse):
        p = J.pattern
        inside = (
            (p.rows >= rows.start) & (p.rows < rows.stop) & (p.columns >= columns.start) & (p.columns < columns.stop)
        )
        part = J.values[inside]
    else:
        part = J[rows, columns]
    return float(np.max(np.abs(part), initial=0.0, where=np.isfinite(part)))

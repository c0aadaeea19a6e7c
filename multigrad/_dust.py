"""Dust: what rounding leaves in derivatives that should be 0.

Derivatives are sums of terms that are as large as the other entries of their block, or as the values themselves;
where the terms cancel, their rounding stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multigrad._directions import Directions
from multigrad._pattern import Sparse
from multigrad.backends import Array, Leaf

ULPS = 64


def rounding_dust(
    size: Array, values: Array, directions: Directions, inputs: Sequence[Leaf], outputs: Sequence[Leaf], eps: float
) -> Array:
    """Bound what rounding may leave in each entry, shape (C, m).

    Args:
        size: absolute values of the derivatives along the directions, shape (C, m).
        values: absolute values of f, shape (m,).
        directions: the C directions; the first input that each touches tells its block.
        inputs: the leaves that f takes.
        outputs: the leaves that it returns.
        eps: unit roundoff of its arithmetic.
    """
    dust = np.empty_like(size)
    first = directions.columns[directions.starts[:-1]]
    for leaf in inputs:
        chosen = np.flatnonzero((first >= leaf.slice.start) & (first < leaf.slice.stop))
        for out in outputs:
            dust[chosen, out.slice] = np.max(size[chosen, out.slice], initial=0.0)
    return ULPS * eps * np.maximum(dust, values)


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

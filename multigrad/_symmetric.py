"""Functions of symmetric matrices, as cholesky and eigh: they read one triangle, and their gradient is symmetric.

An entry moved alone leaves the domain: the function does not see it, or takes it for two. On symmetric matrices the
symmetric gradient is right if it makes the same of every symmetric change as the true one does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from multigrad._directions import Index
from multigrad._findings import Finding
from multigrad._kinks import Mask
from multigrad._report import Leg
from multigrad._verdict import Status
from multigrad.backends import Array, Leaf

CLOSE = 1e-6


def admit_symmetric(leg: Leg, leaf: Leaf, x: Array, known: bool = False) -> tuple[Leg, list[Finding]]:
    """Accept mismatches of the leg in an input that are of this kind alone.

    Args:
        leg: the comparison.
        leaf: the input.
        x: the point.
        known: whether the other mode has shown that the input is of this kind: forward mode need not symmetrise.
    """
    part = slice(None), leaf.slice
    wrong = leg.status[part] == Status.MISMATCH
    if not wrong.any() or len(leaf.shape) < 2 or leaf.shape[-1] != leaf.shape[-2] or leaf.shape[-1] < 2:
        return leg, []
    mirror, sign = _mirror(leaf)
    entries, claimed, true = x[leaf.slice], leg.analytical[part], leg.numeric[part]
    with np.errstate(all="ignore"):
        bar = leg.bar[part] + leg.bar[part][:, mirror]
        symmetric = np.array_equal(entries, sign * entries[mirror])
        symmetric = symmetric and (known or _alike(claimed, sign * claimed[:, mirror], 0.0))
        same = symmetric and _alike(claimed + sign * claimed[:, mirror], true + sign * true[:, mirror], 4 * bar)
    if not same or not _reads_one_triangle(np.abs(true) > leg.bar[part], leaf):
        return leg, []
    status = leg.status.copy()
    status[part] = np.where(wrong, np.int8(Status.OK), status[part])
    finding = Finding(
        "symmetric_domain",
        f"the function reads one triangle of this {'Hermitian' if leaf.complex else 'symmetric'} matrix, and the "
        "gradient is that over symmetric changes, which is right for them; moved alone, an entry counts otherwise",
        leaf.path,
        "symmetrise inside the function, (x + x.T) / 2, to have entries checked one by one",
    )
    return replace(leg, status=status), [finding]


def _mirror(leaf: Leaf) -> tuple[Index, Array]:
    """Where each flat place is after transposition, and the sign that it has then (conjugation)."""
    index = np.arange(leaf.size).reshape(*leaf.shape, -1)
    sign = np.ones(leaf.size).reshape(index.shape)
    if leaf.complex:
        sign[..., 1] = -1.0
    return np.swapaxes(index, -2, -3).ravel(), sign.ravel()


def _reads_one_triangle(seen: Mask, leaf: Leaf) -> bool:
    read = seen.any(axis=0).reshape(*leaf.shape, -1).any(axis=-1).reshape(-1, *leaf.shape[-2:]).any(axis=0)
    return bool(np.tril(read, -1).any() != np.triu(read, 1).any())


def _alike(one: Array, other: Array, bar: Array | float) -> bool:
    size = np.max(np.abs(other), initial=0.0)
    return bool((np.abs(one - other) <= CLOSE * np.abs(other) + bar + 1e-9 * size).all())

"""Gauge: unit vectors that are given up to a phase, such as complex eigenvectors.

Whichever phase a decomposition picks, it has no say in: the derivative under test may move the phase otherwise than
the function does. Where the two differ by nothing but a phase, it cannot be told whether that is meant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multigrad._comparison.entries import Entries
from multigrad._comparison.verdict import Rules, Status
from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.findings import Finding

UNIT = 1e-10  # by how much a squared norm may miss 1


def excuse_phases(f: FlatFunction, here: Array, found: Entries, rules: Rules) -> list[Finding]:
    """Take back a mismatch of unit vectors that turns nothing but their phases; statuses are changed in place.

    Args:
        f: the function.
        here: f(x), shape (m,).
        found: the comparison.
        rules: the constants of the verdict.

    Returns:
        What is to be said of each such output.
    """
    findings = []
    for leaf in f.outputs:
        status = found.status[:, leaf.slice]
        wrong = status == Status.MISMATCH
        if leaf.complex and len(leaf.shape) >= 2 and wrong.any() and _only_phases(leaf, here, found, rules):
            status[wrong] = Status.INCONCLUSIVE
            findings.append(_finding(leaf))
    return findings


def _only_phases(leaf: Leaf, here: Array, found: Entries, rules: Rules) -> bool:
    vectors, analytical, value = (_complex(leaf, a[..., leaf.slice]) for a in (here, found.analytical, found.value))
    bar = np.abs(_complex(leaf, found.bar[:, leaf.slice]))
    allowed = rules.rtol * np.maximum(np.abs(analytical), np.abs(value)) + 4 * bar
    difference = analytical - value
    for axis in (-2, -1):
        if leaf.shape[axis] < 2 or not (np.abs(np.sum(np.abs(vectors) ** 2, axis) - 1) < UNIT).all():
            continue
        turn = np.sum(vectors.conj() * difference, axis, keepdims=True).imag
        size = np.max(np.abs(difference), axis=axis, keepdims=True)
        if (np.abs(difference - 1j * turn * vectors) <= allowed + rules.rtol * size).all():
            return True
    return False


def _complex(leaf: Leaf, places: Array) -> Any:
    return np.ascontiguousarray(places).view(np.complex128).reshape((*places.shape[:-1], *leaf.shape))


def _finding(leaf: Leaf) -> Finding:
    return Finding(
        "ill_defined",
        "the derivative and the difference quotients differ by the phases of these unit vectors and by nothing else; "
        "the phases of eigenvectors and singular vectors are arbitrary",
        leaf.path,
        "check a function of them that does not depend on their phases; if the phase is meant, its derivative is wrong",
    )

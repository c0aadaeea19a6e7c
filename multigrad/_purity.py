"""Purity: whether the function gives the same values when it is called again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multigrad._comparison.verdict import Status, Verdict
from multigrad._report.leg import Leg
from multigrad._report.sparse_leg import SparseLeg
from multigrad.backends import Array, FlatFunction, place
from multigrad.findings import Finding

# Run-to-run differences of sums done in another order, as atomic adds give them.
FEW_ULP = 64


def value_at_x(f: FlatFunction, values: Callable[[Array], Array]) -> tuple[Array, Array | float, list[Finding]]:
    """Compare plain calls at x.

    Returns:
        f(x), shape (m,); by how much values move from call to call even though random numbers are the same, shape
        (m,): noise that every further value has; and what was found.
    """
    first, second = f.repeats
    if np.array_equal(first, second, equal_nan=True):
        return first, 0.0, []
    here = values(f.x[None])[0]
    findings, jitter = _check_repeats(f, here)
    return here, jitter, findings


def _check_repeats(f: FlatFunction, here: Array) -> tuple[list[Finding], Array]:
    first, second = f.repeats
    jitter = np.where(np.isfinite(first), np.abs(here - first), 0.0)
    moved = np.abs(second - first)
    size = np.fmax(np.abs(first), np.abs(second))
    differs = (moved > FEW_ULP * f.eps * size) | (np.isfinite(first) != np.isfinite(second))
    if not differs.any() or any(g.kind == "nondeterministic_forward" for g in f.findings):
        return [], 10 * jitter
    k = int(np.argmax(np.where(differs, moved / np.where(size > 0, size, 1.0), -1.0)))
    finding = Finding(
        "nondeterministic_forward",
        f"two calls at the same inputs gave {first[k]:.12g} and {second[k]:.12g}; they differ by {moved[k]:.2g}",
        place(f.outputs, k),
        "fix the seed inside the function, or remove the state that it keeps between calls",
    )
    return [finding], 10 * np.maximum(jitter, np.where(np.isfinite(moved), moved, 0.0))


def check_finite(f: FlatFunction, here: Array) -> list[Finding]:
    """Report outputs that are not finite at x: they have no derivative to compare."""
    bad = np.flatnonzero(~np.isfinite(here))
    if not len(bad):
        return []
    k = int(bad[0])
    evidence = f"{len(bad)} of {len(here)} output entries are not finite; this one is {here[k]} at the inputs given"
    remedy = "move the inputs into the function's domain"
    given = np.flatnonzero(~np.isfinite(f.x))
    if len(given):
        evidence = f"{evidence}, of which {place(f.inputs, int(given[0]))} is {f.x[given[0]]}"
        remedy = "pass finite inputs"
    return [Finding("non_finite", evidence, place(f.outputs, k), remedy)]


def allow_undefined(leg: Leg, here: Array) -> Leg:
    """Take NaN for an answer where it comes of 0 * inf: a value or a derivative by the same input is not finite.

    Without the value there is nothing to say; where the derivative is infinite the function has none.
    """
    undefined = np.isnan(leg.analytical) & (leg.status == Status.MISMATCH)
    if not undefined.any():
        return leg
    vertical = (np.isinf(leg.analytical) & (leg.status != Status.MISMATCH)).any(axis=0)
    if not np.isfinite(here).all():
        return leg.with_status(Status.INCONCLUSIVE, undefined)
    return leg.with_status(Status.NONDIFFERENTIABLE, undefined & vertical)


def allow_jitter(leg: Leg | SparseLeg, jitter: float) -> Leg | SparseLeg:
    """Take back mismatches that may be due to a backward pass that differs from call to call by ``jitter``."""
    if not jitter or leg.verdict is not Verdict.MISMATCH:
        return leg
    if isinstance(leg, SparseLeg):
        return leg.without_mismatch()
    return leg.with_status(Status.INCONCLUSIVE, leg.mismatches_within(10 * jitter * leg.largest_of_row))

"""What wrong entries of one block of the Jacobian have in common: each symptom is tested, and counts if it explains all.

A symptom turns the true block into the wrong one. It is believed if what it makes of the numerical side agrees with
the analytical side in every entry that is known, right or wrong, so that nothing is read into chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from multigrad._diagnosis.misplaced import permuted, place_in_common, transposed
from multigrad._diagnosis.wrong_block import CLOSE, Linear, WrongBlock

# A factor of these says something even where there is but one entry.
TELLING = (-1.0, 2.0, -2.0, 0.5, -0.5)
# Of the largest entry: what an error of approximation is, and hardly one of a rule.
SLIGHT = 1e-5


def explain(block: WrongBlock) -> str:
    """Name the first pattern that explains the block; empty if none does."""
    with np.errstate(all="ignore"):
        for pattern in (
            _nan,
            _zero,
            _approximate,
            _conjugate,
            _factor,
            transposed,
            _cotangent_unused,
            _offset,
            _identity,
            _scaled,
            permuted,
            place_in_common,
        ):
            found = pattern(block)
            if found:
                return found
    return ""


def _nan(block: WrongBlock) -> str:
    broken = ~np.isfinite(block.claimed) & block.wrong
    if not broken.any() or (block.wrong & ~broken).any():
        return ""
    kinds = "NaN" if np.isnan(block.claimed[broken]).all() else "not finite"
    return (
        f"{block.count} {kinds}, where the function is finite and has a finite derivative: 0 * inf or 0 / 0 in the "
        "derivative, as in the branch of a where() that is not taken"
    )


def _zero(block: WrongBlock) -> str:
    if block.claimed[block.wrong].any() or not np.isfinite(block.claimed).all():
        return ""
    if not block.claimed.any():
        return f"no gradient of {block.output.path} reaches {block.input.path}: all is zero, as where a path is detached or None is returned"
    for axis, leaf, others in ((1, block.output, "row"), (0, block.input, "column")):
        dead = block.wrong.any(axis) & ~block.claimed.any(axis)
        if (block.wrong.any(axis) == dead).all():
            places = [leaf.place(leaf.start + int(k)) for k in np.flatnonzero(dead)]
            return f"the {others}{'s' if len(places) > 1 else ''} of {_few(places)} {'are' if len(places) > 1 else 'is'} zero"
    return f"{block.count} zero: terms are left out"


def _factor(block: WrongBlock) -> str:
    ratio = block.claimed[block.wrong] / block.true[block.wrong]
    c = float(np.median(ratio))
    certain = np.abs(block.true[block.wrong]) > 1e6 * block.bar[block.wrong]
    steady = block.wrong_are(np.full(ratio.shape, c))
    telling = [t for t in TELLING if abs(c - t) <= CLOSE * abs(t)]
    if not steady or not certain.any() or not np.isfinite(c) or c == 0 or not (len(ratio) > 1 or telling):
        return ""
    c = telling[0] if telling else c
    everywhere = block.is_made_by(lambda true: c * true)
    subject = "every entry is" if everywhere else block.count
    return f"{subject} {_times(c, block)}"


def _times(c: float, block: WrongBlock) -> str:
    if c == -1:
        return "minus the derivative: the sign is wrong"
    if c == 2:
        return "2 times the derivative: accumulated twice, or a factor 1/2 is missing"
    if c == 0.5:
        return "1/2 times the derivative: one of two equal paths is detached, or a factor 2 is missing"
    for leaf in (block.input, block.output):
        for size in sorted({int(np.prod(leaf.shape, dtype=int)), *leaf.shape}, reverse=True):
            if size > 2 and abs(c * size - 1) <= CLOSE:
                return f"1/{size} times the derivative, {size} being a size of {leaf.path}: a mean is taken for a sum"
            if size > 2 and abs(c / size - 1) <= CLOSE:
                return f"{size} times the derivative, that being a size of {leaf.path}: a sum is taken for a mean"
    return f"{c:.7g} times the derivative: a constant factor"


def _conjugate(block: WrongBlock) -> str:
    opposite = block.is_made_by(np.negative)
    return next((text for text, change in _conjugates(block) if not opposite and block.is_made_by(change)), "")


def _approximate(block: WrongBlock) -> str:
    """Errors so small that a rule which is wrong would not make them; many patterns explain those."""
    error = np.abs(block.claimed - block.true)[block.wrong]
    size = float(np.max(np.abs(block.true), initial=0.0, where=block.known))
    if not 0 < error.max() <= SLIGHT * size:
        return ""
    return (
        f"no error is larger than {error.max() / size:.1g} of the largest entry: the derivative is approximate rather "
        "than another one, as where it comes out of an iteration that ends at a tolerance (a solver, an adjoint "
        "equation, a series) or has a rounded constant; tighten that tolerance, or accept it with "
        f"atol={2 * error.max():.0e}"
    )


def _conjugates(block: WrongBlock) -> Iterator[tuple[str, Linear]]:
    rows = np.tile([1.0, -1.0], block.true.shape[0] // 2)[:, None] if block.output.complex else np.ones((1, 1))
    columns = np.tile([1.0, -1.0], block.true.shape[1] // 2) if block.input.complex else np.ones(1)
    if block.output.complex and block.input.complex:
        yield "the derivative is conjugated: a conj() is missing or one too many", lambda true: rows * true * columns
    if block.input.complex:
        yield (
            f"the gradient of {block.input.path} is conjugated: a conj() is missing or one too many",
            lambda true: true * columns,
        )
    if block.output.complex:
        yield (
            f"the cotangent of {block.output.path} is conjugated: a conj() is missing or one too many",
            lambda true: rows * true,
        )


def _cotangent_unused(block: WrongBlock) -> str:
    r = len(block.true)
    if r > 1 and block.is_made_by(lambda true: np.broadcast_to(true.sum(axis=0), true.shape)):
        return f"every row is the sum of all {r} rows: the gradient is not multiplied by the cotangent"
    return ""


def _offset(block: WrongBlock) -> str:
    difference = (block.claimed - block.true)[block.known]
    if len(difference) < 2 or not block.wrong[block.known].all():
        return ""
    c = float(np.median(difference))
    if (np.abs(difference - c) <= CLOSE * abs(c) + 4 * block.bar[block.known]).all():
        return f"{c:.6g} is added to every entry"
    return ""


def _identity(block: WrongBlock) -> str:
    r, c = block.true.shape
    flat = (np.abs(block.true) <= block.bar)[block.known].all()
    if r == c and flat and np.array_equal(block.claimed, np.eye(r)):
        return f"{block.output.path} is constant around the point, and the derivative claimed is the identity: a straight-through rule"
    return ""


def _scaled(block: WrongBlock) -> str:
    if block.wrong.sum() < 3:
        return ""
    where = np.nonzero(block.wrong)
    for leaf, values in ((block.input, block.x[where[1]]), (block.output, block.y[where[0]])):
        if np.unique(values).size < 3:
            continue
        for power, name in ((1, "times"), (-1, "divided by"), (2, "times the square of")):
            if block.wrong_are(values**power):
                return f"{block.count} the derivative {name} the value of {leaf.path}"
    return ""


def _few(places: list[str], most: int = 4) -> str:
    return ", ".join(places[:most]) + (f", ... ({len(places)} in all)" if len(places) > most else "")

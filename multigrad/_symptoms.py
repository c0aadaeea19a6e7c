"""What wrong entries of one block of the Jacobian have in common: each symptom is tested, and counts if it explains all.

A symptom turns the true block into the wrong one. It is believed if what it makes of the numerical side agrees with
the analytical side in every entry that is known, right or wrong, so that nothing is read into chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from multigrad.backends import Array, Leaf

Mask = npt.NDArray[np.bool_]
Linear = Callable[[Array], Array]

# The two sides agree to this, once the pattern is applied.
CLOSE = 1e-6
# A factor of these says something even where there is but one entry.
TELLING = (-1.0, 2.0, -2.0, 0.5, -0.5)
# Of the largest entry: what an error of approximation is, and hardly one of a rule.
SLIGHT = 1e-5
WIDEST = 128  # columns or rows that are compared in pairs


@dataclass(frozen=True)
class Block:
    """The part of a leg that belongs to one output and one input, shape (r, c).

    Attributes:
        output: the output leaf.
        input: the input leaf.
        claimed: the analytical side.
        true: the numerical side.
        bar: the bound on its error.
        wrong: the entries that are a mismatch.
        x: the values of the input, (c,).
        y: those of the output, (r,).
    """

    output: Leaf
    input: Leaf
    claimed: Array
    true: Array
    bar: Array
    wrong: Mask
    x: Array
    y: Array

    @property
    def known(self) -> Mask:
        """Entries whose true value is told from zero, or told to be small."""
        return np.isfinite(self.bar) & np.isfinite(self.claimed)

    def is_made_by(self, change: Linear) -> bool:
        """Whether the claimed entries are what ``change`` makes of the true ones. Its bars are those of a sum."""
        unknown = change(np.where(self.known, 0.0, 1.0)) != 0
        made, bar = change(np.where(self.known, self.true, 0.0)), np.abs(change(np.where(self.known, self.bar, 0.0)))
        size = np.maximum(np.abs(made), np.abs(self.claimed))
        floor = 1e-9 * np.max(size, initial=0.0, where=np.isfinite(size))
        agree = np.abs(made - self.claimed) <= CLOSE * size + 4 * bar + floor
        return bool(np.where(unknown | ~self.known, ~self.wrong, agree).all())

    @property
    def count(self) -> str:
        """The wrong entries and a verb, in words."""
        return f"all {self.wrong.sum()} wrong entries are" if self.wrong.sum() > 1 else "the wrong entry is"


def explain(block: Block) -> str:
    """Name the first pattern that explains the block; empty if none does."""
    with np.errstate(all="ignore"):
        for pattern in (
            _nan,
            _zero,
            _approximate,
            _conjugate,
            _factor,
            _layout,
            _cotangent_unused,
            _offset,
            _identity,
            _scaled,
            _permuted,
            _place,
        ):
            found = pattern(block)
            if found:
                return found
    return ""


def _nan(block: Block) -> str:
    broken = ~np.isfinite(block.claimed) & block.wrong
    if not broken.any() or (block.wrong & ~broken).any():
        return ""
    kinds = "NaN" if np.isnan(block.claimed[broken]).all() else "not finite"
    return (
        f"{block.count} {kinds}, where the function is finite and has a finite derivative: 0 * inf or 0 / 0 in the "
        "derivative, as in the branch of a where() that is not taken"
    )


def _zero(block: Block) -> str:
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


def _factor(block: Block) -> str:
    ratio = block.claimed[block.wrong] / block.true[block.wrong]
    c = float(np.median(ratio))
    certain = np.abs(block.true[block.wrong]) > 1e6 * block.bar[block.wrong]
    steady = (
        np.abs(ratio - c) <= CLOSE * abs(c) + 4 * np.abs(c * block.bar[block.wrong] / block.true[block.wrong])
    ).all()
    telling = [t for t in TELLING if abs(c - t) <= CLOSE * abs(t)]
    if not steady or not certain.any() or not np.isfinite(c) or c == 0 or not (len(ratio) > 1 or telling):
        return ""
    c = telling[0] if telling else c
    everywhere = block.is_made_by(lambda true: c * true)
    subject = "every entry is" if everywhere else block.count
    return f"{subject} {_times(c, block)}"


def _times(c: float, block: Block) -> str:
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


def _conjugate(block: Block) -> str:
    opposite = block.is_made_by(np.negative)
    return next((text for text, change in _conjugates(block) if not opposite and block.is_made_by(change)), "")


def _approximate(block: Block) -> str:
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


def _layout(block: Block) -> str:
    """The same numbers in other places."""
    r, c = block.true.shape
    for text, change in _transposes(block):
        if block.is_made_by(change):
            return text
    if r == c and r > 1 and block.is_made_by(np.transpose):
        return "the block is the transpose of the derivative"
    return ""


def _conjugates(block: Block) -> Iterator[tuple[str, Linear]]:
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


def _transposes(block: Block) -> Iterator[tuple[str, Linear]]:
    for axis, leaf, name in ((1, block.input, "the gradient"), (0, block.output, "the cotangent")):
        if len(leaf.shape) == 2 and min(leaf.shape) > 1 and not leaf.complex:
            order = np.arange(leaf.size).reshape(leaf.shape).T.ravel()
            yield (
                f"{name} of {leaf.path}, shape {leaf.shape}, is transposed",
                partial(np.take, indices=order, axis=axis),
            )


def _cotangent_unused(block: Block) -> str:
    r = len(block.true)
    if r > 1 and block.is_made_by(lambda true: np.broadcast_to(true.sum(axis=0), true.shape)):
        return f"every row is the sum of all {r} rows: the gradient is not multiplied by the cotangent"
    return ""


def _offset(block: Block) -> str:
    difference = (block.claimed - block.true)[block.known]
    if len(difference) < 2 or not block.wrong[block.known].all():
        return ""
    c = float(np.median(difference))
    if (np.abs(difference - c) <= CLOSE * abs(c) + 4 * block.bar[block.known]).all():
        return f"{c:.6g} is added to every entry"
    return ""


def _identity(block: Block) -> str:
    r, c = block.true.shape
    flat = (np.abs(block.true) <= block.bar)[block.known].all()
    if r == c and flat and np.array_equal(block.claimed, np.eye(r)):
        return f"{block.output.path} is constant around the point, and the derivative claimed is the identity: a straight-through rule"
    return ""


def _scaled(block: Block) -> str:
    if block.wrong.sum() < 3:
        return ""
    where = np.nonzero(block.wrong)
    ratio = block.claimed[where] / block.true[where]
    slack = CLOSE * np.abs(ratio) + 4 * np.abs(ratio * block.bar[where] / block.true[where])
    for leaf, values in ((block.input, block.x[where[1]]), (block.output, block.y[where[0]])):
        if np.unique(values).size < 3:
            continue
        for power, name in ((1, "times"), (-1, "divided by"), (2, "times the square of")):
            if (np.abs(ratio - values**power) <= slack).all():
                return f"{block.count} the derivative {name} the value of {leaf.path}"
    return ""


def _permuted(block: Block) -> str:
    for axis, leaf, name in ((1, block.input, "columns"), (0, block.output, "rows")):
        claimed, true = np.moveaxis(block.claimed, axis, 0), np.moveaxis(block.true, axis, 0)
        if not 1 < len(true) <= WIDEST or not block.known.all():
            continue
        order = _order(claimed, true, np.moveaxis(block.bar, axis, 0))
        if order is not None and (order != np.arange(len(order))).any():
            return f"the {name} of {leaf.path} are permuted: {_named(order)}"
    return ""


def _order(claimed: Array, true: Array, bar: Array) -> npt.NDArray[np.intp] | None:
    """Which of the true slices each claimed one is; None unless that is one to one and no two are alike."""
    size = np.max(np.abs(true), initial=0.0)
    gap = np.abs(claimed[:, None] - true[None])
    alike = (gap <= CLOSE * np.abs(true)[None] + 4 * bar[None] + 1e-9 * size).all(axis=2)
    if (alike.sum(axis=0) != 1).any() or (alike.sum(axis=1) != 1).any():
        return None
    return np.asarray(alike.argmax(axis=1))


def _named(order: npt.NDArray[np.intp]) -> str:
    k = len(order)
    if (order == np.arange(k)[::-1]).all():
        return "in reverse order"
    shift = int(order[0])
    if (order == (np.arange(k) + shift) % k).all():
        return f"shifted by {shift if shift <= k // 2 else shift - k}"
    moved = np.flatnonzero(order != np.arange(k))
    return f"{moved[0]} and {moved[1]} are exchanged" if len(moved) == 2 else f"{len(moved)} are in other places"


def _place(block: Block) -> str:
    r, c = block.true.shape
    rows, columns = np.nonzero(block.wrong)
    if len(rows) < 2:
        return ""
    diagonal = np.eye(r, c, dtype=bool)
    other = (np.abs(block.true) > block.bar) & ~diagonal
    if r == c and (rows == columns).all() and len(rows) == r and other.any():
        return "only the diagonal is wrong, all of it; the rest is right"
    if r == c and not (rows == columns).any() and block.wrong[other].all() and (block.true[diagonal] != 0).any():
        return "only entries off the diagonal are wrong, all of them; the diagonal is right"
    for values, leaf, size in ((rows, block.output, r), (columns, block.input, c)):
        if size > 1 and (values == values[0]).all():
            return f"{block.count} of {leaf.place(leaf.start + int(values[0]))}"
    return ""


def _few(places: list[str], most: int = 4) -> str:
    return ", ".join(places[:most]) + (f", ... ({len(places)} in all)" if len(places) > most else "")

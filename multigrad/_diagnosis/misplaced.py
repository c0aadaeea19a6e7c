"""Wrong entries that are right ones in another place, or that stand in one place of their block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from multigrad._diagnosis.wrong_block import CLOSE, Linear, WrongBlock
from multigrad.backends import Array

WIDEST = 128  # columns or rows that are compared in pairs


def transposed(block: WrongBlock) -> str:
    """Say so if the block, or the leaf on one side of it, is transposed; empty if not."""
    r, c = block.true.shape
    for text, change in _transposes(block):
        if block.is_made_by(change):
            return text
    if r == c and r > 1 and block.is_made_by(np.transpose):
        return "the block is the transpose of the derivative"
    return ""


def _transposes(block: WrongBlock) -> Iterator[tuple[str, Linear]]:
    for axis, leaf, name in ((1, block.input, "the gradient"), (0, block.output, "the cotangent")):
        if len(leaf.shape) == 2 and min(leaf.shape) > 1 and not leaf.complex:
            order = np.arange(leaf.size).reshape(leaf.shape).T.ravel()
            yield (
                f"{name} of {leaf.path}, shape {leaf.shape}, is transposed",
                partial(np.take, indices=order, axis=axis),
            )


def permuted(block: WrongBlock) -> str:
    """Name the permutation of rows or columns that makes the block of the true one; empty if none does."""
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


def place_in_common(block: WrongBlock) -> str:
    """Name the place in the block that all wrong entries share; empty if none."""
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

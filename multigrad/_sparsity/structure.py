"""Structure: which outputs of f depend on which inputs, found from f itself.

Batched code has a block-diagonal Jacobian, elementwise code a diagonal one, convolutions a banded one. Where few
entries of a row are not zero, columns that share no row are differenced together.

The pattern must not come from the derivative under test, which may lack entries. It is found by group tests: a set of
inputs is moved, and no output that stays as it was depends on any of them. The sets are the slices of the input
arrays, and for long axes the positions with one digit in common, so that a few dozen evaluations tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from multigrad._differences.directions import Directions, Index, Mask, weights_of
from multigrad._sparsity.colouring import colours
from multigrad._sparsity.sparse import Pattern, Sparse
from multigrad.backends import Array, Leaf
from multigrad.batches import Batched

# Fewer inputs are done one by one: the tests would cost as much.
INPUTS_FROM = 24
# An axis up to this length is tested slice by slice, a longer one digit by digit of its positions in this base.
SLICES, BASE = 16, 8
# How far inputs are moved: as far as by the largest step of the short ladder.
STEP = 2.0**-7
# Values that differ by fewer ulp are taken for the same; no difference quotient could tell them apart either.
ULP = 4
# If so few inputs change more than this fraction of the outputs, most depend on most.
SAMPLE, DENSE = 3, 0.8
# Places of a pattern; beyond, the function is taken for dense.
PLACES = 2**22


@dataclass(frozen=True)
class _Digit:
    """One digit of the position along one axis of a leaf; each of its values is the set of one test.

    Attributes:
        leaf: the input leaf.
        axis: the axis.
        codes: the digit at each position of the axis, shape (length,).
        count: how many values it has.
    """

    leaf: Leaf
    axis: int
    codes: Index
    count: int

    def columns(self, value: int) -> Index:
        """The inputs in the set of ``value``."""
        grid = np.arange(self.leaf.start, self.leaf.slice.stop).reshape(_axes(self.leaf))
        return np.asarray(grid.compress(self.codes == value, axis=self.axis).ravel())


@dataclass(frozen=True)
class Structure:
    """Columns of the Jacobian grouped such that every output depends on one column of a group at most.

    Attributes:
        pattern: where the Jacobian may differ from zero.
        directions: one for each group.
    """

    pattern: Pattern
    directions: Directions

    def times(self, J: Sparse) -> Array:
        """The products of the rows of a Jacobian with the directions, shape (C, m)."""
        d, places = self.directions, J.pattern
        weight, group = np.empty(d.n), np.empty(d.n, np.intp)
        weight[d.columns], group[d.columns] = d.weights, d.rows
        out = np.zeros((len(d), places.shape[0]))
        out[group[places.columns], places.rows] = J.values * weight[places.columns]
        return out


def find_structure(f: Batched, x: Array, inputs: Sequence[Leaf], rng: np.random.Generator) -> Structure | None:
    """Group the inputs of f around ``x``, shape (n,); None where that would not save half the directions."""
    n = x.size
    found = find_pattern(f, x, inputs, rng)
    if found is None:
        return None
    pattern, ambiguous = found
    groups = group_columns(pattern, x, inputs)
    if ambiguous:
        pattern = prune(f, x, pattern, groups, rng)
        groups = group_columns(pattern, x, inputs)
    return None if groups.max() + 1 > n / 2 else structure(pattern, x, groups, rng)


def structure(pattern: Pattern, x: Array, groups: Index, rng: np.random.Generator) -> Structure:
    """Make one direction of each group; ``groups`` has the group of each column, shape (n,)."""
    columns = np.argsort(groups, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups))])
    position = np.empty_like(columns)
    position[columns] = np.arange(len(columns))
    owners = np.full((len(starts) - 1, pattern.shape[0]), -1)
    owners[groups[pattern.columns], pattern.rows] = position[pattern.columns]
    weights = weights_of(x, rng) * rng.choice([-1.0, 1.0], x.size)
    return Structure(pattern, Directions(x.size, starts, columns, weights[columns], owners))


def group_columns(pattern: Pattern, x: Array, inputs: Sequence[Leaf]) -> Index:
    """The group of each column, shape (n,). Leaves are apart, and so are inputs that cannot be moved."""
    groups, count = np.zeros(x.size, np.intp), 0
    colour = colours(pattern)
    for leaf in inputs:
        part = np.where(np.isfinite(x[leaf.slice]), colour[leaf.slice], colour.max() + 1 + np.arange(leaf.size))
        used, group = np.unique(part, return_inverse=True)
        groups[leaf.slice] = group + count
        count += len(used)
    return groups


def find_pattern(f: Batched, x: Array, inputs: Sequence[Leaf], rng: np.random.Generator) -> tuple[Pattern, bool] | None:
    """Find out which outputs change with which inputs; None where most depend on most.

    The pattern may have places too many, but none too few: an output is independent of an input if it keeps its value,
    to the last bits, in a test that moves the input up and in one that moves it down. The flag says whether it is
    likely to have too many.
    """
    moved = _moves(x, rng)
    sample = rng.choice(x.size, min(SAMPLE, x.size), replace=False)
    digits = [digit for leaf in inputs for digit in _digits(leaf)]
    sets = [sample, *(digit.columns(value) for digit in digits for value in range(digit.count))]
    first = _sets_at_once(f, x)
    seen = _changed(f, x, moved, sets[:first])
    if seen[0].mean() > DENSE:
        return None
    told = np.concatenate([seen[1:], _changed(f, x, moved, sets[first:])])
    changed = iter(np.split(told, np.cumsum([digit.count for digit in digits])[:-1]))
    parts = [_candidates(leaf, [(d, next(changed)) for d in digits if d.leaf is leaf]) for leaf in inputs]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    rows, columns = (np.concatenate([part[k] for part in found]) for k in (0, 1))
    return Pattern((f.width, x.size), rows, columns), any(part[2] for part in found)


def prune(f: Batched, x: Array, pattern: Pattern, colour: Index, rng: np.random.Generator) -> Pattern:
    """Take out the places at which f does not change when the columns of one colour are moved."""
    moved = _moves(x, rng)
    sets = [np.flatnonzero(colour == c) for c in range(int(colour.max()) + 1)]
    changed = _changed(f, x, moved, sets)
    return pattern.only(np.flatnonzero(changed[colour[pattern.columns], pattern.rows]))


def _moves(x: Array, rng: np.random.Generator) -> Array:
    """How far each input is moved, shape (n,)."""
    moved = STEP * rng.choice([-1.0, 1.0], x.size) * weights_of(x, rng)
    return np.asarray(np.where(np.isfinite(x), moved, 0.0))


def _axes(leaf: Leaf) -> tuple[int, ...]:
    return (*leaf.shape, 2) if leaf.complex else leaf.shape or (1,)


def _digits(leaf: Leaf) -> Iterator[_Digit]:
    shape = _axes(leaf)
    for axis, length in enumerate(shape):
        if length == 1 and max(shape) > 1 or leaf.size == 0:
            continue
        position = np.arange(length)
        if length <= SLICES:
            yield _Digit(leaf, axis, position, length)
            continue
        while length > 1:
            yield _Digit(leaf, axis, position % BASE, min(BASE, length))
            position, length = position // BASE, -(-length // BASE)


def _changed(f: Batched, x: Array, moved: Array, sets: Sequence[Index]) -> Mask:
    """Whether each output changes when the inputs of a set are moved up or down, shape (tests, m)."""
    changed = np.empty((len(sets), f.width), np.bool_)
    size = _sets_at_once(f, x)
    for start in range(0, len(sets), size):
        some = sets[start : start + size]
        X = np.tile(x, (2 * len(some) + 1, 1))
        for k, columns in enumerate(some):
            X[2 * k + 1, columns] += moved[columns]
            X[2 * k + 2, columns] -= moved[columns]
        values = f(X)
        changed[start : start + size] = _differ(values[1:], values[0]).reshape(len(some), 2, -1).any(axis=1)
    return changed


def _sets_at_once(f: Batched, x: Array) -> int:
    return max(1, f.rows_at_once(x.size) // 2)


def _differ(values: Array, base: Array) -> Mask:
    with np.errstate(all="ignore"):
        ulp = ULP * 2.0**-52 * np.maximum(np.abs(values), np.abs(base))
        same = (np.abs(values - base) <= ulp) | (values == base) | (np.isnan(values) & np.isnan(base))
    return np.asarray(~same)


def _candidates(leaf: Leaf, digits: list[tuple[_Digit, Mask]]) -> tuple[Index, Index, bool] | None:
    """The places (rows, columns) of a leaf that the tests leave possible; None if they are too many.

    The flag says whether they may be too many because the digits of a long axis were combined.
    """
    shape = _axes(leaf)
    touched = np.logical_and.reduce([changed.any(axis=0) for _, changed in digits])
    kept = np.flatnonzero(touched)
    counts = np.prod([changed[:, kept].sum(axis=0, dtype=float) for _, changed in digits], axis=0)
    if counts.sum() > PLACES:
        return None
    rows, columns = kept, np.zeros(len(kept), np.intp)
    for axis, length in enumerate(shape):
        along = np.zeros_like(columns)
        step = 1
        for digit, changed in digits:
            if digit.axis == axis:
                rows, columns, along, value = _extended(rows, columns, along, changed)
                along = along + step * value
                step *= BASE
        inside = along < length
        rows, columns = rows[inside], columns[inside] * length + along[inside]
    return rows, columns + leaf.start, any(_is_combined(shape[axis], digits, axis) for axis in range(len(shape)))


def _is_combined(length: int, digits: list[tuple[_Digit, Mask]], axis: int) -> bool:
    """Whether some row has several values, but not all, in several digits of a long axis."""
    if length <= SLICES:
        return False
    counts = np.stack([changed.sum(axis=0) for digit, changed in digits if digit.axis == axis])
    several = (counts > 1).sum(axis=0)
    return bool(((several > 1) & (counts.prod(axis=0) < length)).any())


def _extended(rows: Index, columns: Index, along: Index, changed: Mask) -> tuple[Index, Index, Index, Index]:
    """Split every place by one more digit, into the values that are possible for its row."""
    row, value = np.nonzero(changed.T)
    count = np.bincount(row, minlength=changed.shape[1])
    begin, repeats = (np.cumsum(count) - count)[rows], count[rows]
    index = np.repeat(begin - (np.cumsum(repeats) - repeats), repeats) + np.arange(repeats.sum())
    return np.repeat(rows, repeats), np.repeat(columns, repeats), np.repeat(along, repeats), value[index]

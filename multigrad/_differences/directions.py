"""Directions: the vectors in R^n along which f is perturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from multigrad.backends import Array, Leaf

Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

# Weights are multiples of this fraction of the scale: then x + h * weight is exact for all steps of a short ladder.
QUANTUM = 2.0**-38
# The largest power of two is that of this.
LAST = 1023
# Inputs smaller than this have a magnitude of their own, below the steps of the ordinary ladders.
TINY = 2.0**-16


@dataclass(frozen=True)
class Directions:
    """C vectors in R^n, row by row as (columns, weights): unit vectors, groups of columns and full vectors alike.

    Attributes:
        n: the dimension.
        starts: where each direction begins in ``columns``, shape (C + 1,).
        columns: the inputs that a direction touches, in one array.
        weights: by how much it moves them, in one array. They carry the scale of the inputs, so that a step along
            any direction is a pure number.
        owners: for groups of columns of which each output depends on one at most, shape (C, m): that column, as a
            position in ``columns``; -1 if the output depends on none of the group. None if directions are of one
            column, or full.
    """

    n: int
    starts: Index
    columns: Index
    weights: Array
    owners: Index | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, chosen: Index | slice) -> Directions:
        """Return some of the directions."""
        if isinstance(chosen, slice):
            if chosen == slice(0, len(self)):
                return self
            chosen = np.arange(*chosen.indices(len(self)))
        counts = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(counts)])
        shift = self.starts[chosen] - starts[:-1]
        places = np.repeat(shift, counts) + np.arange(starts[-1])
        owners = self.owners
        if owners is not None:
            owners = np.where(owners[chosen] < 0, -1, owners[chosen] - shift[:, None])
        return Directions(self.n, starts, self.columns[places], self.weights[places], owners)

    @cached_property
    def rows(self) -> Index:
        """The direction that each of ``columns`` belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def weight(self, column: int) -> float:
        """The weight of one input, where it is in one direction only."""
        return float(self.weights[self.columns == column][0])

    def dense(self) -> Array:
        """The vectors as a matrix, shape (C, n)."""
        out = np.zeros((len(self), self.n))
        out[self.rows, self.columns] = self.weights
        return out

    def sums(self, values: Array) -> Array:
        """Add up ``values``, shape (..., len(columns)), direction by direction: shape (..., C)."""
        if len(self.columns) == len(self):
            return values
        return np.add.reduceat(values, self.starts[:-1], axis=-1)

    def each(self, values: Array) -> Array:
        """Spread ``values``, shape (..., len(columns)), over the entries they concern: shape (..., C, 1 or m).

        An entry of a group concerns its owner; without one, the first column stands for all.
        """
        if self.owners is None:
            return values[..., None]
        return np.take(values, self._concerned, axis=-1)

    @cached_property
    def _concerned(self) -> Index:
        assert self.owners is not None
        return np.where(self.owners < 0, self.starts[:-1, None], self.owners)

    def times(self, J: Array) -> Array:
        """The products of the rows of a Jacobian (m, n) with the directions, shape (C, m)."""
        with np.errstate(over="ignore", invalid="ignore"):  # derivatives near the end of the range
            return np.ascontiguousarray(self.sums(J[:, self.columns] * self.weights).T)

    def most(self, values: Array) -> Array:
        """The largest of ``values``, shape (n,), that an entry may depend on by: shape (C, 1 or m)."""
        if self.owners is None:
            return np.asarray(np.maximum.reduceat(values[self.columns], self.starts[:-1])[:, None])
        return self.each(values[self.columns])

    @cached_property
    def lengths(self) -> Array:
        """How far a unit step along a direction moves what an entry depends on, shape (C, 1 or m)."""
        if self.owners is None:
            # Weights near 1e200 have no squares.
            largest = np.maximum.reduceat(np.abs(self.weights), self.starts[:-1])
            return np.asarray(largest * np.sqrt(self.sums((self.weights / largest[self.rows]) ** 2)))[:, None]
        return self.each(np.abs(self.weights))


def scale_of(x: Array) -> Array:
    """The length that counts as one step for each input: abs(x) rounded up to a power of two, and at least 1."""
    magnitude = np.maximum(np.abs(np.where(np.isfinite(x), x, 1.0)), 1.0)
    return np.exp2(np.minimum(np.ceil(np.log2(magnitude)), LAST))


def share_of(x: Array, leaves: Sequence[Leaf] = ()) -> Array:
    """The part of its scale that each input is itself, if it is tiny; 1 for all others.

    In a leaf whose inputs are all tiny, as positions of atoms in metres are, one that is 0 is of the unit of the others.
    Without ``leaves`` all inputs are one.
    """
    magnitude = np.abs(x)
    for part in [leaf.slice for leaf in leaves] or [slice(None)]:
        largest = magnitude[part].max(initial=0.0)
        if largest < TINY:
            magnitude[part] = np.where(magnitude[part] > 0, magnitude[part], largest)
    return np.where((magnitude > 0) & (magnitude < TINY), magnitude, 1.0)


def weights_of(x: Array, rng: np.random.Generator) -> Array:
    """Weights of one column each: the input's scale times a random factor of 0.7 to 1.

    The factor has a full mantissa: steps that are powers of two alias with periodic functions (every difference
    of sin(2**20 * 2 * pi * x) at x = 0 would be 0).
    """
    return np.asarray(scale_of(x) * (np.round(rng.uniform(0.7, 1.0, x.size) / QUANTUM) * QUANTUM))


def unit_vectors(x: Array, rng: np.random.Generator) -> Directions:
    """One direction per input."""
    n = x.size
    return Directions(n, np.arange(n + 1), np.arange(n), weights_of(x, rng))


def signed(rng: np.random.Generator, low: float, high: float, shape: tuple[int, ...]) -> Array:
    """Draw numbers of a size between ``low`` and ``high`` and of either sign."""
    drawn = rng.uniform(-1.0, 1.0, shape)
    return np.asarray(np.copysign(low, drawn) + (high - low) * drawn)

"""A sparse matrix by its pattern: the Jacobian of a function whose outputs depend on a few inputs each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from multigrad._differences.directions import Index
from multigrad.backends import Array

# The sums of fewer than 2**22 such labels are exact in float64, and so independent of their order.
LABELS = 2**30
# Odd, so that no product with it is 0 modulo 2**64.
MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Pattern:
    """The places of a matrix that may differ from zero, in any order and without repetition.

    Attributes:
        shape: of the matrix, (m, n).
        rows: the row of each place, shape (k,).
        columns: its column, shape (k,).
    """

    shape: tuple[int, int]
    rows: Index
    columns: Index

    @property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix."""
        flipped = Pattern(self.shape[::-1], self.columns, self.rows)
        flipped.__dict__["alike"] = self.alike[::-1]  # what takes longest is known
        return flipped

    @cached_property
    def alike(self) -> tuple[Index, Index]:
        """Numbers of the rows and of the columns, the same for those with the same places: shapes (m,), (n,)."""
        return _alike(self.rows, self.columns, self.shape[0]), _alike(self.columns, self.rows, self.shape[1])

    def only(self, kept: Index) -> Pattern:
        """Return some of the places."""
        return replace(self, rows=self.rows[kept], columns=self.columns[kept])


@lru_cache(4)
def _labels(count: int) -> Array:
    """Two random labels for each of ``count`` lines, shape (2, count)."""
    return np.random.default_rng(0).integers(1, LABELS, (2, count)).astype(float)


def _alike(major: Index, minor: Index, count: int) -> Index:
    labels = _labels(int(minor.max(initial=0)) + 1)
    # Two sums in one key, of which integers are sorted fastest.
    one, other = (np.bincount(major, label[minor], count).astype(np.uint64) for label in labels)
    _, where, number = np.unique(one * MIXER + other, return_index=True, return_inverse=True)
    # By first appearance: neighbours are coloured in turn, which wastes fewest colours on bands.
    return np.asarray(np.argsort(np.argsort(where))[number])


@dataclass(frozen=True)
class Sparse:
    """A matrix given by the values at the places of a pattern; all others are 0."""

    pattern: Pattern
    values: Array

    __array_ufunc__ = None  # so that vector @ matrix comes here

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.pattern.shape

    @property
    def T(self) -> Sparse:
        """The transposed matrix."""
        p = self.pattern
        return Sparse(Pattern(p.shape[::-1], p.columns, p.rows), self.values)

    def __abs__(self) -> Sparse:
        return Sparse(self.pattern, np.abs(self.values))

    def __rmatmul__(self, vector: Array) -> Array:
        p = self.pattern
        return np.asarray(np.bincount(p.columns, vector[p.rows] * self.values, p.shape[1]), float)

    def __getitem__(self, key: tuple[slice, int]) -> Array:
        """A column: ``matrix[:, k]``."""
        chosen = self.pattern.columns == key[1]
        out = np.zeros(self.shape[0])
        out[self.pattern.rows[chosen]] = self.values[chosen]
        return out

    def at(self, i: int, j: int) -> float:
        """One entry."""
        p = self.pattern
        return float(self.values[(p.rows == i) & (p.columns == j)].sum())

    def dense(self) -> Array:
        """The matrix in full."""
        out = np.zeros(self.shape)
        out[self.pattern.rows, self.pattern.columns] = self.values
        return out

"""A sparse matrix by its pattern: the Jacobian of a function whose outputs depend on a few inputs each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from multigrad._directions import Index
from multigrad.backends import Array


@dataclass(frozen=True)
class Pattern:
    """The places of a matrix that may differ from zero, row by row and without repetition.

    Attributes:
        shape: of the matrix, (m, n).
        rows: the row of each place, ascending; shape (k,).
        columns: its column, shape (k,).
    """

    shape: tuple[int, int]
    rows: Index
    columns: Index

    @property
    def fullest(self) -> int:
        """The largest number of places in a row: no grouping of the columns has fewer groups."""
        return int(np.bincount(self.rows, minlength=1).max())

    @property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix."""
        order = np.argsort(self.columns, kind="stable")
        return Pattern(self.shape[::-1], self.columns[order], self.rows[order])

    def only(self, kept: Index) -> Pattern:
        """Return some of the places."""
        return replace(self, rows=self.rows[kept], columns=self.columns[kept])

    def joined(self, rows: Index, columns: Index) -> Pattern:
        """Add places, each of which may be there already."""
        n = self.shape[1]
        places = np.unique(np.concatenate([self.rows * n + self.columns, rows * n + columns]))
        return replace(self, rows=places // n, columns=places % n)


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
        """The transposed matrix; its places are in no order."""
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

"""Entries: the comparison of the two sides, place by place, and what is made of it in terms of the Jacobian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from multigrad._comparison.verdict import Codes, Status
from multigrad._differences.directions import Directions, Index, Mask
from multigrad.backends import Array


@dataclass
class Entries:
    """The comparison along C directions, entry by entry; shapes (C, m).

    Attributes:
        directions: what the comparison is along.
        analytical: J v, from the derivative under test.
        value: the estimate of it.
        bar: the bound on the estimate's error.
        status: what is said of the entry, a ``Status``.
        broken: where f has no derivative.
        smooth: the length of the steps within which f looks smooth, as far as it was looked at.
        unexplored: suspicious directions that were left on the short ladder since so many others are wrong.
    """

    directions: Directions
    analytical: Array
    value: Array
    bar: Array
    status: Codes
    broken: Mask
    smooth: Array
    unexplored: int = 0

    @classmethod
    def blank(cls, directions: Directions, analytical: Array) -> Entries:
        """Nothing has been seen yet: bars are infinite."""
        shape = analytical.shape
        return cls(
            directions,
            analytical,
            value=np.zeros(shape),
            bar=np.full(shape, np.inf),
            status=np.full(shape, Status.INCONCLUSIVE, np.int8),
            broken=np.zeros(shape, np.bool_),
            smooth=np.full(shape, np.inf),
        )

    def record(self, places: Any, value: Array, bar: Array, status: Codes | Status) -> None:
        """Write what was seen to the ``places``, an index of (C, m)."""
        self.value[places], self.bar[places], self.status[places] = value, bar, status

    def record_smoothness(self, places: Any, broken: Mask, smooth: Array) -> None:
        """Write what was seen of kinks to the ``places``, an index of (C, m)."""
        self.broken[places], self.smooth[places] = broken, smooth

    @property
    def shape(self) -> tuple[int, int]:
        """Of the Jacobian: (m, n)."""
        return self.analytical.shape[1], self.directions.n

    @property
    def plain(self) -> bool:
        """Whether nothing is left to look at."""
        return bool(self.status.max(initial=0) <= Status.UNRESOLVED)

    @cached_property
    def holders(self) -> Mask:
        """The places that stand for one entry of the Jacobian, shape (C, m); the others say that a group is 0."""
        owners = self.directions.owners
        return np.ones(self.status.shape, np.bool_) if owners is None else owners >= 0

    def count(self, status: Status) -> int:
        """How many entries of the Jacobian have that status."""
        sizes = np.diff(self.directions.starts)[:, None]
        chosen = np.count_nonzero((self.status == status) & self.holders)
        of_groups = int(np.sum(sizes * ((self.status == status) & ~self.holders)))
        # What is beside an entry in its group was seen not to matter.
        beside = int(np.sum((sizes - 1) * self.holders)) if status is Status.OK else 0
        return int(chosen) + of_groups + beside

    def column(self, c: int, i: int) -> int:
        """The input that the place of direction ``c`` and output ``i`` is about."""
        owners = self.directions.owners
        k = c if owners is None else int(owners[c, i])
        return int(self.directions.columns[k if k >= 0 else self.directions.starts[c]])

    @property
    def numeric(self) -> Array:
        """The estimated Jacobian, shape (m, n)."""
        return self._spread(self.value / self.directions.each(self.directions.weights), np.zeros((1, 1)))

    @property
    def bars(self) -> Array:
        """The bounds on the errors of ``numeric``, shape (m, n)."""
        bar = self.bar / self.directions.lengths
        return self._spread(bar, bar)

    @property
    def statuses(self) -> Codes:
        """The status of each entry of the Jacobian, shape (m, n)."""
        elsewhere = np.where(self.holders, np.int8(Status.OK), self.status)
        return self._spread(self.status, elsewhere).astype(np.int8)

    def claimed(self, columns: Index, rows: Index) -> Array:
        """Entries of the Jacobian under test, shape (len(columns), len(rows))."""
        directions = self.directions
        position = np.argsort(directions.columns)[columns]
        group = directions.rows[position]
        values = self.analytical[np.ix_(group, rows)] / directions.weights[position, None]
        if directions.owners is None:
            return values
        return np.where(directions.owners[np.ix_(group, rows)] == position[:, None], values, 0.0)

    def _spread(self, held: Array | Codes, elsewhere: Array | Codes) -> Array:
        directions = self.directions
        if directions.owners is None:
            return np.asarray(held.T)
        out = np.empty(self.shape[::-1])
        group: Index = directions.rows
        mine = directions.owners[group] == np.arange(len(group))[:, None]
        out[directions.columns] = np.where(mine, held[group], np.broadcast_to(elsewhere, held.shape)[group])
        return out.T

"""The comparison of a sparse Jacobian: kept as it was made, group by group, and spread out on request."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from multigrad._comparison.entries import Entries
from multigrad._comparison.verdict import Codes, Rules, Status, Verdict, forgive
from multigrad._report.leg import furthest, sharpness_of
from multigrad._sparsity.sparse import Sparse
from multigrad.backends import Array, Leaf

# The largest number of entries of which matrices are made for the report: they take 25 bytes each.
MATRICES = 2**25


@dataclass(frozen=True)
class SparseLeg:
    """One mode compared in full along groups of columns; see ``Leg``, whose matrices it has too.

    Attributes:
        mode: ``reverse`` or ``forward``.
        jacobian: by that mode, shape (m, n).
        entries: the comparison.
    """

    mode: str
    jacobian: Sparse
    entries: Entries

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst entry."""
        return Status(int(self.entries.status.max(initial=0))).verdict

    @property
    def unexplored(self) -> int:
        """How many groups were left half looked at because so many others are wrong."""
        return self.entries.unexplored

    @cached_property
    def analytical(self) -> Array:
        """The Jacobian under test, shape (m, n)."""
        return self.jacobian.dense()

    @cached_property
    def numeric(self) -> Array:
        """The estimates, shape (m, n)."""
        return self.entries.numeric

    @cached_property
    def bar(self) -> Array:
        """Bounds on the errors of the estimates, shape (m, n)."""
        return self.entries.bars

    @cached_property
    def status(self) -> Codes:
        """A ``Status`` for each entry, shape (m, n)."""
        return self.entries.statuses

    @property
    def sharpness(self) -> float:
        """The largest relative error that an entry called ok might still have; one that is 0 has none."""
        e = self.entries
        return sharpness_of(e.analytical, e.value, e.bar, e.status)

    def without_mismatch(self) -> SparseLeg:
        """The same where what was a mismatch cannot be told."""
        return replace(self, entries=replace(self.entries, status=forgive(self.entries.status)))

    def reaches(self, leaf: Leaf) -> bool:
        """Whether some derivative with respect to the leaf is not 0."""
        columns = self.jacobian.pattern.columns[self.jacobian.values != 0]
        return bool(((columns >= leaf.slice.start) & (columns < leaf.slice.stop)).any())

    @property
    def kept(self) -> bool:
        """Whether the matrices are of a size to be made."""
        return self.size <= MATRICES

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.jacobian.shape)

    def count(self, status: Status) -> int:
        """How many entries have that status."""
        return self.entries.count(status)

    def worst(self, rules: Rules) -> Iterator[tuple[int, int, float, float, float, Status]]:
        """The worst entries: row, column, analytical, numeric, bar and status."""
        e = self.entries
        for k in furthest(e.analytical, e.value, e.bar, e.status, rules.rtol, rules.atol * e.directions.lengths):
            c, i = divmod(int(k), e.status.shape[1])
            j = e.column(c, i)
            weight = e.directions.weight(j)
            numeric, bar = float(e.value[c, i]) / weight, float(e.bar[c, i]) / abs(weight)
            yield i, j, self.jacobian.at(i, j), numeric, bar, Status(int(e.status[c, i]))

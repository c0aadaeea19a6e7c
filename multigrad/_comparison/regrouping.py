"""Regrouping: the columns that need another look, in as few groups as they fit into.

A few suspicious entries are scattered over many groups, each of which would have to be evaluated again for one of its
columns. Taken out, these columns share fewer directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from multigrad._comparison.context import Context
from multigrad._comparison.entries import Entries
from multigrad._comparison.verdict import Codes, Status
from multigrad._differences.directions import Directions, Index, Mask
from multigrad._sparsity.colouring import colours
from multigrad._sparsity.sparse import Pattern
from multigrad.backends import Array


@dataclass(frozen=True)
class Regrouping:
    """New groups of some of the columns of old ones.

    Attributes:
        directions: the new groups.
        old: the old group that each place was in, shape (C, m); -1 where a new group has no owner.
    """

    directions: Directions
    old: Index

    def take(self, values: Array | Mask | Codes, elsewhere: float) -> Array:
        """Values of the old places, shape (old C, m), at the new ones, shape (C, m)."""
        at = np.take_along_axis(np.broadcast_to(values, (len(values), self.old.shape[1])), self.old, axis=0)
        return np.where(self.old < 0, np.asarray(elsewhere, values.dtype), at)

    def put(self, new: Array | Mask | Codes, into: Array | Mask | Codes) -> None:
        """Write values of the new places, shape (C, m), to the old ones."""
        c, i = np.nonzero(self.old >= 0)
        into[self.old[c, i], i] = new[c, i]

    def entries(self, found: Entries) -> Entries:
        """The comparison at the new places."""
        return Entries(
            self.directions,
            self.take(found.analytical, 0.0),
            self.take(found.value, 0.0),
            self.take(found.bar, 0.0),
            self.take(found.status, Status.OK).astype(np.int8),
            self.take(found.broken, False).astype(np.bool_),
            self.take(found.smooth, np.inf),
        )

    def write(self, part: Entries, found: Entries) -> None:
        """Write the comparison at the new places to the old ones."""
        self.put(part.value, found.value)
        self.put(part.bar, found.bar)
        self.put(part.status, found.status)
        self.put(part.broken, found.broken)
        self.put(part.smooth, found.smooth)
        found.unexplored = part.unexplored

    def context(self, context: Context) -> Context:
        """What the new places are judged against."""
        return replace(
            context,
            scale=self.take(context.scale, 0.0),
            row=self.take(context.row, 0.0),
            dust=self.take(context.dust, 0.0),
            share=self.take(context.share, 1.0),
        )


def regroup(directions: Directions, places: Mask) -> Regrouping | None:
    """Put the columns that own some of the ``places``, shape (C, m), into groups of their own.

    None where that would not make them fewer.
    """
    owners = directions.owners
    if owners is None:
        return None
    owned = places & (owners >= 0)
    before = np.count_nonzero(owned.any(axis=1))
    if before < 2:
        return None
    positions = np.unique(owners[owned])
    rank = np.full(len(directions.columns) + 1, -1)  # the last is for places without an owner
    rank[positions] = np.arange(len(positions))
    places_of = rank[owners]
    rows, groups = np.nonzero(places_of.T >= 0)
    k = places_of[groups, rows]
    colour = colours(Pattern((owners.shape[1], len(positions)), rows, k))
    if colour.max() + 1 >= before:
        return None
    order = np.argsort(colour, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(colour))])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    new_owners, old = (np.full((len(starts) - 1, owners.shape[1]), -1) for _ in range(2))
    new_owners[colour[k], rows], old[colour[k], rows] = rank[k], groups
    chosen = positions[order]
    return Regrouping(
        Directions(directions.n, starts, directions.columns[chosen], directions.weights[chosen], new_owners), old
    )

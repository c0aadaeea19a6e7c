"""Matching: which leaf of one implementation is which leaf of another.

Trees differ between ports (a tuple here, a dict there, a module's parameters), so leaves are matched by what the user
says, by path, by name, and in the end by their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np

from multigrad._differences.directions import Index
from multigrad.backends import Array, Leaf
from multigrad.errors import InvalidUse

Axes: TypeAlias = tuple[int, ...]

# How a leaf of one backend is declared: the other's path, the order of the axes, or both.
Declared: TypeAlias = str | Axes | tuple[str, Axes]

# What channels-last frameworks do with images and kernels, and back; and with sequences.
_KNOWN: Mapping[int, Sequence[Axes]] = {
    4: [(0, 2, 3, 1), (0, 3, 1, 2), (2, 3, 1, 0), (3, 2, 0, 1), (0, 1, 3, 2), (1, 0, 2, 3), (0, 2, 1, 3)],
    5: [(0, 2, 3, 4, 1), (0, 4, 1, 2, 3), (2, 3, 4, 1, 0), (4, 3, 0, 1, 2)],
}


@dataclass(frozen=True)
class Pair:
    """A leaf of one side and the leaf of the reference that it stands for.

    Attributes:
        reference: the reference's leaf.
        leaf: the side's own.
        axes: the side's is ``np.transpose(reference, axes)``; None if the numbers lie in one and the same order.
    """

    reference: Leaf
    leaf: Leaf
    axes: Axes | None = None

    @property
    def fits(self) -> bool:
        """Whether the reference's shape gives the side's in that order."""
        return self.axes is None or (
            len(self.reference.shape) == len(self.axes)
            and tuple(self.reference.shape[k] for k in self.axes) == self.leaf.shape
        )

    @property
    def jumbled(self) -> bool:
        """Whether the axes lie in different orders though nothing is known of it, so that places say nothing."""
        ours, theirs = (self.leaf.shape, self.reference.shape)
        long = [[n for n in shape if n > 1] for shape in (ours, theirs)]
        return self.axes is None and sorted(ours) == sorted(theirs) and long[0] != long[1]

    @property
    def places(self) -> Index:
        """The side's flat place for each place of the reference's leaf."""
        own = np.arange(self.leaf.start, self.leaf.start + self.leaf.size)
        if self.axes is None:
            return own
        shaped = own.reshape(*self.leaf.shape, -1)
        return shaped.transpose(*np.argsort(self.axes), len(self.axes)).ravel()


@dataclass(frozen=True)
class Layout:
    """What the user says of a backend's leaves: ``mapping[backend]``.

    Attributes:
        paths: the reference's path by the backend's own.
        axes: the order of the axes by the backend's own path.
    """

    paths: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, Axes] = field(default_factory=dict)

    @classmethod
    def of(cls, declared: Mapping[str, Declared]) -> Layout:
        """Read one backend's part of ``mapping=``.

        Raises:
            InvalidUse: ``bad_mapping``.
        """
        paths: dict[str, str] = {}
        axes: dict[str, Axes] = {}
        for own, value in declared.items():
            path, order = _declared(own, value)
            paths[own] = path
            if order is not None:
                axes[own] = order
        return cls(paths, axes)

    def reordered(self, axes: Mapping[str, Axes]) -> Layout:
        """The same with the order of more leaves' axes."""
        return Layout(self.paths, {**self.axes, **axes})

    def with_pairs(self, pairs: Iterable[Pair]) -> Layout:
        """The same with leaves and the order of their axes as in some pairs."""
        paths = {pair.leaf.path: pair.reference.path for pair in pairs if pair.axes is not None}
        axes = {pair.leaf.path: pair.axes for pair in pairs if pair.axes is not None}
        return Layout({**self.paths, **paths}, {**self.axes, **axes})


def _declared(own: str, value: Any) -> tuple[str, Axes | None]:
    match value:
        case str():
            return value, None
        case (str() as path, (tuple() | list()) as order):
            return path, tuple(order)
        case (tuple() | list()) as order if sorted(order) == list(range(len(order))):
            return own, tuple(order)
    raise InvalidUse(
        "bad_mapping",
        f"mapping: {own!r} is mapped to {value!r}; say the other backend's path, the order of the axes "
        "(a permutation, as for transpose), or (path, order)",
    )


def orders(ndim: int) -> list[Axes]:
    """Orders of the axes that are worth trying, the present one left out."""
    every = permutations(range(ndim)) if ndim <= 3 else _KNOWN.get(ndim, ())
    return [tuple(p) for p in every if tuple(p) != tuple(range(ndim))]


def match_outputs(references: Sequence[Leaf], leaves: Sequence[Leaf], layout: Layout) -> list[Pair]:
    """Pair leaves of equal size, the surest pairs first; what finds no partner is left out."""
    fitting = [Pair(r, own, _axes(r, own, layout)) for r in references for own in leaves if _fit(r, own)]
    return _surest(references, leaves, layout, fitting)


def match_inputs(
    references: Sequence[Leaf], x: Array, leaves: Sequence[Leaf], own_x: Array, layout: Layout
) -> list[Pair]:
    """Pair leaves that hold the same numbers, be it in another order of their axes; otherwise as ``match_outputs``."""
    fitting = []
    for reference in references:
        for own in leaves:
            declared = _axes(reference, own, layout) if _fit(reference, own) else None
            fitting += same_numbers(x, reference, own_x, own, [declared] if declared else _orders(own))
    return _surest(references, leaves, layout, fitting)


def same_numbers(x: Array, reference: Leaf, own_x: Array, own: Leaf, orders: Iterable[Axes | None]) -> list[Pair]:
    """The first of the orders in which one leaf holds the numbers of the other, as a list of one pair or of none."""
    if not _fit(reference, own):
        return []
    wanted = x[reference.slice]
    for axes in orders:
        pair = Pair(reference, own, axes)
        if pair.fits and np.array_equal(wanted, own_x[pair.places], equal_nan=True):
            return [pair]
    return []


def twins(chosen: Pair, pairs: Sequence[Pair], x: Array, own_x: Array, layout: Layout) -> list[Pair]:
    """All pairs of a reference's leaf that hold the same numbers and have names as like as the chosen one's, it first."""
    reference, likeness = chosen.reference, _likeness(chosen, layout)[:3]
    leaves = [pair.leaf for pair in pairs if _likeness(Pair(reference, pair.leaf), layout)[:3] == likeness]
    found = [chosen]
    for own in leaves:
        declared = _axes(reference, own, layout) if _fit(reference, own) else None
        for axes in [declared] if declared else _orders(own):
            found += [p for p in same_numbers(x, reference, own_x, own, [axes]) if p != chosen]
    return found


def _orders(leaf: Leaf) -> Iterator[Axes | None]:
    yield None
    yield from orders(len(leaf.shape))


def _fit(reference: Leaf, leaf: Leaf) -> bool:
    return reference.size == leaf.size and reference.complex == leaf.complex


def _surest(references: Sequence[Leaf], leaves: Sequence[Leaf], layout: Layout, fitting: Sequence[Pair]) -> list[Pair]:
    order = {leaf.path: i for i, leaf in enumerate(references)}
    own = {leaf.path: j for j, leaf in enumerate(leaves)}
    ranked = sorted(
        fitting, key=lambda p: (_likeness(p, layout), -abs(order[p.reference.path] - own[p.leaf.path])), reverse=True
    )
    pairs: dict[str, Pair] = {}
    taken: set[str] = set()
    for pair in ranked:
        if pair.reference.path not in pairs and pair.leaf.path not in taken:
            pairs[pair.reference.path] = pair
            taken.add(pair.leaf.path)
    return [pairs[leaf.path] for leaf in references if leaf.path in pairs]


def _likeness(pair: Pair, layout: Layout) -> tuple[bool, bool, int, bool]:
    declared = layout.paths.get(pair.leaf.path)
    return (
        declared == pair.reference.path,
        declared is None and pair.leaf.path == pair.reference.path,
        common_ending(pair.reference.path, pair.leaf.path),
        pair.reference.shape == pair.leaf.shape,
    )


def _axes(reference: Leaf, leaf: Leaf, layout: Layout) -> Axes | None:
    axes = layout.axes.get(leaf.path)
    if layout.paths.get(leaf.path, leaf.path) != reference.path:
        return None  # what is declared is declared of another leaf
    if axes is not None and not Pair(reference, leaf, axes).fits:
        raise InvalidUse(
            "bad_mapping",
            f"mapping: axes {axes} of {reference.path}, shape {reference.shape}, do not give {leaf.path}, "
            f"shape {leaf.shape}",
        )
    return axes


def common_ending(path: str, other: str) -> int:
    """How many names two paths have in common at their ends, the root and whatever stands in quotes taken apart.

    >>> common_ending('params["out_proj.weight"]', 'inputs[0]["out_proj"]["weight"]')
    2
    """
    count = 0
    for a, b in zip(reversed(_names(path)), reversed(_names(other)), strict=False):
        if a != b:
            return count
        count += 1
    return count


def _names(path: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*|\d+", path)[1:]

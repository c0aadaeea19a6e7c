"""Counterparts: the leaves of one side that no leaf of the reference stands beside, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np

from multigrad.backends import Leaf
from multigrad.consistency.layouts import declaration, named
from multigrad.consistency.matching import Axes, Pair, common_ending, orders
from multigrad.consistency.shapes import why_shapes_differ
from multigrad.consistency.sides import Side
from multigrad.findings import Finding

Rivals = Mapping[str, Leaf]


def unmatched(kind: str, sides: Sequence[Side], lead: Side, paired: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Say of all leaves that are not common to all sides what there is in their place.

    Args:
        kind: ``inputs`` or ``outputs``.
        sides: all of them, with the leaves that are common to all.
        lead: one of them, the reference.
        paired: by side the paths of the leaves that have a counterpart in the lead.
    """
    spoken_of: set[str] = set()
    for side in (side for side in sides if side is not lead):
        rivals = _rivals(kind, side, lead, paired[side.name])
        spoken_of |= {reference.path for reference in rivals.values()}
        for leaf in _left(kind, side):
            if leaf.path in rivals:
                yield _instead(kind, side, leaf, lead, rivals[leaf.path])
            elif leaf.path not in paired[side.name]:
                yield _missing(kind, side, leaf, [other for other in sides if other is not side])
    for leaf in _left(kind, lead):
        if leaf.path not in spoken_of:
            yield _missing(kind, lead, leaf, [other for other in sides if other is not lead])


def _left(kind: str, side: Side) -> list[Leaf]:
    kept = {pair.leaf.path for pair in getattr(side, kind)}
    return [leaf for leaf in getattr(side.f, kind) if leaf.path not in kept]


def _rivals(kind: str, side: Side, lead: Side, paired: Collection[str]) -> Rivals:
    """The lead's leaves that those of the side without a counterpart were meant to be, by the side's paths."""
    taken = {pair.reference.path for pair in getattr(side, kind)}
    mine = [leaf for leaf in _left(kind, side) if leaf.path not in paired]
    theirs = [leaf for leaf in getattr(lead.f, kind) if leaf.path not in taken]
    found: dict[str, Leaf] = {}
    for leaf in mine:
        ranked = sorted(theirs, key=lambda reference: _kinship(reference, leaf), reverse=True)
        alone = len(mine) == len(theirs) == 1
        if ranked and (alone or any(_kinship(ranked[0], leaf)[:2])):
            found[leaf.path] = ranked[0]
            theirs.remove(ranked[0])
    return found


def _kinship(reference: Leaf, leaf: Leaf) -> tuple[bool, int, bool]:
    same_path = leaf.path == reference.path
    return same_path, common_ending(reference.path, leaf.path), bool(_fitting(reference, leaf))


def _fitting(reference: Leaf, leaf: Leaf) -> list[Axes]:
    """The orders of the axes that give a leaf the reference's shape, the present one first."""
    if reference.complex != leaf.complex or len(reference.shape) != len(leaf.shape):
        return []
    usual = [tuple(range(len(leaf.shape))), *orders(len(leaf.shape))]
    return [axes for axes in usual if Pair(reference, leaf, axes).fits]


def _instead(kind: str, side: Side, leaf: Leaf, lead: Side, reference: Leaf) -> Finding:
    fitting = _fitting(reference, leaf)
    if kind == "inputs" and fitting:
        return _other_numbers(side, leaf, lead, reference, fitting)
    shapes = f"shape {reference.shape} in {lead.name}, {leaf.shape} in {side.name}"
    types = f"{reference.dtype} in {lead.name}, {leaf.dtype} in {side.name}"
    evidence = types if reference.complex != leaf.complex and reference.shape == leaf.shape else shapes
    return Finding("unmatched", evidence, reference.path, why_shapes_differ(side, leaf, lead, reference))


def _other_numbers(side: Side, leaf: Leaf, lead: Side, reference: Leaf, fitting: Sequence[Axes]) -> Finding:
    ours, theirs = side.f.x, lead.f.x[reference.slice]
    gaps = {axes: _largest(ours[Pair(reference, leaf, axes).places] - theirs) for axes in fitting}
    axes = min(gaps, key=lambda axes: gaps[axes])
    alike = common_ending(reference.path, leaf.path) or leaf.path == reference.path
    what = "this name and shape" if alike else "this shape"
    turned = "" if axes == fitting[0] == tuple(range(len(axes))) else f" with {named(axes, leaf.shape)},"
    return Finding(
        "unmatched",
        f"{side.name}'s {leaf.path} has {what}{turned} but other numbers than {lead.name}'s "
        f"(they differ by up to {gaps[axes]:.2g})",
        reference.path,
        "copy the parameters, or whatever it holds; if it is another one, mapping={backend: {its path: the reference's path}}",
    )


def _largest(gap: object) -> float:
    with np.errstate(all="ignore"):
        return float(np.max(np.nan_to_num(np.abs(np.asarray(gap)), nan=np.inf), initial=0.0))


def _missing(kind: str, side: Side, leaf: Leaf, others: Sequence[Side]) -> Finding:
    return _held_fixed(side, leaf, others) or _without_counterpart(kind, side, leaf, others)


def _held_fixed(side: Side, leaf: Leaf, others: Sequence[Side]) -> Finding | None:
    holding = [other.name for other in others if any(text.startswith(f"{leaf.path} (") for text in other.f.fixed)]
    if not holding:
        return None
    evidence = f"{' and '.join(holding)} holds it fixed, so that {side.name}'s derivatives by it are not compared"
    return Finding("held_fixed", evidence, leaf.path)


def _without_counterpart(kind: str, side: Side, leaf: Leaf, others: Sequence[Side]) -> Finding:
    lacking = [o for o in others if leaf.path not in {own.path for own in getattr(o.f, kind)}] or others
    return Finding(
        "unmatched",
        f"{side.name} has {leaf.path}, {leaf.dtype} of shape {leaf.shape}; "
        f"there is no {kind[:-1]} like it in {' and '.join(_listing(other, kind) for other in lacking)}",
        leaf.path,
        "say which is which, mapping={backend: {its path: the reference's path}}",
    )


def _listing(side: Side, kind: str) -> str:
    leaves: Sequence[Leaf] = getattr(side.f, kind)
    return f"{side.name} ({', '.join(f'{leaf.path} {leaf.shape}' for leaf in leaves[:6])})"


def reshaped(side: Side, lead: Side) -> Iterator[Finding]:
    """Outputs whose numbers are taken in one order though their shapes differ, which may broadcast otherwise later on."""
    for pair in side.outputs:
        if pair.axes is None and pair.leaf.shape != pair.reference.shape:
            evidence = f"{side.name} returns it in shape {pair.leaf.shape}, {lead.name} in {pair.reference.shape}"
            yield Finding("layout", evidence, pair.leaf.path, _declare(side, pair) if pair.jumbled else "")


def _declare(side: Side, pair: Pair) -> str:
    every = permutations(range(len(pair.leaf.shape)))
    axes = next(a for a in every if Pair(pair.reference, pair.leaf, a).fits)
    said = declaration(side.name, {pair.leaf.path: axes}, [pair])
    return f"its entries are not those of the same places; if it lies in another order, {said}"

"""Shapes: what two outputs of different shapes say of the difference between the functions."""

from __future__ import annotations

from multigrad.backends import Leaf
from multigrad.consistency.layouts import data_orders
from multigrad.consistency.sides import Side

Shape = tuple[int, ...]


def why_shapes_differ(side: Side, leaf: Leaf, lead: Side, reference: Leaf) -> str:
    """Say where to look for what makes a leaf of another shape than the reference's, as far as the shapes tell."""
    wanted, own = reference.shape, _in_leads_order(side, leaf)
    if len(wanted) != len(own):
        return "look at axes that are reduced, kept (keepdims) or added"
    reduced = _reduced(lead, wanted), _reduced(lead, own)
    for path in reduced[0]:
        if path in reduced[1]:
            first, second = reduced[0][path], reduced[1][path]
            return f"as if axis {first} of {path} were reduced in {lead.name}, axis {second} in {side.name}"
    differing = [k for k, (a, b) in enumerate(zip(wanted, own, strict=True)) if a != b]
    if not differing:
        return ""
    where = f"{'axis' if len(differing) == 1 else 'axes'} {', '.join(map(str, differing))}"
    what = "padding and strides" if len(own) > 2 else "what is reduced, cut off or joined"
    return f"look at {what}: they differ along {where}"


def _in_leads_order(side: Side, leaf: Leaf) -> Shape:
    """The leaf's shape with its axes in the lead's order, if the inputs lie in another one."""
    orders = [axes for axes in data_orders(side.inputs) if len(axes) == len(leaf.shape)]
    return tuple(leaf.shape[axes.index(k)] for axes in orders[:1] for k in range(len(axes))) or leaf.shape


def _reduced(lead: Side, shape: Shape) -> dict[str, int]:
    """The inputs, by path, that have this shape if one axis is reduced, and which."""
    return {
        leaf.path: k
        for leaf in lead.f.inputs
        for k in range(len(leaf.shape))
        if leaf.shape[:k] + leaf.shape[k + 1 :] == shape
    }

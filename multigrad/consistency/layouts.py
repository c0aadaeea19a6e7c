"""Layouts: whether two implementations agree once the axes of some arrays are put into another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from multigrad.backends import Array, FlatFunction
from multigrad.consistency.matching import Axes, Layout, Pair, match_outputs, orders
from multigrad.consistency.sides import Side
from multigrad.findings import Finding

Orders = Mapping[str, Axes]

MOST_TRIES = 160
MOST_LEAVES = 3


def named(axes: Axes, shape: Sequence[int]) -> str:
    """Say in words what an order is.

    >>> named((0, 2, 3, 1), (1, 3, 8, 8))
    'the axes in the order (0, 2, 3, 1), as from NCHW to NHWC'
    """
    words = {
        (1, 0): "transposed",
        (0, 2, 3, 1): "as from NCHW to NHWC",
        (0, 3, 1, 2): "as from NHWC to NCHW",
        (2, 3, 1, 0): "as from OIHW to HWIO",
        (3, 2, 0, 1): "as from HWIO to OIHW",
    }
    order = f"the axes in the order {axes}"
    return f"{order}, {words[axes]}" if axes in words and len(shape) == len(axes) else order


def candidates(leaves: Sequence[tuple[str, tuple[int, ...]]]) -> Iterator[Orders]:
    """Ways to reorder the axes of up to three inputs, the fewest first; the first changes nothing."""
    yield {}
    options = [(path, orders(len(shape))) for path, shape in leaves if len(shape) > 1]
    tried = 0
    for count in range(1, min(len(options), MOST_LEAVES) + 1):
        for chosen in combinations(options, count):
            for picked in product(*(some for _, some in chosen)):
                tried += 1
                if tried > MOST_TRIES:
                    return
                yield {path: axes for (path, _), axes in zip(chosen, picked, strict=True)}


def data_orders(inputs: Sequence[Pair]) -> dict[Axes, str]:
    """The orders of data, as opposed to those of matrices and kernels, in which inputs lie, each with an input's path."""
    return {pair.axes: pair.leaf.path for pair in reversed(inputs) if pair.axes and of_data(pair.axes)}


def of_data(axes: Axes) -> bool:
    """Whether an order moves channels to the end or back, with a batch or without, or swaps batch and time."""
    first, *rest = range(len(axes))
    if len(rest) < 2:
        return False
    second, *others, last = rest
    back = [(first, last, second, *others), (last, first, second, *others)]
    return axes in [(first, *others, last, second), (*rest, first), *back, (1, 0, 2)]


def as_inputs_lie(side: Side, lead: Side) -> tuple[list[Pair], list[Finding]]:
    """The pairs of the outputs, in the orders of data that inputs are given in where the numbers are more alike then."""
    orders, pairs, findings = data_orders(side.inputs), list(side.outputs), []
    for k, pair in enumerate(pairs):
        if pair.axes is not None or not orders:
            continue
        others = [replace(pair, axes=axes) for axes in orders]
        fitting = [p for p in ([] if pair.jumbled else [pair]) + others if p.fits]
        best = min(fitting, key=lambda p: _apart(side, p, lead), default=pair)
        if best.axes is not None:
            pairs[k] = best
            findings.append(_as_input(side, best, orders[best.axes]))
    return pairs, findings


def _apart(side: Side, pair: Pair, lead: Side) -> float:
    ours, theirs = side.f.repeats[0][pair.places], lead.f.repeats[0][pair.reference.slice]
    with np.errstate(all="ignore"):
        return float(np.abs(np.nan_to_num(ours) - np.nan_to_num(theirs)).sum())


def _as_input(side: Side, pair: Pair, path: str) -> Finding:
    assert pair.axes is not None
    return Finding(
        "layout",
        f"{side.name}'s is compared with {named(pair.axes, pair.leaf.shape)}, as {path} lies",
        pair.leaf.path,
        f"to say so, {declaration(side.name, {pair.leaf.path: pair.axes}, [pair])}",
    )


def declaration(name: str, orders: Orders, pairs: Sequence[Pair]) -> str:
    """What to write for orders of axes to be taken as meant; ``pairs`` say which leaf of the reference is another's."""
    paths = {pair.leaf.path: pair.reference.path for pair in pairs}
    said = {path: axes if paths.get(path, path) == path else (paths[path], axes) for path, axes in orders.items()}
    return f"mapping={{{name!r}: {said!r}}}"


def reorder_outputs(
    pairs: Sequence[Pair], values: Array, own: Array, agree: Callable[[Array, Array], bool]
) -> list[Pair] | None:
    """The pairs in orders of the axes by which the numbers ``own`` agree with the reference's ``values``.

    Returns:
        Those that do not agree as they are; None if some leaf agrees in no order.
    """
    found = []
    for pair in pairs:
        wanted = values[pair.reference.slice]
        if agree(wanted, own[pair.places]):
            continue
        others = (replace(pair, axes=axes) for axes in orders(len(pair.leaf.shape)))
        best = next((p for p in others if p.fits and agree(wanted, own[p.places])), None)
        if best is None:
            return None
        found.append(best)
    return found


def search(
    reference: FlatFunction,
    leaves: Sequence[tuple[str, tuple[int, ...]]],
    layout: Layout,
    make: Callable[[Orders], FlatFunction],
    agree: Callable[[Array, Array], bool],
) -> tuple[FlatFunction, Orders, list[Pair]] | None:
    """Look for orders of the inputs' and outputs' axes by which a function agrees with the reference.

    Args:
        reference: the other side's function.
        leaves: path and shape of the inputs that may lie otherwise.
        layout: what is known of the outputs.
        make: the flat function for inputs that are so reordered; may raise anything.
        agree: whether two vectors of values are the same.

    Returns:
        The function, the orders of the inputs, and the outputs in another order.
    """
    for inputs in candidates(leaves):
        try:
            f = make(inputs)
            pairs = match_outputs(reference.outputs, f.outputs, layout)
        except Exception:  # noqa: BLE001, S112, of any type: shapes that do not fit the user's code
            continue
        complete = len(pairs) == len(reference.outputs) == len(f.outputs)
        outputs = reorder_outputs(pairs, reference.repeats[0], f.repeats[0], agree) if complete else None
        if outputs is not None and (inputs or outputs):
            return f, inputs, outputs
    return None

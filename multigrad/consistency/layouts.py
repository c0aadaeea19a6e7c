"""Layouts: whether two implementations agree once the axes of some arrays are put into another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product

from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.consistency.matching import Axes, Pair, orders

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


def reorder_outputs(
    reference: Sequence[Leaf], values: Array, leaves: Sequence[Leaf], own: Array, agree: Callable[[Array, Array], bool]
) -> Orders | None:
    """Orders of the axes of ``leaves`` by which their numbers ``own`` agree with the reference's, leaf by leaf.

    Returns:
        The orders by path, nothing for leaves that agree as they are; None if some leaf agrees in no order.
    """
    if [leaf.size for leaf in leaves] != [leaf.size for leaf in reference]:
        return None
    found: dict[str, Axes] = {}
    for ref, leaf in zip(reference, leaves, strict=True):
        wanted = values[ref.slice]
        if agree(wanted, own[leaf.slice]):
            continue
        axes = next((p for p in orders(len(leaf.shape)) if _agrees_in(p, ref, leaf, wanted, own, agree)), None)
        if axes is None:
            return None
        found[leaf.path] = axes
    return found


def _agrees_in(
    axes: Axes, ref: Leaf, leaf: Leaf, wanted: Array, own: Array, agree: Callable[[Array, Array], bool]
) -> bool:
    if len(ref.shape) != len(axes) or tuple(ref.shape[k] for k in axes) != leaf.shape:
        return False
    return agree(wanted, own[Pair(ref, leaf, axes).places])


def search(
    reference: FlatFunction,
    leaves: Sequence[tuple[str, tuple[int, ...]]],
    make: Callable[[Orders], FlatFunction],
    agree: Callable[[Array, Array], bool],
) -> tuple[FlatFunction, Orders, Orders] | None:
    """Look for orders of the inputs' and outputs' axes by which a function agrees with the reference.

    Args:
        reference: the other side's function.
        leaves: path and shape of the inputs.
        make: the flat function for inputs that are so reordered; may raise anything.
        agree: whether two vectors of values are the same.
    """
    for inputs in candidates(leaves):
        try:
            f = make(inputs)
        except Exception:  # noqa: BLE001, S112, of any type: shapes that do not fit the user's code
            continue
        outputs = reorder_outputs(reference.outputs, reference.repeats[0], f.outputs, f.repeats[0], agree)
        if outputs is not None and (inputs or outputs):
            return f, inputs, outputs
    return None

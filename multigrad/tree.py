"""Trees of lists, tuples, dicts, namedtuples and dataclasses, walked with paths as the user would write them.

No framework is needed for this; frameworks that know trees of their own use theirs.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

# A container's children in order: (how the child is reached, as written after the container; its key; the child).
Children: TypeAlias = list[tuple[str, Any, Any]]


def children(node: object) -> Children | None:
    """List what a container holds; None for a leaf.

    >>> children({"w": 1.0})
    [('["w"]', 'w', 1.0)]
    """
    if isinstance(node, Mapping):
        return [(f"[{quoted(key)}]", key, child) for key, child in node.items()]
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return [(f".{name}", i, child) for i, (name, child) in enumerate(zip(node._fields, node, strict=True))]
    if isinstance(node, (list, tuple)):
        return [(f"[{i}]", i, child) for i, child in enumerate(node)]
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [(f".{f.name}", f.name, getattr(node, f.name)) for f in dataclasses.fields(node)]
    return None


def quoted(key: object) -> str:
    """Write a dict's key as in ``inputs[0]["w"]``."""
    return f'"{key}"' if isinstance(key, str) and '"' not in key else repr(key)


def walk(tree: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf with its path, in the containers' own order.

    >>> list(walk([1.0, {"a": (2.0,)}], "inputs"))
    [('inputs[0]', 1.0), ('inputs[1]["a"][0]', 2.0)]
    """
    below = children(tree)
    if below is None:
        yield path, tree
        return
    for step, _, child in below:
        yield from walk(child, path + step)


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Copy a tree's containers, with ``change(leaf)`` for every leaf, in the order of ``walk``."""
    below = children(tree)
    if below is None:
        return change(tree)
    changed = {key: map_leaves(change, child) for _, key, child in below}
    if isinstance(tree, tuple):
        return tree._make(changed.values()) if hasattr(tree, "_make") else tuple(changed.values())
    if isinstance(tree, list):
        return list(changed.values())
    return _refill(copy.copy(tree), changed)


def _refill(container: Any, changed: Mapping[Any, Any]) -> Any:
    if isinstance(container, Mapping):
        container.update(changed)  # type: ignore[attr-defined]
        return container
    for name, child in changed.items():
        object.__setattr__(container, name, child)  # a frozen dataclass as well
    return container

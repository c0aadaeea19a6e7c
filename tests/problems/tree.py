"""Pytrees of tuples, lists and dicts (taken in key order), for code that must not lean on one framework's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> list[Any]:
    """The arrays of a tree, in order."""
    found: list[Any] = []
    map_leaves(found.append, tree)
    return found


def map_leaves(f: Callable[[Any], Any], tree: Any) -> Any:
    """The same tree with ``f`` of every leaf."""
    if isinstance(tree, dict):
        return {key: map_leaves(f, tree[key]) for key in sorted(tree)}
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_leaves(f, child) for child in tree)
    return f(tree)


def refill(tree: Any, new: Iterator[Any]) -> Any:
    """The same tree with its leaves taken from ``new``, in order."""
    return map_leaves(lambda _: next(new), tree)


def paths(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path, as one would write it after the tree's name."""
    if isinstance(tree, dict):
        children = [(f'["{key}"]', tree[key]) for key in sorted(tree)]
    elif isinstance(tree, (tuple, list)):
        children = [(f"[{i}]", child) for i, child in enumerate(tree)]
    else:
        yield path, tree
        return
    for step, child in children:
        yield from paths(child, path + step)

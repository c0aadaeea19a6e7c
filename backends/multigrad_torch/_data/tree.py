"""Nested inputs and outputs: what their leaves are called, and how to build the same nest of other leaves."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

# The labels of a container's children, the children, and how to make such a container of others.
_Open = tuple[list[str], list[Any], Callable[[list[Any]], Any]]


class Tree:
    """A nest of list, tuple, dict, named tuple, dataclass and whatever is registered with torch's pytree.

    Attributes:
        leaves: the leaves in order, each with its path as the user would write it (``inputs[0]["w"]``).
        build: makes a nest of the same containers, freshly, of the leaves that an iterator yields.
    """

    def __init__(self, value: object, path: str) -> None:
        self.leaves: list[tuple[str, Any]] = []
        self.build: Callable[[Iterator[Any]], Any] = self._walk(value, path)

    def _walk(self, node: Any, path: str) -> Callable[[Iterator[Any]], Any]:
        opened = _open(node)
        if opened is None:
            self.leaves.append((path, node))
            return next
        labels, children, close = opened
        builders = [self._walk(child, path + label) for label, child in zip(labels, children, strict=True)]
        return lambda leaves: close([build(leaves) for build in builders])


def _open(node: Any) -> _Open | None:
    if isinstance(node, torch.Tensor | torch.nn.Module | type):
        return None
    if isinstance(node, tuple) and (fields := getattr(node, "_fields", None)) is not None:
        return [f".{name}" for name in fields], list(node), getattr(node, "_make", tuple)
    if type(node) in (list, tuple):
        return [f"[{i}]" for i in range(len(node))], list(node), type(node)
    if type(node) is dict:
        keys = list(node)
        return [_key(key) for key in keys], list(node.values()), lambda new: dict(zip(keys, new, strict=True))
    return _open_registered(node) or _open_dataclass(node)


def _key(key: object) -> str:
    return f'["{key}"]' if isinstance(key, str) else f"[{key!r}]"


def _open_registered(node: Any) -> _Open | None:
    pairs, spec = pytree.tree_flatten_with_path(node, is_leaf=lambda inner: inner is not node)
    if len(pairs) == 1 and pairs[0][1] is node:
        return None
    labels = ["".join(_entry(entry) for entry in path) for path, _ in pairs]
    return labels, [child for _, child in pairs], lambda new: pytree.tree_unflatten(new, spec)


def _entry(entry: Any) -> str:
    return _key(entry.key) if isinstance(entry, pytree.MappingKey) else str(entry)


def _open_dataclass(node: Any) -> _Open | None:
    if not dataclasses.is_dataclass(node):
        return None
    names = [field.name for field in dataclasses.fields(node) if hasattr(node, field.name)]

    def close(new: list[Any]) -> Any:
        made = copy.copy(node)
        for name, value in zip(names, new, strict=True):
            object.__setattr__(made, name, value)  # frozen dataclasses refuse the usual way
        return made

    return [f".{name}" for name in names], [getattr(node, name) for name in names], close

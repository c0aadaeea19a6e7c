"""Which of the inputs are checked, and how a flat row becomes arguments again: as fresh float64 copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from multigrad.backends import Array, Leaf
from multigrad.errors import InvalidUse
from multigrad.tree import map_leaves, walk

# The first of these that fits any input says which are checked. Integers count only where nothing else is there:
# beside floats they are sizes, indices and exponents.
_CHECKED: tuple[Callable[[Any], bool], ...] = (
    lambda v: isinstance(v, (float, complex)) or (is_numpy(v) and v.dtype.kind in "fc"),
    lambda v: isinstance(v, np.ndarray) and v.dtype.kind in "iu",
    lambda v: isinstance(v, (int, np.integer)) and not isinstance(v, bool),
)

_INSTEAD = {
    "matrix": "its * is a matrix product: pass np.asarray(x)",
    "MaskedArray": "masked entries have no derivative: pass x.filled(...), and the mask as another input",
}


@dataclass(frozen=True)
class Arguments:
    """The user's inputs taken apart.

    Attributes:
        inputs: as the user gave them.
        leaves: for every leaf of the inputs its ``Leaf`` if it is checked, None if it is held fixed.
        fixed: the path of every leaf held fixed, with the reason.
    """

    inputs: tuple[Any, ...]
    leaves: tuple[Leaf | None, ...]
    fixed: tuple[str, ...]

    @classmethod
    def of(cls, inputs: tuple[Any, ...]) -> Arguments:
        """Take the inputs apart.

        Raises:
            InvalidUse: ``no_differentiable_input``, ``ragged``, ``unsupported_array``.
        """
        named = list(walk(inputs, "inputs"))
        for path, value in named:
            refuse(path, value)
        is_checked = next((test for test in _CHECKED if any(test(value) for _, value in named)), lambda v: False)
        fixed = tuple(f"{path} ({kind_of(value)})" for path, value in named if not is_checked(value))
        if len(fixed) == len(named):
            raise InvalidUse(
                "no_differentiable_input",
                f"no input is an array or number that can be differentiated; held fixed: {', '.join(fixed) or 'nothing'};"
                " convert what is to be checked, np.asarray(x, float)",
            )
        return cls(inputs, tuple(make_leaves(named, is_checked)), fixed)

    @property
    def checked(self) -> tuple[Leaf, ...]:
        """The leaves that are checked."""
        return tuple(leaf for leaf in self.leaves if leaf)

    @property
    def x(self) -> Array:
        """The checked leaves as one flat vector, shape (n,)."""
        values = [value for _, value in walk(self.inputs)]
        return np.concatenate([reals(v) for v, leaf in zip(values, self.leaves, strict=True) if leaf])

    @property
    def template(self) -> tuple[Any, ...]:
        """The inputs' tree with a ``Leaf`` in every checked place and None in the others."""
        leaves = iter(self.leaves)
        tree: tuple[Any, ...] = map_leaves(lambda _: next(leaves), self.inputs)
        return tree

    def fill(self, row: Array) -> tuple[Any, ...]:
        """Make arguments of a flat row (n,): new containers, and new arrays everywhere."""
        return self.replace(lambda value, leaf: _copy(value, leaf, row))

    def replace(self, change: Callable[[Any, Leaf | None], Any]) -> tuple[Any, ...]:
        """Make arguments with ``change(value, leaf)`` in every place; ``leaf`` is None for what is held fixed."""
        leaves = iter(self.leaves)
        filled: tuple[Any, ...] = map_leaves(lambda value: change(value, next(leaves)), self.inputs)
        return filled


def _copy(value: Any, leaf: Leaf | None, row: Array) -> Any:
    if leaf is None:
        return value.copy() if isinstance(value, np.ndarray) else value
    entries: Any = row[leaf.slice].copy()
    shaped = (entries.view(np.complex128) if leaf.complex else entries).reshape(leaf.shape)
    return shaped if isinstance(value, np.ndarray) else shaped[()]


def make_leaves(named: list[tuple[str, Any]], is_checked: Callable[[Any], bool]) -> Iterator[Leaf | None]:
    """Give the checked ones of some named values their places in a flat vector."""
    start = 0
    for path, value in named:
        if not is_checked(value):
            yield None
            continue
        leaf = Leaf(path, np.shape(value), str(np.asarray(value).dtype), start)
        start += leaf.size
        yield leaf


def reals(value: Any) -> Array:
    """Lay one array or number out as reals: (places,)."""
    wide = np.asarray(value, np.complex128 if np.iscomplexobj(value) else np.float64)
    return np.ascontiguousarray(wide).reshape(-1).view(np.float64)


def is_numpy(value: object) -> bool:
    """Whether this is an array or scalar of NumPy's."""
    return isinstance(value, (np.ndarray, np.generic))


def kind_of(value: Any) -> str:
    """Say in a word what a value is."""
    return "None" if value is None else str(value.dtype) if is_numpy(value) else type(value).__name__


def refuse(path: str, value: Any) -> None:
    """Refuse arrays that a flat vector of numbers can't stand for.

    Raises:
        InvalidUse: ``ragged`` or ``unsupported_array``.
    """
    if not isinstance(value, np.ndarray):
        return
    if value.dtype.kind == "O":
        raise InvalidUse(
            "ragged",
            f"{path} is an array of Python objects, shape {value.shape}: pass a list of arrays if its parts "
            "differ in length, x.astype(float) if they are numbers",
        )
    if value.dtype.names:
        names = ", ".join(f'"{name}": x["{name}"]' for name in value.dtype.names)
        raise InvalidUse("unsupported_array", f"{path} is a structured array: pass a dict, {{{names}}}")
    if type(value) not in (np.ndarray, np.memmap):
        name = type(value).__name__
        instead = _INSTEAD.get(name, "what it does beside being an array is lost: pass np.asarray(x)")
        raise InvalidUse("unsupported_array", f"{path} is a numpy {name}; {instead}")

"""Between JAX's pytrees and the flat vectors: which leaves are checked, and what they are called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, SequenceKey

from multigrad.backends import Array, Leaf
from multigrad.errors import Defect, InvalidUse
from multigrad.findings import Finding
from multigrad.tree import quoted

Parts = list[npt.NDArray[Any]]


@dataclass(frozen=True)
class Arguments:
    """The user's inputs: the leaves that are checked, and the rest around them.

    Attributes:
        values: all leaves, as the user gave them.
        places: which of them are checked.
        leaves: those as the flat function's leaves.
        fixed: the path of every other one, with the reason.
    """

    treedef: PyTreeDef
    values: tuple[Any, ...]
    places: tuple[int, ...]
    leaves: tuple[Leaf, ...]
    fixed: tuple[str, ...]

    @classmethod
    def of(cls, inputs: tuple[Any, ...]) -> Arguments:
        """Take the inputs apart.

        Raises:
            InvalidUse: ``no_differentiable_input``.
        """
        named, treedef = _flatten(inputs)
        places = tuple(i for i, (_, value) in enumerate(named) if _is_inexact(value))
        fixed = tuple(f"inputs{_path(k)} ({_kind(v)})" for i, (k, v) in enumerate(named) if i not in places)
        if not places:
            raise InvalidUse(
                "no_differentiable_input",
                f"no input is a floating or complex array or number; held fixed: {', '.join(fixed) or 'nothing at all'}; "
                "convert what is to be differentiated, x.astype(float); register a class of your own as a pytree",
            )
        leaves = _leaves([("inputs" + _path(named[i][0]), named[i][1]) for i in places])
        return cls(treedef, tuple(value for _, value in named), places, leaves, fixed)

    @property
    def x(self) -> Array:
        """The checked leaves as one flat vector, shape (n,)."""
        return pack_one([self.values[i] for i in self.places])

    def fill(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        """Put other values in the places of the checked leaves."""
        values = list(self.values)
        for place, part in zip(self.places, parts, strict=True):
            values[place] = part
        filled: tuple[Any, ...] = jax.tree_util.tree_unflatten(self.treedef, values)
        return filled

    def own(self, row: Array) -> list[Any]:
        """Cut one flat row (n,) into values of the types that the user passed: a float stays a Python float."""
        parts = unpack(row[None], self.leaves)
        return [_like(self.values[i], part[0]) for i, part in zip(self.places, parts, strict=True)]

    def at(self, row: Array) -> Arguments:
        """The same arguments at another point (n,), rounded to the dtypes of the leaves."""
        values = list(self.values)
        for place, part in zip(self.places, self.own(row), strict=True):
            values[place] = part
        return replace(self, values=tuple(values))

    def retyped(self, rename: Callable[[str], str]) -> Arguments:
        """The same arguments, whose parts are made in other dtypes."""
        return replace(self, leaves=_retyped(self.leaves, rename))


@dataclass(frozen=True)
class Results:
    """The shape of what the user's function returns at the point."""

    treedef: PyTreeDef
    shapes: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, out: Any) -> Results:
        """Take a first output apart.

        Raises:
            InvalidUse: ``no_output``.
        """
        named, treedef = _flatten(out)
        places = tuple(i for i, (_, value) in enumerate(named) if _is_inexact(value))
        if not places:
            seen = ", ".join(f"output{_path(key)} ({_kind(value)})" for key, value in named) or "nothing at all"
            raise InvalidUse("no_output", f"fn returns no floating or complex array or number, but {seen}")
        leaves = _leaves([("output" + _path(named[i][0]), named[i][1]) for i in places])
        return cls(treedef, tuple(np.shape(v) if _is_array(v) else () for _, v in named), places, leaves)

    def detach(self, numbers: Collection[int]) -> Results:
        """Mark the leaves of these numbers as carrying no derivative."""
        leaves = tuple(replace(leaf, attached=k not in numbers) for k, leaf in enumerate(self.leaves))
        return replace(self, leaves=leaves)

    def retyped(self, rename: Callable[[str], str]) -> Results:
        """The same outputs in other dtypes."""
        return replace(self, leaves=_retyped(self.leaves, rename))

    @property
    def template(self) -> Any:
        """The output's tree with a ``Leaf`` in every checked place."""
        values: list[Any] = [None] * len(self.shapes)
        for place, leaf in zip(self.places, self.leaves, strict=True):
            values[place] = leaf
        return jax.tree_util.tree_unflatten(self.treedef, values)

    def pick(self, out: Any) -> list[Any]:
        """Get the checked leaves of another output.

        Raises:
            Defect: ``shape_depends_on_value``.
        """
        named, treedef = _flatten(out)
        if treedef != self.treedef:
            raise _changed("output", f"the tree {treedef}", str(self.treedef))
        for i in self.places:
            key, value = named[i]
            if np.shape(value) != self.shapes[i]:
                raise _changed("output" + _path(key), f"shape {np.shape(value)}", str(self.shapes[i]))
        return [named[i][1] for i in self.places]


def pack(parts: Sequence[Any], conjugate: bool = False) -> Array:
    """Lay batched arrays (b, *shape) side by side as rows of reals: -> (b, places)."""
    return np.concatenate([_reals(np.asarray(part), conjugate) for part in parts], axis=1)


def pack_one(parts: Sequence[Any], conjugate: bool = False) -> Array:
    """Lay arrays side by side as one row of reals: -> (places,)."""
    row: Array = pack([np.asarray(part)[None] for part in parts], conjugate)[0]
    return row


def unpack(X: Array, leaves: Sequence[Leaf], conjugate: bool = False) -> Parts:
    """Cut rows of reals (b, places) into batched arrays (b, *shape) of the leaves' own dtypes."""
    parts = []
    for leaf in leaves:
        cut: npt.NDArray[Any] = np.ascontiguousarray(X[:, leaf.slice])
        if leaf.complex:
            cut = _complex(cut, conjugate)
        parts.append(cut.reshape(len(X), *leaf.shape).astype(jnp.dtype(leaf.dtype)))
    return parts


def _complex(pairs: Array, conjugate: bool) -> npt.NDArray[Any]:
    entries = pairs.view(np.complex128)
    return entries.conj() if conjugate else entries


def epsilon(dtype: Any) -> float:
    """Give the unit roundoff of a dtype, bfloat16 and the like as well."""
    return float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _reals(part: npt.NDArray[Any], conjugate: bool) -> Array:
    rows = part.reshape(len(part), -1)
    if rows.dtype.kind == "c":
        entries = np.conj(rows) if conjugate else rows
        return np.ascontiguousarray(entries, np.complex128).view(np.float64)
    return rows.astype(np.float64)


def _flatten(tree: Any) -> tuple[list[tuple[Sequence[Any], Any]], PyTreeDef]:
    named, treedef = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is None)
    return list(named), treedef


def _path(keys: Sequence[Any]) -> str:
    return "".join(_step(key) for key in keys)


def _step(key: Any) -> str:
    match key:
        case SequenceKey(idx=index):
            return f"[{index}]"
        case DictKey(key=name):
            return f"[{quoted(name)}]"
        case FlattenedIndexKey(key=index):
            return f"[{index}]"
        case GetAttrKey(name=name):
            return f".{name}"
    return str(key)


def _is_array(value: object) -> bool:
    return isinstance(value, (jax.Array, np.ndarray, np.generic, float, complex))


def _is_inexact(value: object) -> bool:
    return _is_array(value) and jnp.issubdtype(_dtype(value), jnp.inexact)


def _dtype(value: Any) -> Any:
    return value.dtype if hasattr(value, "dtype") else np.dtype(type(value))


def _kind(value: Any) -> str:
    return "None" if value is None else str(getattr(value, "dtype", type(value).__name__))


def _leaves(named: Sequence[tuple[str, Any]]) -> tuple[Leaf, ...]:
    leaves: list[Leaf] = []
    for path, value in named:
        start = leaves[-1].slice.stop if leaves else 0
        leaves.append(Leaf(path, np.shape(value), str(_dtype(value)), start))
    return tuple(leaves)


def _retyped(leaves: Sequence[Leaf], rename: Callable[[str], str]) -> tuple[Leaf, ...]:
    return tuple(replace(leaf, dtype=rename(leaf.dtype)) for leaf in leaves)


def _like(value: Any, part: npt.NDArray[Any]) -> Any:
    if isinstance(value, jax.Array):
        return jnp.asarray(part)
    if isinstance(value, np.ndarray):
        return np.array(part)
    return part[()] if isinstance(value, np.generic) else part.item()


def _changed(path: str, now: str, before: str) -> Defect:
    return Defect(
        Finding(
            "shape_depends_on_value",
            f"{path} has {now}; the plain call at the point has {before}",
            where=path,
            remedy="a derivative needs outputs of one shape; pad or mask instead of selecting",
        )
    )

"""The shape of what the user's function returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multigrad.backends import Array, Leaf, likely_backends
from multigrad.errors import Defect, InvalidUse
from multigrad.findings import Finding
from multigrad.tree import map_leaves, walk
from multigrad_numpy._arguments import is_numpy, kind_of, make_leaves, reals, refuse


@dataclass(frozen=True)
class Results:
    """The outputs at the point, taken apart.

    Attributes:
        template: the output's tree with a ``Leaf`` in every place that is checked and None in the others.
        paths: the paths of all its leaves.
        leaves: those that are checked.
    """

    template: Any
    paths: frozenset[str]
    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, out: Any) -> Results:
        """Take a first output apart.

        Python's own integers count as numbers where nothing else is there: ``max(0, x)`` returns one.

        Raises:
            InvalidUse: ``no_output``, ``ragged``, ``unsupported_array``.
        """
        named = list(walk(out, "output"))
        for path, value in named:
            refuse(path, value)
        is_checked = _is_inexact if any(_is_inexact(value) for _, value in named) else _is_python_integer
        leaves = list(make_leaves(named, is_checked))
        if not any(leaves):
            seen = ", ".join(f"{path} ({kind_of(value)})" for path, value in named) or "nothing at all"
            raise InvalidUse(
                "no_output",
                f"fn returns no floating or complex array or number of NumPy, but {seen}{_hint([value for _, value in named])}",
            )
        queue = iter(leaves)
        template = map_leaves(lambda _: next(queue), out)
        return cls(template, frozenset(path for path, _ in named), tuple(leaf for leaf in leaves if leaf))

    @property
    def eps(self) -> float:
        """The unit roundoff of the coarsest output; the inputs are float64, so it is the function that rounded."""
        dtypes = [leaf.dtype for leaf in self.leaves if not leaf.dtype.startswith("int")]
        return max([2.0**-52, *(float(np.finfo(dtype).eps) for dtype in dtypes)])

    def pick(self, out: Any) -> Array:
        """Lay another output out as one row, shape (m,): always a copy.

        Raises:
            Defect: ``shape_depends_on_value``.
        """
        named = dict(walk(out, "output"))
        if named.keys() != self.paths:
            new = ", ".join(sorted(named.keys() ^ self.paths))
            raise _changed("output", f"other parts than at the point: {new}")
        return np.concatenate([_row(named[leaf.path], leaf) for leaf in self.leaves])


def _row(value: Any, leaf: Leaf) -> Array:
    if np.shape(value) != leaf.shape or not (is_numpy(value) or isinstance(value, (int, float, complex))):
        raise _changed(leaf.path, f"{kind_of(value)} of shape {np.shape(value)}, at the point {leaf.shape}")
    if np.iscomplexobj(value) and not leaf.complex:
        raise _changed(leaf.path, f"complex numbers, at the point {leaf.dtype}")
    return reals(np.asarray(value, np.complex128) if leaf.complex else value)


def _is_inexact(value: Any) -> bool:
    return isinstance(value, (float, complex)) or (is_numpy(value) and value.dtype.kind in "fc")


def _is_python_integer(value: Any) -> bool:
    return type(value) is int


def _changed(path: str, evidence: str) -> Defect:
    return Defect(
        Finding(
            "shape_depends_on_value",
            f"{path} near the point: {evidence}",
            where=path,
            remedy="a derivative needs outputs of one shape; pad or mask instead of selecting",
        )
    )


def _hint(values: Sequence[Any]) -> str:
    """Which backend the arrays are of, if another framework has made them."""
    others = [name for name in likely_backends(values) if name != "numpy"]
    return f"; fn is code of another framework: backend={others[0]!r}" if others else ""

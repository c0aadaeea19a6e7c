"""The outputs: which leaves of what the function returned are numbers to check, and that they stay the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array, Leaf
from multigrad.errors import Defect, InvalidUse
from multigrad.findings import Finding
from multigrad_torch._data.dtypes import WIDE
from multigrad_torch._data.leaves import flat_numbers
from multigrad_torch._data.sparse import dense
from multigrad_torch._data.tree import Tree

_Signature = tuple[list[str], list[torch.Size], list[torch.dtype]]


class Outputs:
    """What a call at the point returned, as a pattern for all later calls.

    Attributes:
        leaves: the floating and complex leaves, in order.
        template: what was returned, with a ``Leaf`` in the place of each of these and None in the others.
    """

    def __init__(self, returned: object) -> None:
        paths, tensors = _numbers(returned)
        if not tensors:
            raise InvalidUse("no_output", f"the function returned {_describe(returned)}: no floating or complex tensor")
        self._signature: _Signature = _signature(paths, tensors)
        self._wide = False
        leaves: list[Leaf] = []
        start = 0
        for path, tensor in zip(paths, tensors, strict=True):
            dtype = str(tensor.dtype).removeprefix("torch.")
            leaves.append(Leaf(path, tuple(tensor.shape), dtype, start))
            start = leaves[-1].slice.stop
        self.leaves = tuple(leaves)
        self.template: Any = _template(returned, {leaf.path: leaf for leaf in leaves})

    @property
    def dtypes(self) -> set[torch.dtype]:
        """Those that the outputs have."""
        return set(self._signature[2])

    def promote(self, on: bool) -> None:
        """Expect float64 from now on where low precision was returned, or not; the leaves keep the user's dtypes."""
        self._wide = on

    def attach_all(self) -> None:
        """Note that all have a derivative: not autograd's."""
        self.leaves = tuple(replace(leaf, attached=True) for leaf in self.leaves)

    def attach(self, outputs: Sequence[Tensor]) -> None:
        """Note which leaves carry a graph, told by a call in which every checked input requires a gradient."""
        pairs = zip(self.leaves, outputs, strict=True)
        self.leaves = tuple(replace(leaf, attached=has_graph(output)) for leaf, output in pairs)

    def take(self, returned: object) -> list[Tensor]:
        """The output leaves of another call, strided.

        Raises:
            Defect: they are not of the same number, shapes and dtypes as at the point.
        """
        paths, tensors = _numbers(returned)
        expected = self._signature
        if self._wide:
            tensors = [tensor.to(WIDE.get(tensor.dtype, tensor.dtype)) for tensor in tensors]
            expected = (*expected[:2], [WIDE.get(dtype, dtype) for dtype in expected[2]])
        signature = _signature(paths, tensors)
        if signature != expected:
            raise Defect(_other_shape(expected, signature))
        return tensors


def has_graph(tensor: Tensor) -> bool:
    """Whether a derivative can be asked of it: a view that was made under no_grad says so of itself, and has none."""
    base = tensor._base
    detached = tensor.grad_fn is None and base is not None and base.requires_grad
    return tensor.requires_grad and not detached


def pack(tensors: list[Tensor], rows: tuple[int, ...] = ()) -> Array:
    """Output leaves as a fresh flat array of shape rows + (m,)."""
    return np.concatenate([flat_numbers(tensor, rows) for tensor in tensors], axis=-1)


def _numbers(returned: Any) -> tuple[list[str], list[Tensor]]:
    leaves = [("output", returned)] if isinstance(returned, Tensor) else Tree(returned, "output").leaves
    paths, tensors = [], []
    for path, leaf in leaves:
        tensor = torch.as_tensor(leaf) if isinstance(leaf, complex | np.ndarray | np.generic) else leaf
        if isinstance(leaf, float):
            tensor = torch.tensor(leaf, dtype=torch.float64)
        if isinstance(tensor, Tensor) and (tensor.is_floating_point() or tensor.is_complex()):
            paths.append(path)
            tensors.append(dense(tensor))
    return paths, tensors


def _template(returned: object, leaves: dict[str, Leaf]) -> Any:
    if isinstance(returned, Tensor):
        return leaves["output"]
    tree = Tree(returned, "output")
    return tree.build(iter([leaves.get(path) for path, _ in tree.leaves]))


def _signature(paths: list[str], tensors: list[Tensor]) -> _Signature:
    return paths, [tensor.shape for tensor in tensors], [tensor.dtype for tensor in tensors]


def _other_shape(before: _Signature, now: _Signature) -> Finding:
    texts = [
        ", ".join(f"{path} {dtype} {list(shape)}" for path, shape, dtype in zip(*signature, strict=True)) or "nothing"
        for signature in (before, now)
    ]
    return Finding(
        "shape_depends_on_value",
        f"at the point the function returns {texts[0]}; at a point beside it, {texts[1]}",
        where="output",
        remedy="make the shape and dtype of the output independent of the values of the input",
    )


def _describe(returned: Any) -> str:
    leaves = Tree(returned, "output").leaves
    kinds = [f"{one.dtype!s} tensor" if isinstance(one, Tensor) else type(one).__name__ for _, one in leaves]
    if isinstance(returned, torch.autograd.Function):
        name = type(returned).__name__
        return f"{name} (a Function is applied, not called: pass {name}.apply)"
    if returned is None or not leaves:
        return repr(returned)
    return kinds[0] if leaves[0][1] is returned else f"a {type(returned).__name__} of {', '.join(kinds)}"

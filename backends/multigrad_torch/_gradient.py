"""The gradient of a program as a program: what a check of second order differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from multigrad.backends import Array, Leaf
from multigrad_torch._autograd.cotangents import several
from multigrad_torch._data.leaves import Slot, copied
from multigrad_torch._data.outputs import has_graph
from multigrad_torch._data.sparse import dense
from multigrad_torch._params import Params
from multigrad_torch._program import Program
from multigrad_torch._promotion.promote import AsWritten, Promotion


class Gradient(Program):
    """J(x)^T (u + t w), with a graph of its own.

    Its leaves are those of the first program and one more, the number t. Along t it is linear; that a backward
    depends on its cotangent by operations that can be differentiated is seen there.

    Args:
        first: the program.
        u: the cotangents at t = 0, shape (m,).
        w: by what they change with t, shape (m,).
    """

    def __init__(self, first: Program, u: Array, w: Array) -> None:
        self.__dict__.update(first.__dict__)
        self._first, self._u, self._w = first, u, w
        self._t = torch.zeros((), dtype=torch.float64)
        last = Slot("cotangent", self._t, first.slots[-1].slice.stop)
        self.params = Params([*first.params.slots, last], [])
        self.slots = (*first.slots, last)
        self.findings = []

    def call(self, leaves: Sequence[Any], evaluation: Promotion | AsWritten | None = None) -> Any:
        """Call the user's function, and differentiate what it returns."""
        evaluation = evaluation or self.evaluation()
        first = self._first
        with torch.enable_grad(), first.params.tracked():
            wanted, handed = self._prepare(leaves)
            returned = first.outputs.take(first.call(handed, evaluation))
            pairs = [(o, leaf) for o, leaf in zip(returned, first.outputs.leaves, strict=True) if has_graph(o)]
            wanted += [slot.tensor for slot in first.params.slots]
            gradients: Sequence[Tensor | None] = [None] * len(wanted)
            if pairs:
                outputs = [output for output, _ in pairs]
                cotangents = [self._cotangent(leaf, output) for output, leaf in pairs]
                gradients = evaluation.gradients(outputs, cotangents, wanted, create_graph=True)
            return [_numbers(slot, g) for slot, g in zip(first.slots, gradients, strict=True)]

    def _prepare(self, leaves: Sequence[Any]) -> tuple[list[Tensor], list[Any]]:
        """The leaves whose gradient is wanted, and what the function gets: it may want to write to its inputs."""
        wanted, handed = [], []
        for place, leaf in zip(self._places, leaves, strict=True):
            if not isinstance(place, Slot):
                handed.append(leaf)
                continue
            wanted.append(leaf if leaf.requires_grad else leaf.requires_grad_(True))
            handed.append(leaf if self.is_leaf(place) else copied(leaf))
        return wanted, handed

    def _cotangent(self, leaf: Leaf, output: Tensor) -> Tensor:
        at_0, change = (several(leaf, output, row) for row in (self._u, self._w))
        return at_0 + self._t.to(output.device) * change

    def named(self, leaves: Sequence[Leaf]) -> tuple[Leaf, ...]:
        """The output leaves by what they are. A gradient without a graph is as wrong as any: it counts as attached."""
        return tuple(
            replace(leaf, path=f"grad({slot.leaf.path})", attached=True)
            for leaf, slot in zip(leaves, self._first.slots, strict=True)
        )


def _numbers(slot: Slot, gradient: Tensor | None) -> Tensor:
    if gradient is None:
        return torch.zeros(slot.leaf.shape, dtype=slot.dtype, device=slot.tensor.device)
    if slot.sparse:
        return dense(gradient).flatten()[slot.places].reshape(slot.leaf.shape)
    return dense(gradient)

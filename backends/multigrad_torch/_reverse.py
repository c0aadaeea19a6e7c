"""Reverse mode: the user's own backward, run by torch's engine at the point."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from multigrad._findings import Finding
from multigrad.backends import Array, Leaf
from multigrad.errors import Defect
from multigrad_torch import _cotangents
from multigrad_torch._batch import vectorised
from multigrad_torch._program import Program

_WRONG_SHAPE = re.compile(r"returned an invalid gradient at index (\d+) - got (.*) but expected .*?(\[.*?\])")


@dataclass
class _Graph:
    """One forward call with its graph."""

    outputs: list[Tensor]
    inputs: list[Tensor]
    used: bool = False


class Reverse:
    """Products u^T J at the point."""

    def __init__(self, program: Program, x: Array) -> None:
        self._program = program
        self._x = x
        self._graph: _Graph | None = None
        self._keeps = True
        self._compared = False

    @property
    def _attached(self) -> list[Leaf]:
        return [leaf for leaf in self._program.outputs.leaves if leaf.attached]

    def __call__(self, U: Array) -> Array:
        """(k, m) -> (k, n)."""
        if not self._attached:
            return np.zeros((len(U), len(self._x)))
        product = self._one(U[0])[None] if len(U) == 1 else self._several(U)
        if not self._keeps or self._program.state.written:
            self._graph = None  # what the graph has saved may have been put back since
        return product

    def _one(self, u: Array) -> Array:
        kept = self._graph is not None and self._graph.used
        try:
            gradient = self._run(u)
        except RuntimeError as error:
            self._graph = None
            if not kept:
                raise _explained(error) from error
            gradient, self._keeps = self._run(u), False
        if not self._compared:
            self._compared = True
            self._keeps = self._keeps and self._survives(u, gradient)
        return gradient

    def _survives(self, u: Array, gradient: Array) -> bool:
        """Whether a second backward on the same graph gives the same, or a second graph does no better."""
        try:
            again = self._run(u)
        except RuntimeError:
            again = np.full_like(gradient, np.nan)
        if np.array_equal(again, gradient, equal_nan=True):
            return True
        self._graph = None
        return not np.array_equal(self._run(u), gradient, equal_nan=True)

    def _run(self, u: Array) -> Array:
        with self._program.state, self._program.params.tracked(), torch.enable_grad():
            graph = self._graph = self._graph or self._forward()
            handed = self._hand(graph, u)
            try:
                gradients = _engine(graph, handed)
            except RuntimeError as error:
                if "single memory location" not in str(error):
                    raise
                handed = self._hand(graph, u, expand=False)
                gradients = _engine(graph, handed)
            self._note_written(handed, u)
            return self._read(gradients)

    def _several(self, U: Array) -> Array:
        with self._program.state, self._program.params.tracked(), torch.enable_grad():
            graph = self._graph = self._graph or self._forward()
            rows = [_cotangents.several(l, o, U) for l, o in zip(self._attached, graph.outputs, strict=True)]
            reached: list[bool] = []

            def backward(*cotangents: Tensor) -> tuple[Tensor, ...]:
                gradients = _engine(graph, cotangents)
                reached[:] = [gradient is not None for gradient in gradients]
                return tuple(gradient for gradient in gradients if gradient is not None)

            try:
                found = iter(vectorised(backward, [0] * len(rows))(*rows))
            except Exception:
                self._graph = None
                raise
            return self._read([next(found) if some else None for some in reached], (len(U),))

    def _forward(self) -> _Graph:
        program = self._program
        values, _ = program.split(program.values(self._x))
        leaves = [slot.hand(value).requires_grad_(True) for slot, value in zip(program.arguments, values, strict=True)]
        # A leaf of the graph refuses in-place writes, so the user gets one only where the user's own is one.
        handed = [
            leaf if slot.tensor.is_leaf and slot.tensor.requires_grad else leaf.clone()
            for slot, leaf in zip(program.arguments, leaves, strict=True)
        ]
        outputs = program.outputs.take(program.call(program.arrange(handed)))
        attached = [one for one, leaf in zip(outputs, program.outputs.leaves, strict=True) if leaf.attached]
        return _Graph(attached, [*leaves, *(slot.tensor for slot in program.params.slots)])

    def _hand(self, graph: _Graph, u: Array, expand: bool = True) -> list[Tensor]:
        pairs = zip(self._attached, graph.outputs, strict=True)
        return [_cotangents.single(leaf, output, u, expand) for leaf, output in pairs]

    def _note_written(self, handed: Sequence[Tensor], u: Array) -> None:
        for leaf, cotangent in zip(self._attached, handed, strict=True):
            if _cotangents.written(leaf, cotangent, u):
                evidence = "the backward writes to the cotangent that it is given, which other nodes of the graph share"
                remedy = "work on a clone of the incoming gradient"
                self._program.note(Finding("mutates_cotangent", evidence, where=leaf.path, remedy=remedy))

    def _read(self, gradients: Sequence[Tensor | None], rows: tuple[int, ...] = ()) -> Array:
        slots = self._program.slots
        return np.concatenate([s.read(g, rows) for s, g in zip(slots, gradients, strict=True)], axis=-1)


def _engine(graph: _Graph, cotangents: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    graph.used = True
    return torch.autograd.grad(graph.outputs, graph.inputs, cotangents, retain_graph=True, allow_unused=True)


def _explained(error: RuntimeError) -> Exception:
    match = _WRONG_SHAPE.search(str(error))
    if match is None:
        return error
    index, got, expected = match.groups()
    node = str(error).partition(" ")[2].partition(" returned")[0] or "the backward"
    evidence = f"{node} returns a gradient of shape {got} for its argument {index}, which has shape {expected}"
    return Defect(
        Finding("wrong_shape", evidence, where="reverse", remedy="return each gradient in the shape of its argument")
    )

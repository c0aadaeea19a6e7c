"""One forward call with its graph, and torch's engine on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from multigrad.backends import Array
from multigrad_torch._data.outputs import has_graph
from multigrad_torch._program import Program
from multigrad_torch._promotion.promote import AsWritten, Promotion


@dataclass
class Graph:
    """The outputs that carry a graph, and the leaves whose gradient is wanted.

    Attributes:
        handed: all that the function was given.
        evaluation: the arithmetic of both passes.
        used: whether a backward has run on it.
    """

    outputs: list[Tensor]
    inputs: list[Tensor]
    handed: Sequence[Any]
    evaluation: Promotion | AsWritten
    used: bool = False


def trace(program: Program, x: Array) -> tuple[Graph, list[Tensor]]:
    """Call the function once at the point, every checked leaf requiring a gradient: the graph, and all outputs.

    The state must be open, ``params.tracked()`` too.
    """
    evaluation = program.evaluation()
    leaves, handed, outputs = program.tracked(x, evaluation)
    return Graph([output for output in outputs if has_graph(output)], leaves, handed, evaluation), outputs


def engine(graph: Graph, cotangents: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs, None where a leaf is not reached."""
    graph.used = True
    return graph.evaluation.gradients(graph.outputs, cotangents, graph.inputs)

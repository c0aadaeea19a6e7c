"""One forward call with its graph, and torch's engine on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from multigrad_torch._promote import AsWritten, Promotion


@dataclass
class Graph:
    """The outputs that carry a graph, the leaves whose gradient is wanted, and the arithmetic of both passes."""

    outputs: list[Tensor]
    inputs: list[Tensor]
    evaluation: Promotion | AsWritten
    used: bool = False


def engine(graph: Graph, cotangents: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs, None where a leaf is not reached."""
    graph.used = True
    return graph.evaluation.gradients(graph.outputs, cotangents, graph.inputs)

"""One forward call with its graph, and torch's engine on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.autograd import Variable


@dataclass
class Graph:
    """The outputs that carry a graph, and the leaves whose gradient is wanted."""

    outputs: list[Tensor]
    inputs: list[Tensor]
    used: bool = False


def engine(graph: Graph, cotangents: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    """Like ``torch.autograd.grad``, without what that does in Python."""
    graph.used = True
    found: tuple[Tensor | None, ...] = Variable._execution_engine.run_backward(
        tuple(graph.outputs), tuple(cotangents), True, False, tuple(graph.inputs), True, accumulate_grad=False
    )
    return found

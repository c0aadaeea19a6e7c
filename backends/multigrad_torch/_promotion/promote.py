"""Evaluate a function written for float32, float16 or bfloat16 in float64, its code and its state left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.nn.attention import SDPBackend, sdpa_kernel

from multigrad_torch._autograd.eager import eager
from multigrad_torch._autograd.engine import Gradients, run_backward
from multigrad_torch._data.dtypes import WIDE
from multigrad_torch._promotion.function_mode import DoubleMode
from multigrad_torch._promotion.rewrites import default_dtype
from multigrad_torch._promotion.shadows import Shadows


class Promotion:
    """One evaluation in float64: the function, and the backward passes that belong to it.

    Args:
        nominal: the dtype that the user's code is written for, and is told that its tensors have.

    Attributes:
        shadows: which tensors stand for which of the user's.
    """

    def __init__(self, nominal: torch.dtype | None = None) -> None:
        self.shadows = Shadows(nominal)
        self._mode = DoubleMode(self.shadows, torch.get_default_dtype())
        self._edges: dict[int, Any] = {}

    def take(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Have the user told that this float64 input is of that dtype; needed where inputs differ in dtype."""
        taken: torch.Tensor = self.shadows.adopt(tensor, dtype)
        return taken

    def evaluated(self, params: Sequence[torch.Tensor]) -> None:
        """Keep the places in the graph of tensors that are in float64 for now: back in their own dtype, they lose them."""
        self._edges = {id(tensor): get_gradient_edge(tensor) for tensor in params if tensor.dtype not in WIDE}

    def gradients(
        self,
        outputs: Sequence[torch.Tensor],
        cotangents: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        create_graph: bool = False,
    ) -> Gradients:
        """The vjp of what was evaluated; None for an input that was not used."""
        wanted = [self._edges.get(id(tensor), tensor) for tensor in inputs]
        with self.active():
            return torch.autograd.grad(
                outputs, wanted, cotangents, retain_graph=True, create_graph=create_graph, allow_unused=True
            )

    def accumulate(self, outputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]) -> None:
        """The same, left in ``.grad``."""
        with self.active():
            torch.autograd.backward(outputs, cotangents, retain_graph=True)

    @contextmanager
    def active(self) -> Iterator[Promotion]:
        """Promote what is called within. May be entered again, for a later backward pass."""
        with ExitStack() as stack:
            stack.enter_context(default_dtype(torch.float64))
            # The other kernels have no batching rule, or no double.
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(eager())
            stack.enter_context(self._mode)
            yield self


class AsWritten:
    """One evaluation in the arithmetic that the function is written for; what ``Promotion`` is in float64."""

    def active(self) -> AbstractContextManager[object]:
        """Nothing is changed within."""
        return nullcontext()

    def take(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """The input is what it is."""
        return tensor

    def evaluated(self, params: Sequence[torch.Tensor]) -> None:
        """They keep their places in the graph."""

    def gradients(
        self,
        outputs: Sequence[torch.Tensor],
        cotangents: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        create_graph: bool = False,
    ) -> Gradients:
        """Like ``torch.autograd.grad``, without what that does in Python."""
        return run_backward(outputs, cotangents, inputs, retain_graph=True, create_graph=create_graph)

    def accumulate(self, outputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]) -> None:
        """Like ``torch.autograd.backward``."""
        run_backward(outputs, cotangents, retain_graph=True, create_graph=False, accumulate=True)

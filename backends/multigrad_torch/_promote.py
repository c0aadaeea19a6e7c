"""Evaluate a function written for float32, float16 or bfloat16 in float64, its code and its state left alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from multigrad_torch._function_mode import DoubleMode
from multigrad_torch._module_state import module_state_kept
from multigrad_torch._rewrites import default_dtype
from multigrad_torch._shadows import Shadows


class Promotion:
    """One evaluation in double: the function, and the backward passes that belong to it.

    Attributes:
        shadows: which tensors stand for which of the user's.
    """

    def __init__(
        self, nominal: torch.dtype | None = None, seeds: Mapping[torch.Tensor, torch.Tensor] | None = None
    ) -> None:
        self.shadows = Shadows(nominal, seeds or {})
        self._mode = DoubleMode(self.shadows, torch.get_default_dtype())

    def take(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Have the user told that this float64 input is of that dtype; needed where inputs differ in dtype."""
        taken: torch.Tensor = self.shadows.adopt(tensor, dtype)
        return taken

    @contextmanager
    def active(self) -> Iterator[Promotion]:
        """Promote what is called within. May be entered again, for a later backward pass."""
        with ExitStack() as stack:
            stack.enter_context(default_dtype(torch.float64))
            stack.enter_context(module_state_kept())
            # The other kernels have no batching rule, or no double.
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            if "torch._dynamo" in sys.modules:
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(self._mode)
            yield self


@contextmanager
def promoted(
    nominal: torch.dtype | None = None, seeds: Mapping[torch.Tensor, torch.Tensor] | None = None
) -> Iterator[Promotion]:
    """Run what is called within in double.

    Args:
        nominal: the dtype that the user's code is written for and is told that its tensors have.
        seeds: float64 tensors to stand for tensors of the user's, parameters say, at other values than their own.
    """
    with Promotion(nominal, seeds).active() as promotion:
        yield promotion


def needs_promotion(fn: Callable[..., Any], xs: Sequence[Any]) -> bool:
    raise NotImplementedError

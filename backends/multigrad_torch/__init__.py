"""The PyTorch adapter: makes flat functions of functions and modules on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from multigrad.backends import Options
from multigrad_torch._flat import TorchFunction


class TorchBackend:
    """The adapter that the core finds under the name ``torch``."""

    name = "torch"
    options: frozenset[str] = frozenset()

    def recognises(self, leaf: object) -> bool:
        return isinstance(leaf, torch.Tensor)

    def flatten(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> TorchFunction:
        return TorchFunction(fn, inputs, options)


__all__ = ["TorchBackend", "TorchFunction"]

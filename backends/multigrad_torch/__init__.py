"""The PyTorch adapter: makes flat functions of functions and modules on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from multigrad.backends import Options
from multigrad_torch._flat import TorchFunction


class TorchBackend:
    """The adapter that the core finds under the name ``torch``."""

    name = "torch"
    options = frozenset({"jac", "params"})

    def recognises(self, leaf: object) -> bool:
        return isinstance(leaf, (torch.Tensor, torch.nn.Module))

    def flatten(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> TorchFunction:
        return TorchFunction(fn, inputs, options)

    def array(self, value: Any) -> torch.Tensor:
        if isinstance(value, torch.Tensor):
            return value
        if not isinstance(value, np.ndarray):
            return torch.utils.dlpack.from_dlpack(value)
        # Tensors have no read-only memory and no negative strides.
        shared = value.flags.writeable and min(value.strides, default=0) >= 0
        return torch.from_numpy(value if shared else value.copy())


__all__ = ["TorchBackend", "TorchFunction"]

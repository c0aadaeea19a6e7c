"""One port: the original in PyTorch, the port in JAX, and the port with a mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

Function = Callable[..., Any]


@dataclass(frozen=True)
class Port:
    """A function in PyTorch and its port to JAX.

    Attributes:
        name: unique.
        torch: the original.
        jax: the port, right.
        mistakes: the port with a mistake, by the mistake's name.
        inputs: NumPy arrays in float64 or complex128; integers and Booleans are held fixed.
        mapping: how the port's leaves lie, as for ``check_consistency``.
        numpy: a third party, where there is one.
        accept: what both mean, as for ``check_consistency``.
        fixed: the inputs that PyTorch cannot differentiate by.
    """

    name: str
    torch: Function
    jax: Function
    mistakes: Mapping[str, Function]
    inputs: tuple[Any, ...]
    mapping: Mapping[str, Any] = field(default_factory=dict)
    numpy: Function | None = None
    accept: tuple[str, ...] = ()
    fixed: tuple[int, ...] = ()

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The inputs; as tensors of PyTorch where some of them are held fixed."""
        if not self.fixed:
            return self.inputs
        given = [torch.tensor(x) for x in self.inputs]
        for k, tensor in enumerate(given):
            tensor.requires_grad_(tensor.is_floating_point() and k not in self.fixed)
        return tuple(given)

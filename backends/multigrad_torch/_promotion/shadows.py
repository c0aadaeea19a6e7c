"""Float64 twins of the low-precision tensors that a function finds outside itself."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from multigrad_torch._data.dtypes import WIDE, narrow


def _is_transformed(tensor: torch.Tensor) -> bool:
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


@contextmanager
def _outside_transforms(tensor: torch.Tensor) -> Iterator[None]:
    """Work on a plain tensor as if no vmap or grad were going on, so that the result outlives them."""
    if _is_transformed(tensor):
        yield
    else:
        with torch._C._DisableFuncTorch(), _disable_current_modes():
            yield


def _twin(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in double. That of a leaf is a leaf, so that its gradient is not rounded on the way back."""
    wide = WIDE[tensor.dtype]
    is_parameter = isinstance(tensor, nn.Parameter)
    if _is_transformed(tensor) or not (tensor.is_leaf and (tensor.requires_grad or is_parameter)):
        return tensor.to(wide)
    detached = tensor.detach().to(wide)
    twin = nn.Parameter(detached, tensor.requires_grad) if is_parameter else detached.requires_grad_()
    if tensor.grad is not None:
        twin.grad = tensor.grad.to(wide)
    return twin


class Shadows:
    """Which float64 tensor stands for which of the user's, and what dtype the user takes it for.

    Attributes:
        nominal: the dtype that users are told for a float64 tensor of which nothing else is known.
        low: the low-precision dtypes met so far. Empty: the function works in double by itself.
        state: whether the function wrote in place to a tensor that it found outside itself.
    """

    def __init__(self, nominal: torch.dtype | None) -> None:
        self.nominal = nominal
        self.low: set[torch.dtype] = set()
        self.state = False
        # The original is kept alive with its twin, so that no other tensor can get its id.
        self._twins: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], torch.dtype | None]] = {}

    def originals(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The tensors found outside the function, each with its twin."""
        yield from self._twins.values()

    def look(self, tensor: torch.Tensor) -> torch.Tensor:
        """What stands for the tensor if something does already, else the tensor."""
        known = self._twins.get(id(tensor))
        return tensor if known is None else known[1]

    def widen(self, value: Any) -> Any:
        """Put float64 for low precision wherever it occurs in an argument: tensor, dtype, or a container of them."""
        if isinstance(value, torch.Tensor):
            return self._widen_tensor(value)
        if isinstance(value, torch.dtype):
            return self._widen_dtype(value)
        if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            items = [self.widen(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {key: self.widen(item) for key, item in value.items()}
        return value

    def _widen_tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        known = self._twins.get(id(tensor))
        if known is not None:
            return known[1]
        if tensor.dtype not in WIDE:
            return tensor
        self.note(tensor.dtype)
        with _outside_transforms(tensor):
            twin = _twin(tensor)
        self._twins[id(tensor)] = (tensor, twin)
        return twin

    def _widen_dtype(self, dtype: torch.dtype) -> torch.dtype:
        return WIDE.get(self.note(dtype), dtype)

    def note(self, dtype: torch.dtype) -> torch.dtype:
        """Remember that the user's own run has something of that dtype."""
        if dtype in WIDE:
            self.low.add(dtype)
        return dtype

    def adopt(self, out: Any, taken_for: torch.dtype | None = None) -> Any:
        """Widen what a call returned, and remember it as the function's own, which the user takes for that dtype."""
        if isinstance(out, torch.Tensor):
            if out.dtype in WIDE:
                taken_for = taken_for or self.note(out.dtype)
                out = out.to(WIDE[out.dtype])
            self._made[id(out)] = (weakref.ref(out), taken_for or self._known_as(out))
        elif isinstance(out, (list, tuple)) and not isinstance(out, torch.Size):
            items = [self.adopt(item, taken_for) for item in out]
            if any(new is not old for new, old in zip(items, out, strict=True)):
                return type(out)(*items) if hasattr(out, "_fields") else type(out)(items)
        return out

    def _is_own(self, tensor: torch.Tensor) -> bool:
        made = self._made.get(id(tensor))
        return made is not None and made[0]() is tensor

    def _known_as(self, tensor: torch.Tensor) -> torch.dtype | None:
        return self._made[id(tensor)][1] if self._is_own(tensor) else None

    def user_dtype(self, tensor: torch.Tensor) -> torch.dtype:
        """The dtype that the tensor has in the user's own run."""
        known = self._twins.get(id(tensor))
        if known is not None:
            return known[0].dtype
        return self._known_as(tensor) or narrow(tensor.dtype, self.nominal)

    def guard(self, tensor: torch.Tensor) -> None:
        """Before a write in place: have a copy stand for a tensor that the function did not make."""
        if id(tensor) in self._twins or self._is_own(tensor):
            return
        self.state = True
        # Low-precision tensors get a twin in any case; a view or a node of the graph is not state.
        if tensor.dtype not in WIDE and not tensor.requires_grad and not tensor._is_view():
            with _outside_transforms(tensor):
                self._twins[id(tensor)] = (tensor, tensor.clone())

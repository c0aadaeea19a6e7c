"""The function mode under which every torch call of the user's code is made in double."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from multigrad_torch._promotion.rewrites import REWRITES

if TYPE_CHECKING:
    from multigrad_torch._promotion.shadows import Shadows

_IN_PLACE_OPERATORS = frozenset(
    f"__{name}__"
    for name in ("setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor")
)
# They end in an underscore and change no value.
_NOT_WRITES = frozenset({"requires_grad_", "detach_", "share_memory_"})


@cache
def _in_place(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    return name in _IN_PLACE_OPERATORS or name.endswith("_") and not name.endswith("__") and name not in _NOT_WRITES


def _written(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments that the call writes to."""
    if "out" in kwargs:
        return kwargs["out"] if isinstance(kwargs["out"], tuple) else (kwargs["out"],)
    return args[:1] if _in_place(func) else ()


class DoubleMode(TorchFunctionMode):
    """Gives every torch call float64 for the low-precision tensors and dtypes among its arguments.

    The mode is off while a torch function runs, but on in what is not one: the user's code, the forward and backward
    of a custom ``autograd.Function``, a module's forward.
    """

    def __init__(self, shadows: Shadows, user_default: torch.dtype) -> None:
        super().__init__()
        self.shadows = shadows
        self.user_default = user_default

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        rewrite = REWRITES.get(func, DoubleMode.call)
        return rewrite(self, func, args, kwargs or {})

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Make the call in double."""
        for tensor in _written(func, args, kwargs):
            if isinstance(tensor, torch.Tensor):
                self.shadows.guard(tensor)
        asked = next((a for a in (*args[:3], *kwargs.values()) if isinstance(a, torch.dtype)), None)
        with self._hooked():
            out = func(*self.shadows.widen(args), **self.shadows.widen(kwargs))
        return self.shadows.adopt(out, asked)

    def _hooked(self) -> AbstractContextManager[object]:
        """The user's hooks for saved tensors, which torch calls while the mode is off, are called with it on."""
        hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
        if hooks is None or getattr(hooks[0], "__module__", "").startswith("torch."):
            return nullcontext()
        pack, unpack = hooks

        def packed(tensor: torch.Tensor) -> Any:
            with self:
                return pack(tensor)

        return torch.autograd.graph.saved_tensors_hooks(packed, unpack)

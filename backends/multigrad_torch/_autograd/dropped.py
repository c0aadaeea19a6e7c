"""What loses tangents: it takes a dual number and returns a plain one, and torch says no word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from multigrad_torch._autograd.dual import tangent_in
from multigrad_torch._autograd.eager import EagerMode
from multigrad_torch._data.module_calls import module_calls


class Dropped(TorchFunctionMode):
    """While it lasts, watches custom operators that the user's code calls.

    Attributes:
        operators: those that were given a tangent and returned none.
        seen: all that were called.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []
        self.seen: set[str] = set()

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        returned = func(*args, **(kwargs or {}))
        if _is_foreign(func):
            self.seen.add(_name(func))
            if _carries((args, kwargs)) and not _carries(returned):
                self.operators.append(_name(func))
        return returned


class Hidden(EagerMode):  # type: ignore[no-untyped-call]
    """While it lasts, watches custom operators below torch's own functions in Python, where no function mode is on.

    Tangents are out of sight here, but an operator registered by ``torch.library`` cannot have a rule for them.

    Attributes:
        operators: those that were given floating or complex tensors.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if _is_foreign(func) and any(_is_differentiable(leaf) for leaf in pytree.tree_leaves((args, kwargs))):
            self.operators.append(_name(func))
        return func(*args, **(kwargs or {}))


@contextmanager
def scripted_modules() -> Iterator[list[str]]:
    """While it lasts, lists the scripted modules that are called: once TorchScript has optimised one, it loses tangents."""
    called: list[str] = []

    def heard(module: torch.nn.Module) -> None:
        if isinstance(module, torch.jit.ScriptModule):
            called.append(f"a module that TorchScript has optimised ({module.original_name})")

    with module_calls(heard):
        yield called


def _is_foreign(func: Callable[..., Any]) -> bool:
    return getattr(func, "namespace", "aten") not in ("aten", "prims", "prim")


def _name(func: Callable[..., Any]) -> str:
    """Without the overload, which is told at one level and not at the other."""
    return ".".join(str(func).split(".")[:2])


def _is_differentiable(leaf: object) -> bool:
    return isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _carries(values: Any) -> bool:
    leaves = pytree.tree_leaves(values)
    return any(isinstance(leaf, Tensor) and tangent_in(leaf) is not None for leaf in leaves)

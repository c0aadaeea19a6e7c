"""Custom operators that lose tangents: torch lets them take a dual number and return a plain one, without a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from multigrad_torch._dual import tangent_in


class Dropped(TorchFunctionMode):
    """While it lasts, watches operators from outside torch.

    Attributes:
        operators: those that were given a tangent and returned none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        returned = func(*args, **(kwargs or {}))
        foreign = getattr(func, "namespace", "aten") not in ("aten", "prims", "prim")
        if foreign and _carries((args, kwargs)) and not _carries(returned):
            self.operators.append(str(func))
        return returned


def _carries(values: Any) -> bool:
    leaves = pytree.tree_leaves(values)
    return any(isinstance(leaf, Tensor) and tangent_in(leaf) is not None for leaf in leaves)

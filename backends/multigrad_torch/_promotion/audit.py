"""Which operations still work in low precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from multigrad_torch._autograd.eager import EagerMode
from multigrad_torch._data.dtypes import WIDE


class Audit(EagerMode):  # type: ignore[no-untyped-call]
    """Notes the operations beneath all else that give a low-precision tensor.

    Attributes:
        operations: their names and dtypes, in the order of their first appearance.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: dict[tuple[str, torch.dtype], None] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():  # a function mode would answer for the dtype
            for leaf in (out,) if isinstance(out, torch.Tensor) else tree_leaves(out):
                if isinstance(leaf, torch.Tensor) and leaf.dtype in WIDE:
                    self.operations[str(getattr(func, "overloadpacket", func)), leaf.dtype] = None
        return out

"""Which operations still work in low precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from multigrad_torch._dtypes import WIDE


class Audit(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations beneath all else that give a low-precision tensor.

    Attributes:
        operations: their names and dtypes, ``"aten.mm: float32"``, in the order of their first appearance.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: dict[str, None] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():  # a function mode would answer for the dtype
            for leaf in tree_leaves(out):
                if isinstance(leaf, torch.Tensor) and leaf.dtype in WIDE:
                    name = str(getattr(func, "overloadpacket", func))
                    self.operations[f"{name}: {str(leaf.dtype).removeprefix('torch.')}"] = None
        return out


def low_precision_operations(run: Callable[[], object]) -> tuple[str, ...]:
    """Run it and name the operations that gave a low-precision result."""
    with Audit() as audit:
        run()
    return tuple(audit.operations)

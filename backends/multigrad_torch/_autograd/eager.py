"""Without the compiler: it can't compile under our modes, and some of torch's own functions are compiled when called."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def eager() -> AbstractContextManager[object]:
    """While it lasts, what is compiled runs as it is written."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


class EagerMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode under which ``torch.cond`` and its like can be called, and after which they still can."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._stack = ExitStack()

    def __enter__(self) -> Any:
        self._stack.enter_context(eager())
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        self._stack.close()

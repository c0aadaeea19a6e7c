"""Hearing of every module that is called, wherever the function got it from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.nn import Module
from torch.nn.modules.module import register_module_forward_pre_hook


@contextmanager
def module_calls(heard: Callable[[Module], object]) -> Iterator[None]:
    """While it lasts, ``heard`` gets every module before its forward."""

    def before(module: Module, _: Any) -> None:
        heard(module)

    handle = register_module_forward_pre_hook(before)
    try:
        with warnings.catch_warnings():
            # A compiled module calls the hook twice, which does no harm here.
            warnings.filterwarnings("ignore", "Using `torch.compile", UserWarning)
            yield
    finally:
        handle.remove()

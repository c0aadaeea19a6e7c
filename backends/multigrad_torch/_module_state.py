"""What modules keep on themselves during a call, put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

_TABLES = ("_buffers", "_parameters", "_modules")


def _restore(table: dict[str, Any], saved: dict[str, Any]) -> None:
    table.clear()
    table.update(saved)


@contextmanager
def module_state_kept() -> Iterator[None]:
    """Undo what modules rebind on themselves: ``self.h = h``, spectral_norm's ``_u``, a cached activation.

    A hook sees every module that is called, wherever the function keeps it. References are put back, not copies:
    what is written in place is not undone here.
    """
    saved: dict[int, tuple[nn.Module, dict[str, Any], dict[str, dict[str, Any]]]] = {}

    def remember(module: nn.Module, _: object) -> None:
        # A scripted module's attributes are not Python's to rebind.
        if id(module) not in saved and not isinstance(module, torch.jit.ScriptModule):
            tables = {name: dict(module.__dict__[name]) for name in _TABLES}
            saved[id(module)] = (module, dict(module.__dict__), tables)

    hook = register_module_forward_pre_hook(remember)
    try:
        yield
    finally:
        hook.remove()
        for module, attributes, tables in saved.values():
            _restore(module.__dict__, attributes)
            for name, table in tables.items():
                _restore(module.__dict__[name], table)

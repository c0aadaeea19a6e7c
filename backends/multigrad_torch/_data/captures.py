"""What a function reaches besides its arguments: modules, tensors and random generators."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Found = dict[str, Any]


def reached(fn: Callable[..., Any]) -> Found:
    """The modules, tensors and generators that ``fn`` can reach, by name; the function itself goes by ``""``.

    Looked through: closure cells, default arguments, the globals that the code names, ``functools.partial``, the
    object of a bound method, the attributes of a callable object, functions found there, the methods of an
    ``autograd.Function``, and one level of containers.
    """
    found: Found = {}
    seen: set[int] = set()
    pending: list[tuple[str, Any]] = [("", fn)]
    while pending:
        name, value = pending.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.nn.Module | Tensor | torch.Generator):
            found[name] = value
        else:
            pending += [(_join(name, label), inner) for label, inner in _inside(name, value)]
    return found


def _join(name: str, label: str) -> str:
    return f"{name}.{label}" if name and not label.startswith("[") else name + label


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, functools.partial):
        yield from (("func", value.func), *_items(value.args), *value.keywords.items())
    elif isinstance(value, types.MethodType):
        yield from _attributes(value.__self__)
        yield from _of_function(value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type):
        yield from _of_class(value)
    elif type(value).__module__.partition(".")[0] not in ("torch", "numpy", "builtins"):
        yield from _attributes(value)
    elif name.count("[") == 0:
        yield from _items(value)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, inner in pairs:
        yield (f'["{key}"]' if isinstance(key, str) else f"[{key!r}]"), inner


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(owner, torch.nn.Module | Tensor):
        yield "self", owner
    elif isinstance(owner, type):
        yield from _of_class(owner)
    elif not isinstance(owner, types.ModuleType):
        yield from getattr(owner, "__dict__", {}).items()


def _of_class(owner: type) -> Iterator[tuple[str, Any]]:
    if issubclass(owner, torch.autograd.Function):
        for base in owner.__mro__:
            for method in vars(base).values():
                yield from _of_function(getattr(method, "__func__", method))


def _of_function(function: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(function, types.FunctionType) or _is_torchs(function):
        return
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
    defaults = function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    yield from ((name, function.__globals__[name]) for name in sorted(_names(code)) if name in function.__globals__)


def _is_torchs(function: types.FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == "torch"


def _names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*(_names(one) for one in inner))

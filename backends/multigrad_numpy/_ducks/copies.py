"""Copies of the user's classes and objects, whose methods are rebound.

A copied class derives from the original, so that isinstance holds; and it derives from the copies of the original's
bases, so that ``super()`` finds the rebound methods. A copied object has the copied class and rebound attributes.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

Rebind = Callable[[Any], Any]


def _quiet() -> type:
    """A base that keeps the ``__init_subclass__`` of the others from noticing the copy."""
    return type("_Quiet", (), {"__init_subclass__": classmethod(lambda cls, **kwargs: None), "__slots__": ()})


def _member(value: Any, rebind: Rebind) -> Any:
    """A class's attribute, rebound."""
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(rebind(value.__func__))
    if isinstance(value, property):
        get, set_, delete = (f and rebind(f) for f in (value.fget, value.fset, value.fdel))
        return property(get, set_, delete, value.__doc__)
    if isinstance(value, functools.cached_property):
        copy: Any = functools.cached_property(rebind(value.func))
        copy.attrname = value.attrname
        return copy
    if isinstance(value, functools.partialmethod):
        return functools.partialmethod(rebind(value.func), *value.args, **value.keywords)
    if isinstance(value, (types.FunctionType, np.ndarray, list, dict)) or hasattr(value, "__wrapped__"):
        return rebind(value)
    return value


_NOT_COPIED = frozenset(
    {"__dict__", "__weakref__", "__slots__", "__init_subclass__", "__class_getitem__", "__annotations__"}
)


def copy_class(original: type, rebinding: Any) -> type:
    """A subclass of ``original`` with rebound methods; ``original`` itself where it cannot be subclassed (an Enum)."""
    from multigrad_numpy._ducks.rebind import is_users

    slots = {n for c in original.__mro__ for n in getattr(c, "__slots__", ())}
    bases = [rebinding(base) for base in original.__bases__ if is_users(base)]
    changed = [copy for copy, base in zip(bases, filter(is_users, original.__bases__), strict=True) if copy is not base]
    try:
        copy = type(original)(original.__name__, (_quiet(), original, *changed), {"__module__": original.__module__})
    except Exception:  # noqa: BLE001 - a metaclass like that of Enum has rules of its own
        return original
    rebinding.remember(original, copy)
    for name, value in vars(original).items():
        if name not in _NOT_COPIED and name not in slots and (new := _member(value, rebinding)) is not value:
            setattr(copy, name, new)
    copy.__qualname__ = original.__qualname__
    return copy


def _slots(cls: type) -> list[str]:
    names = [getattr(c, "__slots__", ()) for c in cls.__mro__]
    return [
        n
        for group in names
        for n in ([group] if isinstance(group, str) else group)
        if n not in ("__dict__", "__weakref__")
    ]


def copy_instance(original: Any, rebinding: Any) -> Any:
    """An object of the copied class with rebound attributes; ``original`` where its layout is not Python's own."""
    cls = type(original)
    copied = cls if cls is types.SimpleNamespace else rebinding(cls)
    try:
        copy = object.__new__(copied) if cls is not types.SimpleNamespace else types.SimpleNamespace()
    except TypeError:
        return original
    if copied is cls and cls is not types.SimpleNamespace:
        return original
    rebinding.remember(original, copy)
    vars(copy).update({name: rebinding(value) for name, value in getattr(original, "__dict__", {}).items()})
    for name in _slots(cls):
        if hasattr(original, name):
            object.__setattr__(copy, name, rebinding(getattr(original, name)))
    return copy

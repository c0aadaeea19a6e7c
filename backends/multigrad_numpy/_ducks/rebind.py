"""A copy of the user's function that sees proxies of NumPy, SciPy and ``math``.

The copy shares the code object; its globals are a dictionary that looks a name up in the user's module when it is
first needed and hands it on rebound, and so on through the user's own modules, closures, classes and objects. The
user's things are never changed: arrays, lists, dictionaries and objects that the function could write to are copied.
A ``Rebinding`` serves one call, so that whatever the function keeps in a global or an object ends with the call.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.copies import copy_class, copy_instance
from multigrad_numpy._ducks.creation import any_duck
from multigrad_numpy._ducks.duck import NUMERIC, DuckArray
from multigrad_numpy._ducks.proxies import PROXIED, FrozenProxy, InstanceProxy, ModuleProxy, proxy, root_of
from multigrad_numpy._ducks.sparse import SparseProxy
from multigrad_numpy._ducks.vectorize import Vectorize

# Code of these is run as it is: they work on duck arrays by themselves, or never see one.
_KEPT = frozenset(sys.stdlib_module_names) - PROXIED - {"__main__"} | frozenset(
    [
        "jax",
        "jaxlib",
        "torch",
        "autograd",
        "multigrad",
        "multigrad_numpy",
        "multigrad_jax",
        "multigrad_torch",
        "opt_einsum",
        "ml_dtypes",
        "pytest",
    ]
)
_CONTAINERS = (list, dict, tuple)


def is_users(thing: Any) -> bool:
    """Whether a function, class or module is the user's own (or of some third package), so that it is rebound."""
    return root_of(thing) not in _KEPT | PROXIED


class _Globals(dict[str, Any]):
    """The globals of a copied function. CPython asks ``__missing__`` for names that it has not seen yet."""

    def __init__(self, original: dict[str, Any], rebinding: Rebinding) -> None:
        super().__init__(__name__=original.get("__name__"), __builtins__=rebinding.builtins)
        self._original, self._rebinding = original, rebinding

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._rebinding(self._original[name])
        return value


class Rebinding:
    """Rebinds whatever it is called with; the same thing to the same copy."""

    def __init__(self, kind: type[DuckArray], copies: bool = True) -> None:
        self.kind = kind
        self._copies_arrays = copies
        self._copies: dict[int, tuple[Any, Any]] = {}  # by identity; the original is kept so that its id stays taken
        self._globals: dict[int, _Globals] = {}

    def __call__(self, thing: Any) -> Any:
        known = self._copies.get(id(thing))
        if known is not None:
            return known[1]
        copy = self._copy(thing)
        if copy is not thing:
            self._copies[id(thing)] = (thing, copy)
        return copy

    def remember(self, thing: Any, copy: Any) -> None:
        """Enter a copy before its parts are rebound, for things that contain themselves."""
        self._copies[id(thing)] = (thing, copy)

    @functools.cached_property
    def builtins(self) -> dict[str, Any]:
        """Python's builtins, with an ``import`` statement whose modules are rebound."""
        return {**vars(builtins), "__import__": self._import, "print": self._print}

    def _import(self, *args: Any, **kwargs: Any) -> Any:
        return self(builtins.__import__(*args, **kwargs))

    def _print(self, *values: Any, **kwargs: Any) -> None:
        print(*(repr(v) if any_duck(v) else v for v in values), **kwargs)

    def _copy(self, thing: Any) -> Any:
        kind = type(thing)
        if issubclass(kind, (DuckArray, Vectorize, InstanceProxy, FrozenProxy, SparseProxy, ModuleProxy)):
            return thing
        if kind is np.ndarray:
            return self.kind.plain(self._array(thing)) if thing.dtype.kind in NUMERIC else thing
        if issubclass(kind, _CONTAINERS):
            return self._container(thing)
        if kind is types.FunctionType and is_users(thing):
            return self.function(thing)
        if kind is types.MethodType and (is_users(thing.__func__) or is_users(kind)):
            return types.MethodType(self(thing.__func__), self(thing.__self__))
        if issubclass(kind, types.ModuleType) and thing.__name__.partition(".")[0] not in _KEPT | PROXIED:
            return ModuleProxy(thing, self)
        if kind is functools.partial:
            return functools.partial(self(thing.func), *map(self, thing.args), **self(thing.keywords))
        if kind is np.vectorize:
            return Vectorize(self.kind, self(thing.pyfunc), thing.otypes, None, thing.excluded, False, thing.signature)
        if isinstance(thing, type):
            return copy_class(thing, self) if is_users(thing) else thing
        wrapped = getattr(thing, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType) and kind is not types.FunctionType and root_of(kind) not in PROXIED:
            return self(wrapped)  # functools.lru_cache, numba
        if is_users(kind) or kind is types.SimpleNamespace:
            return copy_instance(thing, self)
        return proxy(self.kind, thing)

    def _array(self, thing: Any) -> Any:
        if self._copies_arrays:
            return thing.copy(order="K")
        view = thing.view()
        view.flags.writeable = False
        return view

    def _container(self, thing: Any) -> Any:
        if type(thing) is list:
            copy: list[Any] = []
            self.remember(thing, copy)
            copy.extend(map(self, thing))
            return copy
        if type(thing) is dict:
            table: dict[Any, Any] = {}
            self.remember(thing, table)
            table.update((key, self(value)) for key, value in thing.items())
            return table
        if type(thing) is tuple or hasattr(thing, "_fields"):
            parts = [self(item) for item in thing]
            if all(a is b for a, b in zip(parts, thing, strict=True)):
                return thing
            return tuple(parts) if type(thing) is tuple else type(thing)(*parts)
        return thing

    def function(self, original: types.FunctionType) -> types.FunctionType:
        """Copy a Python function."""
        names = self._globals.setdefault(id(original.__globals__), _Globals(original.__globals__, self))
        closure = original.__closure__
        cells = None if closure is None else tuple(types.CellType() for _ in closure)
        copy = types.FunctionType(original.__code__, names, original.__name__, None, cells)
        self.remember(original, copy)
        copy.__defaults__ = self(original.__defaults__)
        copy.__kwdefaults__ = self(original.__kwdefaults__)
        copy.__dict__.update({k: v for k, v in original.__dict__.items() if k != "__wrapped__"})
        copy.__qualname__, copy.__module__ = original.__qualname__, original.__module__
        for name, old, new in zip(original.__code__.co_freevars, closure or (), cells or (), strict=True):
            with contextlib.suppress(ValueError):  # a cell that is still empty
                # super() looks for the class in which the method was written
                new.cell_contents = old.cell_contents if name == "__class__" else self(old.cell_contents)
        return copy


def rebind(function: Callable[..., Any], kind: type[DuckArray], copies: bool = True) -> Callable[..., Any]:
    """A copy of ``function`` for one call on arrays of ``kind``.

    Unless ``copies``, arrays that it sees elsewhere than among its arguments are read-only views of the user's.
    """
    copy: Callable[..., Any] = Rebinding(kind, copies)(function)
    return copy


def own_code(kind: type[DuckArray], function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a library's Python function, for want of a rule.

    Raises:
        TypeError: it is not written in Python.
    """
    source: Any = getattr(function, "_implementation", function)
    if isinstance(source, types.MethodType) and type(source.__func__) is types.FunctionType:  # Cython's have no code
        method: Any = source.__func__
        return types.MethodType(Rebinding(kind).function(method), source.__self__)
    if type(source) is not types.FunctionType:
        raise TypeError(f"{function!r} is not written in Python")
    return Rebinding(kind).function(source)

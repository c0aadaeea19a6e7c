"""What stands in for NumPy, SciPy and ``math`` in the copy of a user's function.

NumPy's protocols cannot dispatch ``np.zeros(3)``, ``np.array([x[0], 1.0])`` or ``math.sin(x)``; a proxy can. Nothing
of NumPy itself is changed: only code that was copied by ``rebind`` sees the proxies.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache, partial, update_wrapper
from typing import Any

import numpy as np

from multigrad_numpy._ducks.creation import any_duck
from multigrad_numpy._ducks.duck import DuckArray
from multigrad_numpy._ducks.random import draw
from multigrad_numpy._ducks.refusal import refusal

PROXIED = frozenset({"numpy", "scipy", "math", "cmath"})
_BUILTINS = (types.BuiltinFunctionType, types.FunctionType, np.ufunc, type(np.sum))
_DISTRIBUTIONS = {
    "scipy.stats._distn_infrastructure.rv_generic",
    "scipy.stats._distn_infrastructure.rv_frozen",
    "scipy.stats._multivariate.multi_rv_generic",
    "scipy.stats._multivariate.multi_rv_frozen",
}
_UFUNC_METHODS = frozenset({"accumulate", "at", "outer", "reduce", "reduceat"})


def root_of(thing: Any) -> str:
    """The top-level package that ``thing`` says it comes from."""
    module = getattr(thing, "__module__", None)
    if module is None and isinstance(thing, np.ufunc):
        return "numpy"
    return str(module or "").partition(".")[0].lstrip("_")


class FunctionProxy:
    """A function of NumPy, SciPy or ``math`` that also takes duck arrays, deep inside lists too, and returns them."""

    def __init__(self, kind: type[DuckArray], function: Callable[..., Any]) -> None:
        self._kind = kind
        self._function: Any = _public(function)
        function = self._function
        self._is_ufunc = isinstance(function, np.ufunc)
        if not self._is_ufunc:
            update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_ufunc:
            if len(args) > self._function.nin:
                args, kwargs["out"] = args[: self._function.nin], args[self._function.nin :]
            for arg in args:
                if type(arg) is self._kind:
                    return arg.__array_ufunc__(self._function, "__call__", *args, **kwargs)
        elif self._function in self._kind.calls_back:
            from multigrad_numpy._ducks.rebind import own_code

            return own_code(self._kind, self._function)(*args, **kwargs)
        else:
            args = tuple(list(arg) if type(arg) is types.GeneratorType else arg for arg in args)
        if any_duck((args, kwargs)):
            return self._kind.call(self._function, args, kwargs)
        return self._kind.lift(self._function(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return _UfuncMethod(self._kind, self._function, name) if name in _UFUNC_METHODS else value

    def __repr__(self) -> str:
        return repr(self._function)


def _public(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's public function for the C function behind it, which NumPy's own code calls."""
    public = getattr(np, getattr(function, "__name__", ""), None)
    return public if getattr(public, "_implementation", None) is function else function  # type: ignore[return-value]


class _UfuncMethod:
    """``np.add.reduce`` and its kin."""

    def __init__(self, kind: type[DuckArray], ufunc: Any, method: str) -> None:
        self._kind, self._ufunc, self._method = kind, ufunc, method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._kind.plain(np.zeros(0)).__array_ufunc__(self._ufunc, self._method, *args, **kwargs)


class InstanceProxy:
    """A random generator or a distribution: an object of NumPy or SciPy whose methods are proxied."""

    def __init__(self, kind: type[DuckArray], instance: Any) -> None:
        self._kind, self._instance = kind, instance

    __class__ = property(lambda self: type(self._instance))

    def __getattr__(self, name: str) -> Any:
        return proxy(self._kind, getattr(self._instance, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return FrozenProxy(self, args, kwargs)


# The methods of a frozen distribution that take a point before the parameters.
_OF_A_POINT = frozenset({"cdf", "isf", "logcdf", "logpdf", "logpmf", "logsf", "pdf", "pmf", "ppf", "sf"})


class FrozenProxy:
    """A distribution with its parameters, which may be live."""

    def __init__(self, family: InstanceProxy, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._family, self._args, self._kwargs = family, args, kwargs

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._family, name)
        if name in _OF_A_POINT:
            return lambda point: method(point, *self._args, **self._kwargs)
        return lambda *args, **kwargs: method(*self._args, *args, **{**self._kwargs, **kwargs})


class ModuleProxy(types.ModuleType):
    """A module whose attributes are passed through ``rebind`` when they are first asked for."""

    def __init__(self, module: types.ModuleType, rebind: Callable[[Any], Any]) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(__doc__=module.__doc__, _module=module, _rebind=rebind)

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__["_rebind"](getattr(self.__dict__["_module"], name))
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])


@cache
def _module(kind: Any, module: types.ModuleType) -> ModuleProxy:
    return ModuleProxy(module, lambda value: proxy(kind, value))


@cache
def _function(kind: Any, function: Callable[..., Any]) -> FunctionProxy:
    return FunctionProxy(kind, function)


def _is_instance_to_proxy(thing: Any) -> bool:
    names = {f"{c.__module__}.{c.__name__}" for c in type(thing).__mro__}
    return isinstance(thing, (np.random.Generator, np.random.RandomState)) or bool(names & _DISTRIBUTIONS)


def proxy(kind: Any, thing: Any) -> Any:
    """The stand-in for something of NumPy, SciPy or ``math``; what needs none is returned as it is."""
    if isinstance(thing, types.ModuleType):
        return _module(kind, thing) if thing.__name__.partition(".")[0] in PROXIED else thing
    if _is_draw(thing):
        return draw(kind, thing, _function(kind, thing))
    if isinstance(thing, types.MethodType) and (root_of(type(thing.__self__)) in PROXIED):
        return _function(kind, thing)
    if isinstance(thing, _BUILTINS) and (root_of(thing) in PROXIED or isinstance(thing, np.ufunc) or _is_bound(thing)):
        return _function(kind, thing)
    if thing is np.vectorize:
        from multigrad_numpy._ducks.vectorize import Vectorize

        return lambda *args, **kwargs: Vectorize(kind, *args, **kwargs)
    if thing is np.random.default_rng:
        return lambda *args, **kwargs: InstanceProxy(kind, thing(*args, **kwargs))
    if thing is np.nditer:
        return partial(_iterate, kind)
    if thing is np.ndenumerate:
        return lambda array: ((index, array[index]) for index in np.ndindex(*np.shape(array)))
    if root_of(type(thing)) in PROXIED and hasattr(thing, "toarray") and hasattr(thing, "tocsr"):
        from multigrad_numpy._ducks.sparse import SparseProxy

        return SparseProxy(kind, thing)
    if root_of(type(thing)) in PROXIED and _is_instance_to_proxy(thing):
        if hasattr(thing, "dist") and hasattr(thing, "kwds"):  # a frozen distribution
            return FrozenProxy(InstanceProxy(kind, thing.dist), thing.args, thing.kwds)
        return InstanceProxy(kind, thing)
    return thing


def _iterate(kind: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
    if any_duck(op):
        raise refusal("np.nditer has no traced form", "loop over np.ndindex(x.shape), or over x.flat to read")
    return np.nditer(op, *args, **kwargs)


def _is_draw(thing: Any) -> bool:
    return isinstance(getattr(thing, "__self__", None), (np.random.Generator, np.random.RandomState))


def _is_bound(thing: Any) -> bool:
    """Whether a builtin is a method of an object of NumPy, like ``np.random.normal``."""
    return root_of(type(getattr(thing, "__self__", None))) in PROXIED

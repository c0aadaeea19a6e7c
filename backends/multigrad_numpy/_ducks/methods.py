"""The attributes and methods of ndarray, in terms of NumPy's functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.refusal import refusal

# Methods that are the function of the same name with the array as its first argument.
_FUNCTIONS = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "choose",
    "clip",
    "cumprod",
    "cumsum",
    "diagonal",
    "dot",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "ptp",
    "put",
    "ravel",
    "repeat",
    "round",
    "searchsorted",
    "squeeze",
    "std",
    "sum",
    "swapaxes",
    "take",
    "trace",
    "var",
]
_REFUSED = [
    "byteswap",
    "ctypes",
    "data",
    "dump",
    "dumps",
    "getfield",
    "newbyteorder",
    "resize",
    "setfield",
    "setflags",
    "strides",
    "tobytes",
    "tofile",
]


def _as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


def _refused(name: str) -> property:
    def get(self: Any) -> Any:
        if self._memory.live:
            raise refusal(
                f"`.{name}` of an array is not traceable", "work on the array's values with NumPy's functions"
            )
        return getattr(self.ghost, name)

    return property(get)


class Flat:
    """``x.flat``: the array's elements in C order, to read and to write."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        return np.ravel(self._array)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        chosen = np.arange(self._array.size)[index]
        where = np.unravel_index(chosen, self._array.shape)
        self._array[where] = np.resize(value, chosen.shape) if chosen.shape else value

    def __len__(self) -> int:
        return int(self._array.size)

    def __iter__(self) -> Any:
        return iter(np.ravel(self._array))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ravel(self._array).__array__(dtype)

    def copy(self) -> Any:
        """The elements as a new array."""
        return np.ravel(self._array).copy()


class Methods:
    """What ndarray offers besides operators. The array itself is ``_duck.DuckArray``."""

    __slots__ = ()
    _memory: Any
    _scalar: bool
    ghost: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    T = property(lambda self: np.transpose(self))
    mT = property(lambda self: np.swapaxes(self, -1, -2))
    flags = property(lambda self: self.ghost.flags)
    base = property(lambda self: None)
    device = property(lambda self: "cpu")
    flat = property(lambda self: Flat(self), lambda self, value: Flat(self).__setitem__(slice(None), value))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return self._namespace()

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        if device != "cpu":
            raise ValueError(f"unsupported device {device!r}")
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.shape[0])])  # type: ignore[index]

    def __contains__(self, value: Any) -> bool:
        return bool(np.any(self == value))

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        given = {} if copy is None else {"copy": copy}
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order, **given)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def flatten(self, order: Any = "C") -> Any:
        return np.ravel(self, order).copy()

    def copy(self, order: Any = "C") -> Any:
        return np.copy(self, order)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Any:
        return self if self._scalar else np.copy(self)

    def item(self, *index: Any) -> Any:
        if not index:
            if self.size != 1:
                raise ValueError("can only convert an array of size 1 to a Python scalar")
            index = (0,)
        where = np.unravel_index(index[0], self.shape) if len(index) == 1 and self.ndim != 1 else index
        return self[tuple(int(i) for i in where)] if self.shape else self[()]  # type: ignore[index]

    def tolist(self) -> Any:
        return [e.tolist() if hasattr(e, "tolist") else e for e in self] if self.shape else self[()]  # type: ignore[index]

    def fill(self, value: Any) -> None:
        self[...] = value

    def conj(self, *args: Any, **kwargs: Any) -> Any:
        return np.conjugate(self, *args, **kwargs)

    conjugate = conj

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return np.compress(condition, self, axis, out)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self[...] = np.sort(self, axis=axis)

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
        self[...] = np.partition(self, kth, axis=axis)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or args not in ((), (np.ndarray,), (self.dtype,)):
            raise refusal("x.view() with another type is not traceable", "convert with x.astype(...)")
        return self[...] if self.shape else self  # type: ignore[index]

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array

    def __getattr__(self, name: str) -> Any:
        # An object array (NumPy makes one of a list of traced scalars) calls x.exp() for np.exp.
        function = getattr(np, name, None)
        if isinstance(function, np.ufunc) and function.nin == 1 and not hasattr(np.ndarray, name):
            return lambda *args, **kwargs: function(self, *args, **kwargs)
        raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")


for _name in _FUNCTIONS:
    setattr(Methods, _name, _as_method(getattr(np, _name)))
for _name in _REFUSED:
    setattr(Methods, _name, _refused(_name))

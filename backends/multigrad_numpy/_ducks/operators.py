"""Python's operators as NumPy's ufuncs, with the one difference that NumPy's scalars are immutable."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "matmul": np.matmul,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "divmod": np.divmod,
    "pow": np.power,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
    "or": np.bitwise_or,
}
_COMPARE = {
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def _defers(other: Any) -> bool:
    """Whether ``other`` asks to be left the operation, as NumPy's protocol has it."""
    return getattr(other, "__array_ufunc__", True) is None


def _forward(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: (
        NotImplemented if _defers(other) else self.__array_ufunc__(ufunc, "__call__", self, other)
    )


def _reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    return lambda self, other: (
        NotImplemented if _defers(other) else self.__array_ufunc__(ufunc, "__call__", other, self)
    )


def _in_place(ufunc: np.ufunc, name: str) -> Callable[[Any, Any], Any]:
    rebinding = getattr(operator, f"__{name}__")

    def assign(self: Any, other: Any) -> Any:
        if self._scalar:  # `t = x[0]; t += 1` makes a new scalar and leaves x alone
            return rebinding(self, other)
        return self.__array_ufunc__(ufunc, "__call__", self, other, out=(self,))

    return assign


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    return lambda self: self.__array_ufunc__(ufunc, "__call__", self)


class Operators:
    """The operators of ndarray in terms of ``__array_ufunc__``."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


for _name, _ufunc in (_BINARY | _COMPARE).items():
    setattr(Operators, f"__{_name}__", _forward(_ufunc))
for _name, _ufunc in _BINARY.items():
    setattr(Operators, f"__r{_name}__", _reflected(_ufunc))
for _name, _ufunc in _BINARY.items():
    if _name != "divmod":
        setattr(Operators, f"__i{_name}__", _in_place(_ufunc, _name))
for _name, _ufunc in _UNARY.items():
    setattr(Operators, f"__{_name}__", _unary(_ufunc))

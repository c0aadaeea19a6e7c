"""What becomes of an array outside NumPy: Python's numbers, text, a plain ndarray.

What is constant but for jumps (a branch, an integer, a rounded text) needs no gradient; the rest is refused while the
array is live.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.memory import Memory, Plain
from multigrad_numpy._ducks.refusal import conversion

_ALL_DIGITS = re.compile(r"(\d\.?){15}")


class Conversions:
    """Python's conversions of a duck array."""

    __slots__ = ()
    _memory: Memory
    _scalar: bool
    ghost: Any
    shape: Any
    size: Any
    dtype: np.dtype[Any]
    _agreed: Callable[..., Any]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Plain:
        if not self._memory.live:
            return np.array(self.ghost, dtype, copy=copy)
        if dtype is not None and np.dtype(dtype).kind in "biu":
            return np.asarray(self._agreed(np.asarray, f"np.asarray(x, dtype={dtype})")).astype(dtype)
        if dtype is not None and np.dtype(dtype) != object:
            raise conversion("conversion to a plain NumPy array", self._memory.origin)
        me: Any = self
        out = np.empty(max(self.size, 1), object)  # keeps the gradient where NumPy's C code asks for an array
        for i, element in enumerate([me] if self._scalar else [me[k] for k in np.ndindex(*self.shape)]):
            out[i] = element
        return out.reshape(self.shape)

    def __bool__(self) -> bool:
        return bool(self._agreed(bool, "bool()"))

    def __int__(self) -> int:
        return int(self._agreed(int, "int()"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iub":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self._agreed(int, "index()"))

    def __trunc__(self) -> int:
        return int(self._agreed(_trunc, "math.trunc()"))

    def __floor__(self) -> int:
        return int(self._agreed(_floor, "math.floor()"))

    def __ceil__(self) -> int:
        return int(self._agreed(_ceil, "math.ceil()"))

    def __round__(self, digits: int | None = None) -> Any:
        return int(self._agreed(round, "round()")) if digits is None else np.round(self, digits)

    def __float__(self) -> float:
        if self._memory.live:
            raise conversion("float()", self._memory.origin)
        return float(self.ghost)

    def __complex__(self) -> complex:
        if self._memory.live:
            raise conversion("complex()", self._memory.origin)
        return complex(self.ghost)

    def __format__(self, spec: str) -> str:
        if not self._memory.live:
            return format(self.ghost, spec)
        if not spec:
            return str(self)
        text = str(self._agreed(lambda value: format(value[()], spec), f"format(x, {spec!r})"))
        return rounded_text(text, f"format(x, {spec!r})", self._memory.origin)

    def __str__(self) -> str:
        if self._memory.live and not self.shape:  # all digits of a scalar: text that can be read back
            raise conversion("str() or f'{x}'", self._memory.origin)
        if not self._memory.live:
            return str(self.ghost)
        return rounded_text(str(self._agreed(str, "str()")), "str()", self._memory.origin)

    def __repr__(self) -> str:
        if not self._memory.live:
            return repr(self.ghost)
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


def rounded_text(text: str, call: str, origin: frozenset[str]) -> str:
    """``text``, if its numbers are rounded so far that to read them back makes steps.

    Raises:
        Unsupported: they have all their digits, so that to read them back would drop the gradient.
    """
    if _ALL_DIGITS.search(text):
        raise conversion(call, origin)
    return text


def _trunc(value: Any) -> int:
    return int(np.trunc(value))


def _floor(value: Any) -> int:
    return int(np.floor(value))


def _ceil(value: Any) -> int:
    return int(np.ceil(value))

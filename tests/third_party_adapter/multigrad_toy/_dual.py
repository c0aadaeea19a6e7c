"""The toy framework: forward mode by dual numbers, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


class Dual:
    """A number with a tangent; NumPy's functions find its methods through an object array."""

    def __init__(self, value: float, tangent: float = 0.0) -> None:
        self.value = value
        self.tangent = tangent

    def __add__(self, other: Any) -> Dual:
        o = _dual(other)
        return Dual(self.value + o.value, self.tangent + o.tangent)

    def __mul__(self, other: Any) -> Dual:
        o = _dual(other)
        return Dual(self.value * o.value, self.tangent * o.value + self.value * o.tangent)

    def __truediv__(self, other: Any) -> Dual:
        o = _dual(other)
        return Dual(self.value / o.value, (self.tangent - self.value / o.value * o.tangent) / o.value)

    def __pow__(self, exponent: Any) -> Dual:
        if isinstance(exponent, Dual):
            return (exponent * self.log()).exp()
        return Dual(self.value**exponent, exponent * self.value ** (exponent - 1) * self.tangent)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.tangent)

    def __sub__(self, other: Any) -> Dual:
        return self + -_dual(other)

    def __rsub__(self, other: Any) -> Dual:
        return _dual(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return _dual(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def __abs__(self) -> Dual:
        return self if self.value >= 0 else -self

    def __lt__(self, other: Any) -> bool:
        return self.value < _dual(other).value

    def __gt__(self, other: Any) -> bool:
        return self.value > _dual(other).value

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def conjugate(self) -> Dual:
        return self

    def exp(self) -> Dual:
        y = math.exp(self.value)
        return Dual(y, y * self.tangent)

    def log(self) -> Dual:
        return Dual(math.log(self.value), self.tangent / self.value)

    def sqrt(self) -> Dual:
        y = math.sqrt(self.value)
        return Dual(y, self.tangent / (2 * y))

    def sin(self) -> Dual:
        return Dual(math.sin(self.value), math.cos(self.value) * self.tangent)

    def cos(self) -> Dual:
        return Dual(math.cos(self.value), -math.sin(self.value) * self.tangent)

    def tanh(self) -> Dual:
        y = math.tanh(self.value)
        return Dual(y, (1 - y * y) * self.tangent)


class WithRule:
    """A function that brings its own derivative along: ``rule(primals, tangents)`` gives the output's tangent."""

    def __init__(self, fn: Callable[..., Any], rule: Callable[[Any, Any], Any]) -> None:
        self.fn = fn
        self.rule = rule

    def __call__(self, *primals: Any) -> Any:
        return self.fn(*primals)


def jvp(fn: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> list[Any]:
    """The tangents of the outputs, leaf by leaf, at ``primals`` along ``tangents`` (None where held fixed)."""
    if isinstance(fn, WithRule):
        return [np.asarray(t) for t in fn.rule(primals, tangents)]
    duals = [x if t is None else _attach(x, t) for x, t in zip(primals, tangents, strict=True)]
    outputs = fn(*duals)
    leaves = outputs if isinstance(outputs, tuple) else (outputs,)
    return [_tangents(np.asarray(y, dtype=object)) for y in leaves]


def _dual(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(float(x))


def _attach(x: Any, tangent: Any) -> Any:
    duals = np.empty(np.shape(x), dtype=object)
    for i in np.ndindex(duals.shape):
        duals[i] = Dual(float(x[i]), float(tangent[i]))
    return duals


def _tangents(y: Any) -> Any:
    return np.array([_dual(entry).tangent for entry in y.ravel()]).reshape(y.shape)

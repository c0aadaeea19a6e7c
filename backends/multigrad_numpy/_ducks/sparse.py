"""A constant sparse matrix of SciPy in the copy of a user's function: its products with live arrays."""

from __future__ import annotations

import operator
from typing import Any

from multigrad_numpy._ducks.duck import DuckArray, is_live


class SparseProxy:
    """Stands in for a sparse matrix; everything but products is the matrix's own."""

    __array_ufunc__ = None  # so that `x @ A` comes here

    def __init__(self, kind: type[DuckArray], matrix: Any) -> None:
        self._kind, self._matrix = kind, matrix

    __class__ = property(lambda self: type(self._matrix))
    shape = property(lambda self: self._matrix.shape)
    T = property(lambda self: SparseProxy(self._kind, self._matrix.T))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matrix, name)

    def _product(self, left: Any, right: Any) -> Any:
        if is_live((left, right)):
            return self._kind.call(operator.matmul, (left, right), {})
        return self._kind.call_plain(operator.matmul, (left, right), {})

    def __matmul__(self, other: Any) -> Any:
        return self._product(self._matrix, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._product(other, self._matrix)

    dot = __matmul__

    def __mul__(self, other: Any) -> Any:
        from scipy.sparse import spmatrix

        if (
            isinstance(self._matrix, spmatrix) and getattr(other, "ndim", 0) != 0
        ):  # the old matrices multiply as matrices
            return self @ other
        if is_live(other):
            return self._kind.call(operator.mul, (self._matrix, other), {})
        return SparseProxy(self._kind, self._matrix * other)

"""Numerical Jacobians of plain functions, to compare with: a central difference of order eight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def reals(value: Any) -> np.ndarray[Any, Any]:
    """Nested arrays and numbers as one flat real vector; a complex number is a pair."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return np.concatenate([reals(v) for v in value])
    wide = np.asarray(value)
    wide = wide.astype(complex if wide.dtype.kind == "c" else float)
    return np.ascontiguousarray(wide).reshape(-1).view(float)


def jacobian(f: Callable[[Any], Any], x: np.ndarray[Any, Any], step: float = 4e-3) -> np.ndarray[Any, Any]:
    """The Jacobian of ``f`` at ``x``, both taken as reals: (m, n)."""
    row = reals(x)
    columns = []
    for k in range(row.size):
        total: Any = 0.0
        for i, weight in enumerate(_WEIGHTS, start=1):
            total = total + weight * (_at(f, x, row, k, i * step) - _at(f, x, row, k, -i * step))
        columns.append(total / step)
    return np.stack(columns, axis=-1)


def _at(f: Callable[[Any], Any], x: np.ndarray[Any, Any], row: np.ndarray[Any, Any], k: int, by: float) -> Any:
    moved = row.copy()
    moved[k] += by
    return reals(f((moved.view(complex) if x.dtype.kind == "c" else moved).reshape(x.shape)))

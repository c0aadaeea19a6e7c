"""Rules for SciPy (and the special functions of ``math``) by what jax.scipy has under the same name."""

from __future__ import annotations

import importlib
import math
import operator
import types
from typing import Any

import jax.scipy.special as jsp
import numpy as np
import scipy.special as sp

from multigrad_numpy import _special  # noqa: F401 - enters its rules
from multigrad_numpy._table import TABLE, Elementwise, Lifted

_MODULES = ("linalg", "signal", "integrate", "fft")
# Made of compiled or iterative code, or with another meaning than in SciPy.
_NOT_JAX = frozenset(
    [
        "funm",
        "schur",
        "rsf2csf",
        "sqrtm",
        "hessenberg",
        "solve_sylvester",
        "eigh",
        "cholesky",
        "cho_factor",
        "lu_factor",
        "factorial",
        "expm_frechet",
    ]
)

for _name in dir(jsp):
    _scipy, _jax = getattr(sp, _name, None), getattr(jsp, _name)
    if _name.startswith("_") or not callable(_scipy) or not callable(_jax) or _scipy in TABLE or _name in _NOT_JAX:
        continue
    TABLE[_scipy] = Elementwise(_scipy, _jax) if isinstance(_scipy, np.ufunc) else Lifted(_scipy, _jax)

for _module in _MODULES:
    _theirs, _ours = (importlib.import_module(f"{prefix}scipy.{_module}") for prefix in ("", "jax."))
    for _name in dir(_ours):
        _scipy, _jax = getattr(_theirs, _name, None), getattr(_ours, _name)
        if isinstance(_scipy, types.FunctionType) and callable(_jax) and _name not in _NOT_JAX:
            TABLE.setdefault(_scipy, Lifted(_scipy, _jax))

_stats, _jax_stats = importlib.import_module("scipy.stats"), importlib.import_module("jax.scipy.stats")
for _name in dir(_jax_stats):
    _ours = getattr(_jax_stats, _name)
    for _method in dir(_ours) if isinstance(_ours, types.ModuleType) else ():
        _scipy = getattr(getattr(_stats, _name, None), _method, None)
        if isinstance(_scipy, types.MethodType) and callable(getattr(_ours, _method)):
            TABLE[_scipy] = Lifted(_scipy, getattr(_ours, _method))


def _sparse_product(left: Any, right: Any) -> Any:
    left, right = (a.toarray() if hasattr(a, "toarray") else a for a in (left, right))
    return np.matmul(left, right)


def _sparse_scaled(left: Any, right: Any) -> Any:
    return np.multiply(left.toarray(), right)


TABLE[operator.matmul] = _sparse_product
TABLE[operator.mul] = _sparse_scaled


def _scalar(ufunc: Any) -> Any:
    return lambda x: TABLE[ufunc](x)


TABLE.update({getattr(math, n): _scalar(getattr(sp, m)) for n, m in
              {"erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "gammaln"}.items()})  # fmt: skip

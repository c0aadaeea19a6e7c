"""Rules for SciPy (and the special functions of ``math``) by what jax.scipy has under the same name."""

from __future__ import annotations

import importlib
import math
import operator
import sys
import types
from typing import Any

import jax.scipy.special as jsp
import numpy as np
import scipy.special as sp

from multigrad_numpy._rules import special  # noqa: F401 - enters its rules
from multigrad_numpy._tracing.table import TABLE, Elementwise, Lifted

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
        "polar",
    ]
)

for _name in dir(jsp):
    _scipy, _jax = getattr(sp, _name, None), getattr(jsp, _name)
    if _name.startswith("_") or not callable(_scipy) or not callable(_jax) or _scipy in TABLE or _name in _NOT_JAX:
        continue
    TABLE[_scipy] = Elementwise(_scipy, _jax) if isinstance(_scipy, np.ufunc) else Lifted(_scipy, _jax)

# Their densities need a precise betaln, which jax.scipy.special's is not; SciPy's own code takes that of ``special``.
_INEXACT = frozenset({"beta", "betabinom"})
_entered: set[str] = set()


def enter_loaded() -> None:
    """Enter the rules of those parts of SciPy that are loaded by now: what is traced has been called before.

    To load them all would take longer than most checks.
    """
    for name in {*_MODULES, "stats"} - _entered:
        theirs = sys.modules.get(f"scipy.{name}")
        if theirs is not None:
            _entered.add(name)
            enter = _enter_distributions if name == "stats" else _enter_functions
            enter(theirs, importlib.import_module(f"jax.scipy.{name}"))


def _enter_functions(theirs: types.ModuleType, ours: types.ModuleType) -> None:
    for name in dir(ours):
        function, same = getattr(theirs, name, None), getattr(ours, name)
        if isinstance(function, types.FunctionType) and callable(same) and name not in _NOT_JAX:
            TABLE.setdefault(function, Lifted(function, same))


def _enter_distributions(theirs: types.ModuleType, ours: types.ModuleType) -> None:
    for name in set(dir(ours)) - _INEXACT:
        family, same = getattr(theirs, name, None), getattr(ours, name)
        for method in dir(same) if isinstance(same, types.ModuleType) else ():
            function = getattr(family, method, None)
            if isinstance(function, types.MethodType) and callable(getattr(same, method)):
                TABLE.setdefault(function, Lifted(function, getattr(same, method)))


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

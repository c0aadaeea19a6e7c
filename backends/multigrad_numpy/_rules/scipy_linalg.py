"""Rules for ``scipy.linalg`` in terms of numpy.linalg: its functions that JAX lacks, or that read one triangle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg as sl

from multigrad_numpy._ducks.refusal import refusal
from multigrad_numpy._rules.numpy import rule_for
from multigrad_numpy._tracing.table import TABLE, Lifted
from multigrad_numpy._tracing.traced import TracedArray

_array = TracedArray.asarray


def _alone(function: Any, numpys: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one matrix; options that only concern speed and safety are left out."""

    def rule(a: Any, *args: Any, **kwargs: Any) -> Any:
        rest = {k: v for k, v in kwargs.items() if k not in ("overwrite_a", "check_finite")}
        if args or rest:
            raise refusal(f"scipy.linalg.{function.__name__} with options", f"use np.linalg.{numpys.__name__}")
        return numpys(_array(a))

    return rule


_OF_ONE_MATRIX: dict[Any, Any] = {
    sl.det: np.linalg.det,
    sl.eig: np.linalg.eig,
    sl.eigvals: np.linalg.eigvals,
    sl.inv: np.linalg.inv,
    sl.pinv: np.linalg.pinv,
    sl.svdvals: np.linalg.svdvals,
}
for _scipy, _numpy in _OF_ONE_MATRIX.items():
    TABLE[_scipy] = _alone(_scipy, _numpy)


@rule_for(sl.norm)
def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.norm(_array(a), ord, axis, keepdims)


@rule_for(sl.cholesky)
def _cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.cholesky(_array(a), upper=not lower)


@rule_for(sl.cho_factor)
def _cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    a = _array(a)
    other = np.triu(a, 1) if lower else np.tril(a, -1)  # SciPy leaves the other triangle as it is
    return _cholesky(a, lower) + other, lower


@rule_for(sl.cho_solve)
def _cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    factor, lower = c_and_lower
    half = np.tril(_array(factor)) if lower else np.conj(np.swapaxes(np.triu(_array(factor)), -1, -2))
    return np.linalg.solve(np.conj(np.swapaxes(half, -1, -2)), np.linalg.solve(half, b))


@rule_for(sl.eigh)
def _eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **kwargs: Any) -> Any:
    if b is not None or kwargs.keys() - {"check_finite", "overwrite_a", "overwrite_b"}:
        raise refusal("scipy.linalg.eigh with options", "use np.linalg.eigh")
    values, vectors = np.linalg.eigh(_array(a), "L" if lower else "U")
    return values if eigvals_only else (values, vectors)


@rule_for(sl.eigvalsh)
def _eigvalsh(a: Any, b: Any = None, *, lower: bool = True, **kwargs: Any) -> Any:
    return _eigh(a, b, lower=lower, eigvals_only=True, **kwargs)


@rule_for(sl.solve_sylvester)
def _solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    a, b, q = _array(a), _array(b), _array(q)
    m, n = q.shape
    system = np.kron(np.eye(n), a) + np.kron(b.T, np.eye(m))
    return np.reshape(np.linalg.solve(system, np.ravel(q.T)), (n, m)).T


@rule_for(sl.solve_banded)
def _solve_banded(l_and_u: Any, ab: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    below, above = l_and_u
    ab = _array(ab)
    n = ab.shape[1]
    rows, columns = np.indices((n, n))
    inside = (rows - columns <= below) & (columns - rows <= above)
    dense = np.where(inside, ab[np.clip(above + rows - columns, 0, below + above), columns], 0.0)
    return np.linalg.solve(dense, b)


@jax.custom_jvp
def _root(a: Any) -> Any:
    return jnp.asarray(sl.sqrtm(TracedArray.concrete(a, "scipy.linalg.sqrtm")))


@_root.defjvp
def _root_jvp(primals: Any, tangents: Any) -> Any:
    root = _root(*primals)
    n = root.shape[0]
    system = jnp.kron(jnp.eye(n), root) + jnp.kron(root.T, jnp.eye(n))  # root d(root) + d(root) root = d(a)
    change = jnp.linalg.solve(system, tangents[0].T.reshape(-1)).reshape(n, n).T
    return root, change.astype(root.dtype)


TABLE[sl.sqrtm] = Lifted(sl.sqrtm, _root)

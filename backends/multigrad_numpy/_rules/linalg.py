"""Rules for ``numpy.linalg`` where it means something else than jax.numpy.linalg."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad_numpy._ducks.refusal import refusal
from multigrad_numpy._rules.numpy import numbers, rule_for
from multigrad_numpy._tracing.table import TABLE, Lifted
from multigrad_numpy._tracing.traced import TracedArray

_array = TracedArray.asarray

# NumPy's own code gives the norm at 0 the derivative 0 (by the rule for the root), jax.numpy's NaN.
for _f in (np.linalg.norm, np.linalg.vector_norm, np.linalg.matrix_norm, np.linalg.cond, np.linalg.multi_dot):
    TABLE.pop(_f, None)


def _mirrored(a: Any, uplo: str) -> Any:
    """The Hermitian matrix of which NumPy reads one triangle alone, the other triangle having no influence."""
    lower_part = uplo.upper() == "L"
    part = np.tril(a, -1) if lower_part else np.triu(a, 1)
    diagonal = np.diagonal(a, axis1=-2, axis2=-1).real
    return part + np.conj(np.swapaxes(part, -1, -2)) + diagonal[..., None] * np.eye(a.shape[-1])


def _eigh_values(a: Any) -> Any:
    return jnp.linalg.eigh(a, symmetrize_input=False)


@rule_for(np.linalg.eigh)
def _eigh(a: Any, UPLO: Any = "L") -> Any:
    mirrored = _mirrored(_array(a), UPLO)
    values, vectors = Lifted(np.linalg.eigh, _eigh_values)(mirrored)
    plain = np.linalg.eigh(numbers(_array(a)), UPLO)[1]
    # The phase of an eigenvector is a convention, NumPy's result follows LAPACK's choice at this very point.
    phase = np.sum(np.conj(numbers(vectors)) * plain, -2, keepdims=True)
    phase = phase / np.where(np.abs(phase) == 0, 1.0, np.abs(phase))
    return np.linalg._linalg.EighResult(values, vectors * phase)


@rule_for(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return Lifted(np.linalg.eigh, lambda m: _eigh_values(m)[0])(_mirrored(_array(a), UPLO))


@rule_for(np.linalg.cholesky)
def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    mirrored = _mirrored(_array(a), "U" if upper else "L")
    return Lifted(np.linalg.cholesky, lambda m: jnp.linalg.cholesky(m, upper=upper, symmetrize_input=False))(mirrored)


@rule_for(np.linalg.matrix_rank)
def _matrix_rank(A: Any, *args: Any, **kwargs: Any) -> Any:
    return np.linalg.matrix_rank(numbers(_array(A)), *args, **kwargs)


@rule_for(np.linalg.lstsq)
def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    a, b = _array(a), _array(b)
    plain = np.linalg.lstsq(numbers(a), numbers(b), rcond)
    rank = int(plain[2])
    solution = np.linalg.pinv(a, rcond=np.finfo(a.dtype).eps * max(a.shape) if rcond is None else rcond) @ b
    residual = b - a @ solution
    squares = np.sum(np.abs(residual) ** 2, 0)
    residuals = np.atleast_1d(squares) if rank == a.shape[1] < a.shape[0] else TracedArray.plain(np.zeros(0))
    return solution, residuals, rank, np.linalg.svd(a, compute_uv=False)


@rule_for(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    if hermitian:
        a = _mirrored(_array(a), "L")
    cutoff = rtol if rcond is None else rcond
    a = _array(a)
    if cutoff is None:
        cutoff = 1e-15 if rtol is None else np.finfo(a.dtype).eps * max(a.shape[-2:])
    return Lifted(np.linalg.pinv, lambda m: jnp.linalg.pinv(m, rtol=cutoff))(a)


@rule_for(np.linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = _array(a)
    if hermitian:
        a = _mirrored(a, "L")
    if not compute_uv:
        return Lifted(np.linalg.svd, lambda m: jnp.linalg.svd(m, compute_uv=False))(a)
    if full_matrices and a.shape[-1] != a.shape[-2]:
        raise refusal("np.linalg.svd(full_matrices=True) of a rectangular matrix has no derivative: the extra singular "
                      "vectors are arbitrary", "pass full_matrices=False")  # fmt: skip
    u, s, vh = Lifted(np.linalg.svd, lambda m: tuple(jnp.linalg.svd(m, full_matrices=False)))(a)
    plain = np.linalg.svd(numbers(a), full_matrices=False)[0]
    phase = np.sum(np.conj(numbers(u)) * plain, -2)
    phase = phase / np.where(np.abs(phase) == 0, 1.0, np.abs(phase))
    return np.linalg._linalg.SVDResult(u * phase[..., None, :], s, np.conj(phase)[..., None] * vh)


@rule_for(np.linalg.svdvals)
def _svdvals(x: Any, /) -> Any:
    return np.linalg.svd(x, compute_uv=False)


@rule_for(np.linalg.eigvals)
def _eigvals(a: Any) -> Any:
    a = _array(a)
    values = Lifted(np.linalg.eigvals, jnp.linalg.eigvals)(a)
    return values.real if np.isrealobj(np.linalg.eigvals(numbers(a))) else values


@jax.custom_jvp
def _eig_up_to_scale(a: Any) -> Any:
    values, vectors = np.linalg.eig(TracedArray.concrete(a, "np.linalg.eig"))
    return jnp.asarray(values).astype(complex), jnp.asarray(vectors).astype(complex)


@_eig_up_to_scale.defjvp
def _eig_jvp(primals: Any, tangents: Any) -> Any:
    values, vectors = _eig_up_to_scale(*primals)
    rotated = jnp.linalg.solve(vectors, tangents[0].astype(complex) @ vectors)
    gaps = values[..., None, :] - values[..., :, None]
    own = jnp.eye(values.shape[-1], dtype=bool)
    mixing = jnp.where(own, 0, rotated / jnp.where(own, 1, gaps))
    return (values, vectors), (jnp.diagonal(rotated, axis1=-2, axis2=-1), vectors @ mixing)


@rule_for(np.linalg.eig)
def _eig(a: Any) -> Any:
    plain = np.linalg.eig(numbers(_array(a)))
    values, vectors = Lifted(np.linalg.eig, _eig_up_to_scale)(_array(a))
    # LAPACK scales the vectors to length 1, with the largest component real.
    largest = np.argmax(np.abs(plain[1]), -2)[..., None, :]
    lead = np.take_along_axis(vectors, largest, -2)
    sign = np.sign(np.take_along_axis(plain[1], largest, -2).real)
    vectors = vectors * (np.conj(lead) / np.abs(lead) * sign) / np.sqrt(np.sum(np.abs(vectors) ** 2, -2, keepdims=True))
    if plain[0].dtype.kind != "c":
        values, vectors = values.real, vectors.real
    return np.linalg._linalg.EigResult(values, vectors)


# NumPy's own code for the condition number calls the inverse behind np.linalg.inv.
TABLE[np.linalg._umath_linalg.inv] = lambda a, **kwargs: np.linalg.inv(a)

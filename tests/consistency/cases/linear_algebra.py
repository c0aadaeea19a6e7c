"""Linear algebra."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import scipy.linalg
import torch

from tests.consistency.case import Case, draw

_a = draw(30, 3, 3) + 3 * np.eye(3)
_b = draw(31, 3, 2)
_v = draw(32, 3)


def _positive(xp):
    return lambda a: a @ a.T + xp.eye(3, dtype=a.dtype)


def _quadratic_form(a, v):
    return v @ (a @ v)


CASES = [
    Case("matmul", torch.matmul, jnp.matmul, np.matmul, (_a, _b)),
    Case("quadratic_form", _quadratic_form, _quadratic_form, _quadratic_form, (_a, _v)),
    Case("solve", torch.linalg.solve, jnp.linalg.solve, np.linalg.solve, (_a, _b)),
    Case("inverse", torch.linalg.inv, jnp.linalg.inv, np.linalg.inv, (_a,)),
    Case("determinant", torch.linalg.det, jnp.linalg.det, np.linalg.det, (_a,)),
    Case(
        "log_determinant",
        lambda a: torch.linalg.slogdet(a)[1],
        lambda a: jnp.linalg.slogdet(a)[1],
        lambda a: np.linalg.slogdet(a)[1],
        (_a,),
    ),
    Case(
        "cholesky",
        lambda a: torch.linalg.cholesky(_positive(torch)(a)),
        lambda a: jnp.linalg.cholesky(_positive(jnp)(a)),
        lambda a: np.linalg.cholesky(_positive(np)(a)),
        (_a,),
    ),
    Case(
        "eigenvalues",
        lambda a: torch.linalg.eigvalsh(a + a.T),
        lambda a: jnp.linalg.eigvalsh(a + a.T),
        lambda a: np.linalg.eigvalsh(a + a.T),
        (draw(33, 3, 3),),
    ),
    Case(
        "singular_values",
        torch.linalg.svdvals,
        lambda a: jnp.linalg.svd(a, compute_uv=False),
        lambda a: np.linalg.svd(a, compute_uv=False),
        (_b,),
    ),
    Case("expm", torch.linalg.matrix_exp, jax.scipy.linalg.expm, scipy.linalg.expm, (draw(34, 2, 2),)),
    Case("kron", torch.kron, jnp.kron, np.kron, (draw(35, 2, 2), draw(36, 1, 2))),
    Case(
        "einsum",
        lambda a, b: torch.einsum("ij,jk,ik->i", a, b, a[:, :2]),
        lambda a, b: jnp.einsum("ij,jk,ik->i", a, b, a[:, :2]),
        lambda a, b: np.einsum("ij,jk,ik->i", a, b, a[:, :2]),
        (_a, _b),
    ),
    Case(
        "pseudo_inverse",
        torch.linalg.pinv,
        jnp.linalg.pinv,
        np.linalg.pinv,
        (_b,),
    ),
    Case(
        "triangular_solve",
        lambda a, b: torch.linalg.solve_triangular(a.tril(), b, upper=False),
        lambda a, b: jax.scipy.linalg.solve_triangular(jnp.tril(a), b, lower=True),
        lambda a, b: scipy.linalg.solve_triangular(np.tril(a), b, lower=True),
        (_a, _b),
    ),
]

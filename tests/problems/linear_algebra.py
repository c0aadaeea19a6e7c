"""Products, norms, inverses and determinants."""

from __future__ import annotations

import numpy as np

from tests.problems.problem import Array, Problem, draw, everywhere

_eye = np.eye
_weights = draw(10, 3, 5)
_precision = np.array([[2.0, 0.3, -0.1], [0.3, 1.5, 0.4], [-0.1, 0.4, 0.9]])
_centre = np.array([0.2, -0.4, 1.0])
_regular = draw(11, 3, 3) + 3 * _eye(3)


def matmul_jacobian(a: Array, b: Array) -> list[Array]:
    """dC_ij / dA_kl = [i = k] B_lj and dC_ij / dB_kl = [j = l] A_ik."""
    return [np.einsum("ik,lj->ijkl", _eye(len(a)), b), np.einsum("jl,ik->ijkl", _eye(b.shape[1]), a)]


def _det(a: Array) -> Array:
    return np.linalg.det(a) * np.linalg.inv(a).T


def _inv(a: Array) -> Array:
    inverse = np.linalg.inv(a)
    return -np.einsum("ik,lj->ijkl", inverse, inverse)


def _solve(a: Array, b: Array) -> list[Array]:
    inverse = np.linalg.inv(a)
    return [-np.einsum("ik,l->ikl", inverse, inverse @ b), inverse]


def _skew(a: Array) -> Array:
    """The matrix of b -> a x b."""
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def _mahalanobis(x: Array) -> Array:
    gradient = _precision @ (x - _centre)
    return gradient / np.sqrt((x - _centre) @ gradient)


def _outer(a: Array, b: Array) -> list[Array]:
    return [np.einsum("ik,j->ijk", _eye(len(a)), b), np.einsum("jk,i->ijk", _eye(len(b)), a)]


PROBLEMS = [
    Problem(
        "linear_map", everywhere(lambda xp: lambda x: xp.asarray(_weights) @ x), (draw(12, 5),), lambda x: _weights
    ),
    Problem("matmul", everywhere(lambda xp: lambda a, b: a @ b), (draw(13, 3, 4), draw(14, 4, 2)), matmul_jacobian),
    Problem(
        "bilinear_form",
        everywhere(lambda xp: lambda x, a: x @ a @ x),
        (draw(15, 4), draw(16, 4, 4)),
        lambda x, a: [(a + a.T) @ x, np.outer(x, x)],
    ),
    Problem("outer", everywhere(lambda xp: xp.outer), (draw(17, 3), draw(18, 2)), _outer),
    Problem("determinant", everywhere(lambda xp: xp.linalg.det), (_regular,), _det),
    Problem(
        "log_determinant",
        everywhere(lambda xp: lambda a: xp.linalg.slogdet(a)[1]),
        (_regular,),
        lambda a: np.linalg.inv(a).T,
    ),
    Problem("inverse", everywhere(lambda xp: xp.linalg.inv), (_regular,), _inv),
    Problem("solve", everywhere(lambda xp: xp.linalg.solve), (_regular, draw(19, 3)), _solve),
    Problem(
        "trace_of_product",
        everywhere(lambda xp: lambda a, b: xp.trace(a @ b)),
        (draw(20, 3, 4), draw(21, 4, 3)),
        lambda a, b: [b.T, a.T],
    ),
    Problem(
        "cross",
        everywhere(lambda xp: xp.linalg.cross),
        (draw(22, 3), draw(23, 3)),
        lambda a, b: [-_skew(b), _skew(a)],
    ),
    Problem(
        "norm",
        everywhere(lambda xp: xp.linalg.vector_norm),
        (draw(24, 6),),
        lambda x: x / np.linalg.norm(x),
    ),
    Problem(
        "mahalanobis",
        everywhere(
            lambda xp: lambda x: xp.sqrt((x - xp.asarray(_centre)) @ xp.asarray(_precision) @ (x - xp.asarray(_centre)))
        ),
        (draw(25, 3),),
        _mahalanobis,
    ),
]

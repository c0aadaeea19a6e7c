"""Complex arrays as pairs of reals: f = u + iv of z = x + iy has the block [[u_x, u_y], [v_x, v_y]]."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.problems.linear_algebra import matmul_jacobian
from tests.problems.problem import Array, Problem, draw, everywhere

_z = draw(60, 3) + 1j * draw(61, 3)
_tags = frozenset({"complex"})


def pairs(derivative: Array, m: int, n: int) -> Array:
    """The real Jacobian of a holomorphic function from its complex derivative (m, n)."""
    d = np.reshape(derivative, (m, n))
    rows = np.array([[d.real, -d.imag], [d.imag, d.real]])
    return rows.transpose(2, 0, 3, 1).reshape(2 * m, 2 * n)


def _diagonal(derivative: Any) -> Any:
    return lambda z: pairs(np.diag(derivative(z)), z.size, z.size)


def _matmul(a: Array, b: Array) -> list[Array]:
    by_a, by_b = matmul_jacobian(a, b)
    m = len(a) * b.shape[1]
    return [pairs(by_a, m, a.size), pairs(by_b, m, b.size)]


def _interleave(by_re: Array, by_im: Array) -> Array:
    """Columns (re, im, re, im, ...) of real rows."""
    return np.stack([np.diag(by_re), np.diag(by_im)], axis=-1)


def _phase(t: Array) -> Array:
    """Rows (re, im, re, im, ...) of exp(it)."""
    return np.stack([np.diag(-np.sin(t)), np.diag(np.cos(t))], axis=1)


def _fft(t: Array) -> Array:
    """Four points, so that exp(-2 pi i j k / 4) is exact: the zeros are zeros."""
    wave = np.array([1, -1j, -1, 1j])[np.outer(range(4), range(4)) % 4]
    return np.stack([wave.real, wave.imag], axis=1)


PROBLEMS = [
    Problem("complex_square", everywhere(lambda xp: lambda z: z * z), (_z,), _diagonal(lambda z: 2 * z), _tags),
    Problem(
        "complex_exp_iz",
        everywhere(lambda xp: lambda z: xp.exp(1j * z)),
        (_z,),
        _diagonal(lambda z: 1j * np.exp(1j * z)),
        _tags,
    ),
    Problem(
        "complex_matmul",
        everywhere(lambda xp: lambda a, b: a @ b),
        (draw(62, 2, 3) + 1j * draw(63, 2, 3), draw(64, 3, 2) + 1j * draw(65, 3, 2)),
        _matmul,
        _tags,
    ),
    Problem(
        "complex_modulus_square",
        everywhere(lambda xp: lambda z: xp.real(z) ** 2 + xp.imag(z) ** 2),
        (_z,),
        lambda z: _interleave(2 * z.real, 2 * z.imag),
        _tags,
    ),
    Problem(
        "complex_modulus",
        everywhere(lambda xp: xp.abs),
        (_z,),
        lambda z: _interleave(z.real / abs(z), z.imag / abs(z)),
        _tags,
    ),
    Problem(
        "complex_conjugate",
        everywhere(lambda xp: xp.conj),
        (_z,),
        lambda z: np.kron(np.eye(z.size), np.diag([1.0, -1.0])),
        _tags,
    ),
    Problem("complex_phase", everywhere(lambda xp: lambda t: xp.exp(1j * t)), (draw(66, 3),), _phase, _tags),
    Problem("complex_fft", everywhere(lambda xp: xp.fft.fft), (draw(67, 4),), _fft, _tags),
]

"""Classical least-squares problems with derivatives by hand (Moré, Garbow and Hillstrom, 1981), in plain NumPy.

Each problem is residuals r: R^n -> R^m and their Jacobian, both written from the formulae, at a point near the usual
starting point. ``spoiled`` names terms that can be dropped or changed, for tests that a wrong derivative is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """Residuals with their Jacobian by hand."""

    name: str
    residuals: Callable[[Array], Array]
    jacobian: Callable[[Array], Array]
    x: Array

    def __str__(self) -> str:
        return self.name


def _rosenbrock(x):
    return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def _rosenbrock_jacobian(x):
    return np.array([[-20 * x[0], 10.0], [-1.0, 0.0]])


def _freudenstein(x):
    return np.array([-13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1], -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1]])


def _freudenstein_jacobian(x):
    return np.array([[1.0, 10 * x[1] - 3 * x[1] ** 2 - 2], [1.0, 3 * x[1] ** 2 + 2 * x[1] - 14]])


def _powell_badly_scaled(x):
    return np.array([1e4 * x[0] * x[1] - 1, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001])


def _powell_badly_scaled_jacobian(x):
    return np.array([[1e4 * x[1], 1e4 * x[0]], [-np.exp(-x[0]), -np.exp(-x[1])]])


def _brown_badly_scaled(x):
    return np.array([x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2])


def _brown_badly_scaled_jacobian(x):
    return np.array([[1.0, 0.0], [0.0, 1.0], [x[1], x[0]]])


def _beale(x):
    return np.array([y - x[0] * (1 - x[1] ** i) for i, y in enumerate((1.5, 2.25, 2.625), start=1)])


def _beale_jacobian(x):
    return np.array([[-(1 - x[1] ** i), i * x[0] * x[1] ** (i - 1)] for i in (1, 2, 3)])


def _jennrich(x):
    i = np.arange(1, 11)
    return 2 + 2 * i - (np.exp(i * x[0]) + np.exp(i * x[1]))


def _jennrich_jacobian(x):
    i = np.arange(1, 11)
    return np.stack([-i * np.exp(i * x[0]), -i * np.exp(i * x[1])], axis=1)


def _helical_valley(x):
    theta = np.arctan2(x[1], x[0]) / (2 * np.pi)
    return np.array([10 * (x[2] - 10 * theta), 10 * (np.sqrt(x[0] ** 2 + x[1] ** 2) - 1), x[2]])


def _helical_valley_jacobian(x):
    square, root = x[0] ** 2 + x[1] ** 2, np.hypot(x[0], x[1])
    turn = 100 / (2 * np.pi * square)
    return np.array([[turn * x[1], -turn * x[0], 10.0], [10 * x[0] / root, 10 * x[1] / root, 0.0], [0.0, 0.0, 1.0]])


_BARD = np.array([0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.10, 4.39])


def _bard(x):
    out = np.empty(15)
    for k in range(15):
        u, v = k + 1, 15 - k
        out[k] = _BARD[k] - (x[0] + u / (v * x[1] + min(u, v) * x[2]))
    return out


def _bard_jacobian(x):
    u = np.arange(1.0, 16)
    v = 16 - u
    w = np.minimum(u, v)
    square = (v * x[1] + w * x[2]) ** 2
    return np.stack([-np.ones(15), u * v / square, u * w / square], axis=1)


_GAUSS = np.array(
    [0.0009, 0.0044, 0.0175, 0.054, 0.1295, 0.242, 0.3521, 0.3989, 0.3521, 0.242, 0.1295, 0.054, 0.0175, 0.0044, 0.0009]
)


def _gaussian(x):
    t = (8 - np.arange(1, 16)) / 2
    return x[0] * np.exp(-x[1] * (t - x[2]) ** 2 / 2) - _GAUSS


def _gaussian_jacobian(x):
    t = (8 - np.arange(1, 16)) / 2
    e = np.exp(-x[1] * (t - x[2]) ** 2 / 2)
    return np.stack([e, -x[0] * e * (t - x[2]) ** 2 / 2, x[0] * e * x[1] * (t - x[2])], axis=1)


_MEYER = np.array(
    [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872.0]
)


def _meyer(x):
    t = 45 + 5 * np.arange(1, 17)
    return x[0] * np.exp(x[1] / (t + x[2])) - _MEYER


def _meyer_jacobian(x):
    t = 45 + 5 * np.arange(1, 17)
    e = np.exp(x[1] / (t + x[2]))
    return np.stack([e, x[0] * e / (t + x[2]), -x[0] * e * x[1] / (t + x[2]) ** 2], axis=1)


def _box(x):
    t = np.arange(1, 11) / 10
    return np.exp(-t * x[0]) - np.exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t))


def _box_jacobian(x):
    t = np.arange(1, 11) / 10
    return np.stack([-t * np.exp(-t * x[0]), t * np.exp(-t * x[1]), np.exp(-10 * t) - np.exp(-t)], axis=1)


def _powell_singular(x):
    return np.array(
        [x[0] + 10 * x[1], np.sqrt(5.0) * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2, np.sqrt(10.0) * (x[0] - x[3]) ** 2]
    )


def _powell_singular_jacobian(x):
    jac = np.zeros((4, 4))
    jac[0, :2] = 1.0, 10.0
    jac[1, 2:] = np.sqrt(5.0) * np.array([1.0, -1.0])
    jac[2, 1:3] = 2 * (x[1] - 2 * x[2]) * np.array([1.0, -2.0])
    jac[3, [0, 3]] = 2 * np.sqrt(10.0) * (x[0] - x[3]) * np.array([1.0, -1.0])
    return jac


def _wood(x):
    return np.array(
        [
            10 * (x[1] - x[0] ** 2),
            1 - x[0],
            np.sqrt(90.0) * (x[3] - x[2] ** 2),
            1 - x[2],
            np.sqrt(10.0) * (x[1] + x[3] - 2),
            (x[1] - x[3]) / np.sqrt(10.0),
        ]
    )


def _wood_jacobian(x):
    jac = np.zeros((6, 4))
    jac[0, :2] = -20 * x[0], 10.0
    jac[1, 0] = jac[3, 2] = -1.0
    jac[2, 2:] = -2 * np.sqrt(90.0) * x[2], np.sqrt(90.0)
    jac[4, [1, 3]] = np.sqrt(10.0)
    jac[5, 1], jac[5, 3] = 1 / np.sqrt(10.0), -1 / np.sqrt(10.0)
    return jac


_KOWALIK_Y = np.array([0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246])
_KOWALIK_U = np.array([4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625])


def _kowalik(x):
    u = _KOWALIK_U
    return _KOWALIK_Y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])


def _kowalik_jacobian(x):
    u = _KOWALIK_U
    above, below = u**2 + u * x[1], u**2 + u * x[2] + x[3]
    return np.stack([-above / below, -x[0] * u / below, x[0] * above * u / below**2, x[0] * above / below**2], axis=1)


def _brown_dennis(x):
    t = np.arange(1, 21) / 5
    return (x[0] + t * x[1] - np.exp(t)) ** 2 + (x[2] + x[3] * np.sin(t) - np.cos(t)) ** 2


def _brown_dennis_jacobian(x):
    t = np.arange(1, 21) / 5
    a, b = x[0] + t * x[1] - np.exp(t), x[2] + x[3] * np.sin(t) - np.cos(t)
    return np.stack([2 * a, 2 * a * t, 2 * b, 2 * b * np.sin(t)], axis=1)


_OSBORNE_Y = np.array([0.844, 0.908, 0.932, 0.936, 0.925, 0.908, 0.881, 0.85, 0.818, 0.784, 0.751])


def _osborne(x):
    t = 10.0 * np.arange(11)
    return _OSBORNE_Y - (x[0] + x[1] * np.exp(-t * x[3]) + x[2] * np.exp(-t * x[4]))


def _osborne_jacobian(x):
    t = 10.0 * np.arange(11)
    first, second = np.exp(-t * x[3]), np.exp(-t * x[4])
    return np.stack([-np.ones(11), -first, -second, x[1] * t * first, x[2] * t * second], axis=1)


def _biggs(x):
    t = np.arange(1, 14) / 10
    y = np.exp(-t) - 5 * np.exp(-10 * t) + 3 * np.exp(-4 * t)
    return x[2] * np.exp(-t * x[0]) - x[3] * np.exp(-t * x[1]) + x[5] * np.exp(-t * x[4]) - y


def _biggs_jacobian(x):
    t = np.arange(1, 14) / 10
    a, b, c = np.exp(-t * x[0]), np.exp(-t * x[1]), np.exp(-t * x[4])
    return np.stack([-t * x[2] * a, t * x[3] * b, a, -b, -t * x[5] * c, c], axis=1)


def _watson(x):
    n = len(x)
    out = np.zeros(31)
    for i in range(29):
        t = (i + 1) / 29
        slope = sum(j * x[j] * t ** (j - 1) for j in range(1, n))
        value = sum(x[j] * t**j for j in range(n))
        out[i] = slope - value**2 - 1
    out[29] = x[0]
    out[30] = x[1] - x[0] ** 2 - 1
    return out


def _watson_jacobian(x):
    n = len(x)
    t = np.arange(1, 30)[:, None] / 29
    j = np.arange(n)
    powers = t**j
    jac = np.zeros((31, n))
    jac[:29, 1:] = j[1:] * t ** (j[1:] - 1)
    jac[:29] -= 2 * (powers @ x)[:, None] * powers
    jac[29, 0] = 1.0
    jac[30, :2] = -2 * x[0], 1.0
    return jac


def _extended_rosenbrock(x):
    out = np.empty_like(x)
    out[0::2] = 10 * (x[1::2] - x[0::2] ** 2)
    out[1::2] = 1 - x[0::2]
    return out


def _extended_rosenbrock_jacobian(x):
    jac = np.zeros((x.size, x.size))
    for k in range(0, x.size, 2):
        jac[k, k], jac[k, k + 1], jac[k + 1, k] = -20 * x[k], 10.0, -1.0
    return jac


def _penalty(x):
    return np.append(np.sqrt(1e-5) * (x - 1), x @ x - 0.25)


def _penalty_jacobian(x):
    return np.vstack([np.sqrt(1e-5) * np.eye(x.size), 2 * x])


def _variably_dimensioned(x):
    s = np.arange(1, x.size + 1) @ (x - 1)
    return np.concatenate([x - 1, [s, s**2]])


def _variably_dimensioned_jacobian(x):
    j = np.arange(1.0, x.size + 1)
    return np.vstack([np.eye(x.size), j, 2 * (j @ (x - 1)) * j])


def _trigonometric(x):
    n = x.size
    i = np.arange(1, n + 1)
    return n - np.sum(np.cos(x)) + i * (1 - np.cos(x)) - np.sin(x)


def _trigonometric_jacobian(x):
    i = np.arange(1, x.size + 1)
    jac = np.tile(np.sin(x), (x.size, 1))
    jac[np.diag_indices(x.size)] += i * np.sin(x) - np.cos(x)
    return jac


def _brown_almost_linear(x):
    out = x + np.sum(x) - (x.size + 1)
    out[-1] = np.prod(x) - 1
    return out


def _brown_almost_linear_jacobian(x):
    jac = np.eye(x.size) + 1
    jac[-1] = np.prod(x) / x
    return jac


def _discrete_boundary_value(x):
    h = 1 / (x.size + 1)
    t = h * np.arange(1, x.size + 1)
    padded = np.zeros(x.size + 2)
    padded[1:-1] = x
    return 2 * x - padded[:-2] - padded[2:] + h**2 * (x + t + 1) ** 3 / 2


def _discrete_boundary_value_jacobian(x):
    h = 1 / (x.size + 1)
    t = h * np.arange(1, x.size + 1)
    jac = np.diag(2 + 1.5 * h**2 * (x + t + 1) ** 2)
    return jac - np.eye(x.size, k=1) - np.eye(x.size, k=-1)


def _broyden_tridiagonal(x):
    out = (3 - 2 * x) * x + 1
    out[1:] -= x[:-1]
    out[:-1] -= 2 * x[1:]
    return out


def _broyden_tridiagonal_jacobian(x):
    return np.diag(3 - 4 * x) - np.eye(x.size, k=-1) - 2 * np.eye(x.size, k=1)


def _chebyquad(x):
    n = x.size
    out = np.zeros(n)
    before, now = np.ones(n), 2 * x - 1
    for i in range(1, n + 1):
        out[i - 1] = np.mean(now) + (1 / (i**2 - 1) if i % 2 == 0 else 0.0)
        before, now = now, 2 * (2 * x - 1) * now - before
    return out


def _chebyquad_jacobian(x):
    n = x.size
    jac = np.zeros((n, n))
    t = 2 * x - 1
    before, now = np.ones(n), t
    slope_before, slope = np.zeros(n), 2 * np.ones(n)
    for i in range(n):
        jac[i] = slope / n
        before, now, slope_before, slope = now, 2 * t * now - before, slope, 4 * now + 2 * t * slope - slope_before
    return jac


PROBLEMS = [
    Problem("rosenbrock", _rosenbrock, _rosenbrock_jacobian, np.array([-1.2, 1.0])),
    Problem("freudenstein_roth", _freudenstein, _freudenstein_jacobian, np.array([0.5, -2.0])),
    Problem("powell_badly_scaled", _powell_badly_scaled, _powell_badly_scaled_jacobian, np.array([0.3, 1.0])),
    Problem("brown_badly_scaled", _brown_badly_scaled, _brown_badly_scaled_jacobian, np.array([1.3, 0.7])),
    Problem("beale", _beale, _beale_jacobian, np.array([1.2, 0.8])),
    Problem("jennrich_sampson", _jennrich, _jennrich_jacobian, np.array([0.3, 0.4])),
    Problem("helical_valley", _helical_valley, _helical_valley_jacobian, np.array([-1.0, 0.4, 0.2])),
    Problem("bard", _bard, _bard_jacobian, np.array([1.0, 1.1, 0.9])),
    Problem("gaussian", _gaussian, _gaussian_jacobian, np.array([0.4, 1.0, 0.1])),
    Problem("meyer", _meyer, _meyer_jacobian, np.array([0.02, 4000.0, 250.0])),
    Problem("box", _box, _box_jacobian, np.array([0.3, 10.0, 20.0])),
    Problem("powell_singular", _powell_singular, _powell_singular_jacobian, np.array([3.0, -1.0, 0.4, 1.0])),
    Problem("wood", _wood, _wood_jacobian, np.array([-3.0, -1.0, -3.0, -1.2])),
    Problem("kowalik_osborne", _kowalik, _kowalik_jacobian, np.array([0.25, 0.39, 0.415, 0.39])),
    Problem("brown_dennis", _brown_dennis, _brown_dennis_jacobian, np.array([25.0, 5.0, -5.0, -1.0])),
    Problem("osborne_1", _osborne, _osborne_jacobian, np.array([0.5, 1.5, -1.0, 0.01, 0.02])),
    Problem("biggs_exp6", _biggs, _biggs_jacobian, np.array([1.0, 2.0, 1.1, 1.2, 0.9, 0.8])),
    Problem("watson", _watson, _watson_jacobian, np.array([0.1, 0.3, -0.2, 0.4, 0.2, -0.1])),
    Problem(
        "extended_rosenbrock", _extended_rosenbrock, _extended_rosenbrock_jacobian, np.array([-1.2, 1.0, 0.7, 0.3])
    ),
    Problem("penalty_1", _penalty, _penalty_jacobian, np.array([1.0, 2.0, 3.0, 4.0])),
    Problem(
        "variably_dimensioned", _variably_dimensioned, _variably_dimensioned_jacobian, np.array([0.8, 0.5, 0.2, 0.1])
    ),
    Problem("trigonometric", _trigonometric, _trigonometric_jacobian, np.array([0.2, 0.3, 0.25, 0.4])),
    Problem("brown_almost_linear", _brown_almost_linear, _brown_almost_linear_jacobian, np.array([0.5, 0.6, 0.7, 0.4])),
    Problem(
        "discrete_boundary_value",
        _discrete_boundary_value,
        _discrete_boundary_value_jacobian,
        np.array([-0.1, -0.2, -0.15]),
    ),
    Problem(
        "broyden_tridiagonal", _broyden_tridiagonal, _broyden_tridiagonal_jacobian, np.array([-1.0, -0.8, -1.1, -0.9])
    ),
    Problem("chebyquad", _chebyquad, _chebyquad_jacobian, np.array([0.2, 0.45, 0.6, 0.85])),
]

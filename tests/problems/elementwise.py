"""Entry by entry: the Jacobian is diagonal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from tests.problems.problem import Array, Factory, Problem, at, draw, everywhere


def _problem(
    name: str, functions: dict[str, Factory], derivative: Callable[[Array], Array], x: Array, *tags: str
) -> Problem:
    return Problem(name, functions, (x,), lambda v: np.diag(derivative(v).ravel()), frozenset(tags))


def _named(name: str, derivative: Callable[[Array], Array], x: Array) -> Problem:
    return _problem(name, everywhere(lambda xp: getattr(xp, name)), derivative, x)


def _pairwise(
    name: str, factory: Factory, derivatives: Callable[[Array, Array], list[Array]], x: Array, y: Array, *tags: str
) -> Problem:
    def jacobian(a: Array, b: Array) -> list[Array]:
        return [np.diag(d.ravel()) for d in derivatives(a, b)]

    return Problem(name, everywhere(factory), (x, y), jacobian, frozenset(tags))


def _sigmoid(x: Array) -> Array:
    return np.asarray(special.expit(x))


def _normal_density(x: Array) -> Array:
    return np.asarray(np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


def _jax_gelu(_: Any) -> Callable[..., Any]:
    gelu = at("jax.nn", "gelu")(_)
    return lambda x: gelu(x, approximate=False)


_x = draw(1, 2, 3)
_positive = draw(2, 5, low=0.2, high=4.0)
_away = np.array([-1.3, -0.4, 0.25, 0.8, 2.1])

PROBLEMS = [
    _named("sin", np.cos, _x),
    _named("exp", np.exp, _x),
    _named("log", np.reciprocal, _positive),
    _named("sqrt", lambda x: 0.5 / np.sqrt(x), _positive),
    _named("tanh", lambda x: 1 - np.tanh(x) ** 2, _x),
    _problem("log_over_decades", everywhere(lambda xp: xp.log), np.reciprocal, 10.0 ** np.arange(-6, 7, 2)),
    _problem("cube", everywhere(lambda xp: lambda x: x**3), lambda x: 3 * x**2, _x),
    _problem("reciprocal", everywhere(lambda xp: lambda x: 1 / x), lambda x: -1 / x**2, _positive),
    _problem("abs", everywhere(lambda xp: xp.abs), np.sign, _away, "kinks"),
    _problem(
        "clip", everywhere(lambda xp: lambda x: xp.clip(x, -1.0, 1.0)), lambda x: (abs(x) < 1) * 1.0, _away, "kinks"
    ),
    _problem(
        "relu",
        {"numpy": lambda xp: lambda x: xp.maximum(x, 0.0), "jax": at("jax.nn", "relu"), "torch": lambda xp: xp.relu},
        lambda x: (x > 0) * 1.0,
        _away,
        "kinks",
    ),
    _problem(
        "sigmoid",
        {
            "numpy": lambda xp: lambda x: 1 / (1 + xp.exp(-x)),
            "jax": at("jax.nn", "sigmoid"),
            "torch": lambda xp: xp.sigmoid,
        },
        lambda x: _sigmoid(x) * _sigmoid(-x),
        _x,
    ),
    _problem(
        "softplus",
        {
            "numpy": lambda xp: lambda x: xp.logaddexp(0.0, x),
            "jax": at("jax.nn", "softplus"),
            "torch": at("torch.nn.functional", "softplus"),
        },
        _sigmoid,
        _x,
    ),
    _problem(
        "gelu",
        {
            "numpy": lambda xp: lambda x: x * (1 + special.erf(x / xp.sqrt(2.0))) / 2,
            "jax": _jax_gelu,
            "torch": at("torch.nn.functional", "gelu"),
        },
        lambda x: special.ndtr(x) + x * _normal_density(x),
        _x,
    ),
    _problem(
        "log_gamma",
        {
            "numpy": at("scipy.special", "gammaln"),
            "jax": at("jax.scipy.special", "gammaln"),
            "torch": lambda xp: xp.lgamma,
        },
        lambda x: np.asarray(special.digamma(x)),
        _positive,
    ),
    _pairwise(
        "arctan2",
        lambda xp: xp.arctan2,
        lambda y, x: [x / (x * x + y * y), -y / (x * x + y * y)],
        draw(3, 4),
        draw(4, 4),
    ),
    _pairwise(
        "power",
        lambda xp: lambda x, p: x**p,
        lambda x, p: [p * x ** (p - 1), np.log(x) * x**p],
        _positive,
        draw(5, 5),
    ),
    _pairwise(
        "maximum",
        lambda xp: xp.maximum,
        lambda a, b: [(a > b) * 1.0, (a < b) * 1.0],
        np.array([1.0, -0.5, 2.0]),
        np.array([0.2, 0.7, -1.0]),
        "kinks",
    ),
]

"""Sums, statistics, scans, orders."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.problems.problem import Array, Problem, at, draw, everywhere

_x = draw(30, 6)
_distinct = np.array([0.3, -1.1, 2.0, 0.9, -0.2])


def softmax(x: Array) -> Array:
    """Along the last axis."""
    return np.asarray(special.softmax(x, axis=-1))


def _softmax(x: Array) -> Array:
    """Rows do not mix: dp_ij / dx_kl = [i = k] p_ij ([j = l] - p_il)."""
    p = softmax(x)
    rows = np.einsum("ij,jl->ijl", p, np.eye(x.shape[1])) - np.einsum("ij,il->ijl", p, p)
    return np.einsum("ik,ijl->ijkl", np.eye(len(x)), rows)


def _without(x: Array, j: int) -> Array:
    return np.where(np.arange(len(x)) == j, 1.0, x)


def _cumprod(x: Array) -> Array:
    columns = [np.cumprod(_without(x, j)) * (np.arange(len(x)) >= j) for j in range(len(x))]
    return np.stack(columns, axis=1)


def _layer_norm(x: Array, gain: Array, shift: Array) -> list[Array]:
    n, scale = len(x), np.sqrt(np.var(x) + 1e-5)
    normal = (x - np.mean(x)) / scale
    centred = np.eye(n) - 1 / n - np.outer(normal, normal) / n
    return [gain[:, None] * centred / scale, np.diag(normal), np.eye(n)]


def _layer_norm_formula(xp: Any) -> Any:
    def layer_norm(x: Any, gain: Any, shift: Any) -> Any:
        return (x - xp.mean(x)) / xp.sqrt(xp.var(x) + 1e-5) * gain + shift

    return layer_norm


PROBLEMS = [
    Problem(
        "softmax",
        {
            "numpy": lambda xp: lambda x: xp.exp(x) / xp.sum(xp.exp(x), axis=-1, keepdims=True),
            "jax": at("jax.nn", "softmax"),
            "torch": lambda xp: lambda x: xp.softmax(x, -1),
        },
        (draw(31, 2, 4),),
        _softmax,
    ),
    Problem(
        "log_sum_exp",
        {
            "numpy": lambda xp: lambda x: xp.log(xp.sum(xp.exp(x))),
            "jax": at("jax.nn", "logsumexp"),
            "torch": lambda xp: lambda x: xp.logsumexp(x, 0),
        },
        (_x,),
        softmax,
    ),
    Problem(
        "layer_norm",
        {
            "numpy": _layer_norm_formula,
            "jax": _layer_norm_formula,
            "torch": lambda xp: lambda x, g, b: xp.nn.functional.layer_norm(x, x.shape, g, b),
        },
        (draw(32, 5), draw(33, 5), draw(34, 5)),
        _layer_norm,
    ),
    Problem("mean", everywhere(lambda xp: xp.mean), (_x,), lambda x: np.full(len(x), 1 / len(x))),
    Problem(
        "variance",
        everywhere(lambda xp: lambda x: xp.var(x, correction=1)),
        (_x,),
        lambda x: 2 * (x - x.mean()) / (len(x) - 1),
    ),
    Problem(
        "standard_deviation",
        everywhere(lambda xp: lambda x: xp.std(x, correction=1)),
        (_x,),
        lambda x: (x - x.mean()) / (len(x) - 1) / np.std(x, ddof=1),
    ),
    Problem("cumsum", everywhere(lambda xp: lambda x: xp.cumsum(x, 0)), (_x,), lambda x: np.tri(len(x))),
    Problem("cumprod", everywhere(lambda xp: lambda x: xp.cumprod(x, 0)), (_x,), _cumprod),
    Problem(
        "product",
        everywhere(lambda xp: xp.prod),
        (_x,),
        lambda x: np.array([np.prod(_without(x, j)) for j in range(len(x))]),
    ),
    Problem(
        "sort",
        {"numpy": lambda xp: xp.sort, "jax": lambda xp: xp.sort, "torch": lambda xp: lambda x: xp.sort(x).values},
        (_distinct,),
        lambda x: np.eye(len(x))[np.argsort(x)],
        frozenset({"kinks"}),
    ),
    Problem(
        "max",
        everywhere(lambda xp: xp.max),
        (_distinct,),
        lambda x: (x == x.max()) * 1.0,
        frozenset({"kinks"}),
    ),
    Problem(
        "row_minima",
        everywhere(lambda xp: lambda x: xp.amin(x, 1)),
        (draw(35, 3, 4),),
        lambda x: np.einsum("ik,kl->ikl", np.eye(len(x)), (x == x.min(1, keepdims=True)) * 1.0),
        frozenset({"kinks"}),
    ),
]

"""Probability, filters, and samplers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tests.consistency.case import draw
from tests.consistency.ports.port import Port

STATE = draw(680, 3)
OBSERVE, NOISE = draw(682, 2, 3), np.diag([0.5, 0.8])


def torch_kalman(x: Any, root: Any, h: Any, r: Any, y: Any) -> Any:
    p = root @ root.T
    s = h @ p @ h.T + r
    k = torch.linalg.solve(s, h @ p).T
    return x + k @ (y - h @ x), p - k @ s @ k.T


def jax_kalman(joseph: bool = True, noise: bool = True, turned: bool = False) -> Callable[..., Any]:
    def update(x: Any, root: Any, h: Any, r: Any, y: Any) -> Any:
        p = root @ root.T
        s = h @ p @ h.T + (r if noise else 0.0)
        k = p @ h.T @ jnp.linalg.inv(s)
        kept = jnp.eye(3) - k @ h
        p = kept @ p @ kept.T + k @ r @ k.T if joseph else kept @ p @ kept.T
        innovation = h @ x - y if turned else y - h @ x
        return x + k @ innovation, p

    return update


def torch_process(x: Any, y: Any, scale: Any, noise: Any) -> Any:
    gap = (x[:, None] - x[None]) / scale
    k = torch.exp(-0.5 * gap**2) + noise**2 * torch.eye(len(x), dtype=x.dtype)
    root = torch.linalg.cholesky(k)
    alpha = torch.cholesky_solve(y[:, None], root)[:, 0]
    return -0.5 * y @ alpha - root.diagonal().log().sum() - len(x) / 2 * math.log(2 * math.pi)


def jax_process(determinant: float = 0.5, power: int = 2, constant: bool = True) -> Callable[..., Any]:
    def likelihood(x: Any, y: Any, scale: Any, noise: Any) -> Any:
        k = jnp.exp(-0.5 * ((x[:, None] - x[None]) / scale) ** 2) + noise**power * jnp.eye(len(x))
        rest = len(x) / 2 * np.log(2 * np.pi) if constant else 0.0
        return -0.5 * y @ jnp.linalg.solve(k, y) - determinant * jnp.linalg.slogdet(k)[1] - rest

    return likelihood


def torch_gumbel(z: Any, uniform: Any) -> Any:
    g = -torch.log(-torch.log(uniform))
    return torch.softmax((z + g) / 0.7, -1)


def jax_gumbel(sign: float = 1.0, divided: bool = True) -> Callable[..., Any]:
    def sample(z: Any, uniform: Any) -> Any:
        g = -jnp.log(sign * -jnp.log(uniform)) if sign > 0 else jnp.log(-jnp.log(uniform))
        return jax.nn.softmax((z + g) / 0.7 if divided else z / 0.7 + g)

    return sample


def torch_mixture(x: Any, weight: Any, mean: Any, log_scale: Any) -> Any:
    each = -0.5 * ((x[:, None] - mean) / log_scale.exp()) ** 2 - log_scale - 0.5 * math.log(2 * math.pi)
    return torch.logsumexp(torch.log_softmax(weight, -1) + each, -1).sum()


def jax_mixture(normed: bool = True, jacobian: float = 1.0, inside: bool = True) -> Callable[..., Any]:
    def likelihood(x: Any, weight: Any, mean: Any, log_scale: Any) -> Any:
        each = jax.scipy.stats.norm.logpdf(x[:, None], mean, jnp.exp(log_scale)) + (1 - jacobian) * log_scale
        w = jax.nn.log_softmax(weight) if normed else weight
        return jnp.sum(jax.nn.logsumexp(w + each, axis=-1) if inside else (jnp.exp(w) * each).sum(-1))

    return likelihood


def torch_normal(x: Any, mean: Any, root: Any) -> Any:
    return torch.distributions.MultivariateNormal(mean, scale_tril=torch.tril(root) + 2 * torch.eye(3)).log_prob(x)


def jax_normal(upper: bool = False, squared: bool = True) -> Callable[..., Any]:
    def log_prob(x: Any, mean: Any, root: Any) -> Any:
        root = (jnp.triu(root) if upper else jnp.tril(root)) + 2 * jnp.eye(3)
        covariance = root @ root.T if squared else root
        return jax.scipy.stats.multivariate_normal.logpdf(x, mean, covariance)

    return log_prob


def torch_sinkhorn(cost: Any) -> Any:
    u, v = torch.zeros(3, dtype=cost.dtype), torch.zeros(3, dtype=cost.dtype)
    k = -cost / 0.5
    for _ in range(4):
        u = -math.log(3) - torch.logsumexp(k + v[None], 1)
        v = -math.log(3) - torch.logsumexp(k + u[:, None], 0)
    return (torch.exp(k + u[:, None] + v[None]) * cost).sum()


def jax_sinkhorn(axes: tuple[int, int] = (1, 0), steps: int = 4, at_once: bool = False) -> Callable[..., Any]:
    def distance(cost: Any) -> Any:
        k = -cost / 0.5

        def step(_: int, uv: Any) -> Any:
            u, v = uv
            new = -jnp.log(3.0) - jax.nn.logsumexp(k + v[None], axis=axes[0])
            v = -jnp.log(3.0) - jax.nn.logsumexp(k + (u if at_once else new)[:, None], axis=axes[1])
            return new, v

        u, v = jax.lax.fori_loop(0, steps, step, (jnp.zeros(3), jnp.zeros(3)))
        return jnp.sum(jnp.exp(k + u[:, None] + v[None]) * cost)

    return distance


PORTS = (
    Port(
        "kalman update",
        torch_kalman,
        jax_kalman(),
        {
            "half of the formula of Joseph": jax_kalman(joseph=False),
            "noise left out": jax_kalman(noise=False),
            "innovation of the wrong sign": jax_kalman(turned=True),
        },
        (STATE, draw(683, 3, 3) + 2 * np.eye(3), OBSERVE, NOISE, draw(684, 2)),
        accept=("symmetric_domain",),
    ),
    Port(
        "gaussian process",
        torch_process,
        jax_process(),
        {
            "the whole determinant": jax_process(determinant=1.0),
            "deviation for variance": jax_process(power=1),
            "no constant": jax_process(constant=False),
        },
        (draw(685, 4), draw(686, 4), np.array(0.8), np.array(0.6)),
    ),
    Port(
        "gumbel softmax",
        torch_gumbel,
        jax_gumbel(),
        {"noise of the wrong sign": jax_gumbel(sign=-1.0), "noise not divided": jax_gumbel(divided=False)},
        (draw(687, 2, 4), draw(688, 2, 4, low=0.05, high=0.95)),
    ),
    Port(
        "mixture of gaussians",
        torch_mixture,
        jax_mixture(),
        {
            "weights not normed": jax_mixture(normed=False),
            "no determinant": jax_mixture(jacobian=0.0),
            "logarithm inside": jax_mixture(inside=False),
        },
        (draw(689, 4), draw(690, 3), draw(691, 3), draw(692, 3)),
    ),
    Port(
        "normal with a triangular root",
        torch_normal,
        jax_normal(),
        {"the other triangle": jax_normal(upper=True)},
        (draw(693, 3), draw(694, 3), draw(695, 3, 3)),
    ),
    Port(
        "sinkhorn",
        torch_sinkhorn,
        jax_sinkhorn(),
        {
            "along the other axis": jax_sinkhorn((0, 1)),
            "a step too few": jax_sinkhorn(steps=3),
            "the old potential": jax_sinkhorn(at_once=True),
        },
        (draw(696, 3, 3, low=0.0),),
    ),
)

"""Steps of optimisers, returns, and what stands still in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from tests.consistency.case import draw
from tests.consistency.ports.port import Port

DONE = np.array([0, 0, 1, 0, 0])


def torch_advantages(reward: Any, value: Any, done: Any) -> Any:
    out, last = [], torch.zeros((), dtype=reward.dtype)
    for t in reversed(range(len(reward))):
        alive = (1 - done[t]).to(reward.dtype)  # 0.9 times an integer tensor is float32
        delta = reward[t] + 0.9 * value[t + 1] * alive - value[t]
        last = delta + 0.9 * 0.8 * alive * last
        out.append(last)
    return torch.stack(out[::-1])


def jax_advantages(reverse: bool = True, ends: bool = True, masked: bool = True) -> Callable[..., Any]:
    def advantages(reward: Any, value: Any, done: Any) -> Any:
        def step(last: Any, row: Any) -> Any:
            r, now, after, over = row
            delta = r + 0.9 * after * (1 - over if masked else 1) - now
            last = delta + 0.9 * 0.8 * (1 - over if ends else 1) * last
            return last, last

        rows = (reward, value[:-1], value[1:], done)
        return jax.lax.scan(step, jnp.zeros((), reward.dtype), rows, reverse=reverse)[1]

    return advantages


def torch_adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = (m / (1 - 0.9**3)) / ((v / (1 - 0.999**3)).sqrt() + 1e-3)
    return p - 0.1 * 0.01 * p - 0.1 * step, m, v


def jax_adam(
    decoupled: bool = True, inside: bool = False, corrected: bool = True, after: bool = False
) -> Callable[..., Any]:
    def update(p: Any, g: Any, m: Any, v: Any) -> Any:
        g = g if decoupled else g + 0.01 * p
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        a, b = (1 - 0.9**3, 1 - 0.999**3) if corrected else (1.0, 1.0)
        step = m / a / (jnp.sqrt(v / b + 1e-3) if inside else jnp.sqrt(v / b) + 1e-3)
        decay = 0.01 * p if decoupled else 0.0
        return ((p - 0.1 * step) * (1 - 0.001) if after else p - 0.1 * (step + decay)), m, v

    return update


def torch_momentum(p: Any, g: Any, buffer: Any) -> Any:
    buffer = 0.9 * buffer + g
    return p - 0.1 * (g + 0.9 * buffer), buffer


def jax_momentum(nesterov: bool = True, dampening: float = 0.0) -> Callable[..., Any]:
    def update(p: Any, g: Any, buffer: Any) -> Any:
        buffer = 0.9 * buffer + (1 - dampening) * g
        return p - 0.1 * (g + 0.9 * buffer if nesterov else buffer), buffer

    return update


def torch_clipped(g: Any, h: Any) -> Any:
    size = torch.sqrt((g**2).sum() + (h**2).sum())
    factor = torch.clamp(1.0 / (size + 1e-6), max=1.0)
    return g * factor, h * factor


def jax_clipped(eps: float = 1e-6, each: bool = False) -> Callable[..., Any]:
    def clip(g: Any, h: Any) -> Any:
        whole = jnp.sqrt(jnp.sum(g**2) + jnp.sum(h**2))
        sizes = (jnp.linalg.norm(g), jnp.linalg.norm(h)) if each else (whole, whole)
        return tuple(a * jnp.minimum(1.0 / (s + eps), 1.0) for a, s in zip((g, h), sizes, strict=True))

    return clip


def torch_td(w: Any, x: Any, after: Any, reward: Any) -> Any:
    target = reward + 0.9 * (after @ w).detach()
    return F.mse_loss(x @ w, target)


def jax_td(stop: bool = True, wrong: bool = False, half: bool = False) -> Callable[..., Any]:
    def loss(w: Any, x: Any, after: Any, reward: Any) -> Any:
        later = 0.9 * after @ w
        now = x @ w
        target = reward + (jax.lax.stop_gradient(later) if stop else later)
        now = jax.lax.stop_gradient(now) if wrong else now
        return jnp.mean((now - target) ** 2) * (0.5 if half else 1.0)

    return loss


def torch_straight(x: Any) -> Any:
    hard = torch.round(x)
    return (x + (hard - x).detach()) ** 2


def jax_straight(through: bool = True, clip: bool = False) -> Callable[[Any], Any]:
    def quantise(x: Any) -> Any:
        soft = jnp.clip(x, -1.0, 1.0) if clip else x
        hard = soft + jax.lax.stop_gradient(jnp.round(x) - soft)
        return (hard if through else jnp.round(x)) ** 2

    return quantise


def torch_spectral(w: Any, u: Any) -> Any:
    v = F.normalize(w.T @ u, dim=0).detach()
    u = F.normalize(w @ v, dim=0).detach()
    return w / (u @ w @ v)


def jax_spectral(stop: bool = True) -> Callable[..., Any]:
    still = jax.lax.stop_gradient if stop else jnp.asarray

    def norm(w: Any, u: Any) -> Any:
        v = w.T @ u
        v = still(v / jnp.linalg.norm(v))
        u = w @ v
        u = still(u / jnp.linalg.norm(u))
        return w / (u @ w @ v)

    return norm


def torch_dropped(x: Any, keep: Any) -> Any:
    return torch.tanh(x) * keep.to(x.dtype) / 0.8


KEEP = np.array([[1, 0, 1], [1, 1, 0]])

PORTS = (
    Port(
        "generalised advantages",
        torch_advantages,
        jax_advantages(),
        {
            "scan runs forwards": jax_advantages(reverse=False),
            "ends of episodes ignored": jax_advantages(ends=False),
            "value beyond the end": jax_advantages(masked=False),
        },
        (draw(720, 5), draw(721, 6), DONE),
    ),
    Port(
        "adam with decoupled decay",
        torch_adam,
        jax_adam(),
        {
            "decay in the gradient": jax_adam(decoupled=False),
            "epsilon inside": jax_adam(inside=True),
            "no correction of the bias": jax_adam(corrected=False),
            "decay after the step": jax_adam(after=True),
        },
        (draw(722, 3), draw(723, 3), draw(724, 3), draw(725, 3, low=0.1)),
    ),
    Port(
        "momentum of Nesterov",
        torch_momentum,
        jax_momentum(),
        {"plain": jax_momentum(nesterov=False), "dampened": jax_momentum(dampening=0.1)},
        (draw(726, 3), draw(727, 3), draw(728, 3)),
    ),
    Port(
        "clipping by the norm",
        torch_clipped,
        jax_clipped(),
        {"each by its own": jax_clipped(each=True), "no epsilon": jax_clipped(eps=0.0)},
        (draw(729, 3), draw(730, 2, 2)),
    ),
    Port(
        "temporal difference",
        torch_td,
        jax_td(),
        {
            "target not held still": jax_td(stop=False),
            "value held still": jax_td(stop=True, wrong=True),
            "half of it": jax_td(half=True),
        },
        (draw(731, 2), draw(732, 3, 2), draw(733, 3, 2), draw(734, 3)),
        accept=("stop_gradient",),
    ),
    Port(
        "straight-through rounding",
        torch_straight,
        jax_straight(),
        {"not through": jax_straight(through=False), "clipped": jax_straight(clip=True)},
        (draw(735, 5),),
        accept=("stop_gradient",),
    ),
    Port(
        "spectral norm",
        torch_spectral,
        jax_spectral(),
        {"vectors not held still": jax_spectral(stop=False)},
        (draw(736, 3, 2), draw(737, 3)),
        accept=("stop_gradient",),
    ),
    Port(
        "dropout",
        torch_dropped,
        lambda x, keep: jnp.where(keep, jnp.tanh(x) / 0.8, 0.0),
        {
            "not scaled": lambda x, keep: jnp.where(keep, jnp.tanh(x), 0.0),
            "mask turned round": lambda x, keep: jnp.where(keep, 0.0, jnp.tanh(x) / 0.8),
        },
        (draw(738, 2, 3), KEEP),
        numpy=lambda x, keep: np.tanh(x) * keep / 0.8,
    ),
)

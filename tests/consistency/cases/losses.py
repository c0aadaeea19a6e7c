"""Losses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import torch
import torch.nn.functional as F

from tests.consistency.case import Case, draw

_logits, _labels = draw(20, 3, 4), np.array([1, 0, 3])
_y, _t = draw(21, 5), draw(22, 5)
_probabilities = draw(23, 5, low=0.1, high=0.9)


def _jax_cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def _numpy_cross_entropy(logits, labels):
    return np.mean(scipy.special.logsumexp(logits, 1) - logits[np.arange(len(labels)), labels])


def _binary(xp):
    def binary_cross_entropy(y, t):
        t = (t + 2) / 4
        return xp.mean(xp.logaddexp(xp.zeros_like(y), y) - t * y)

    return binary_cross_entropy


def _huber(xp):
    def huber(y, t):
        d = abs(y - t)
        return xp.mean(xp.where(d < 1, 0.5 * d * d, d - 0.5))

    return huber


def _cosine(xp):
    return lambda y, t: 1 - (y * t).sum() / xp.sqrt((y**2).sum() * (t**2).sum())


CASES = [
    Case("mse", F.mse_loss, lambda y, t: jnp.mean((y - t) ** 2), lambda y, t: np.mean((y - t) ** 2), (_y, _t)),
    Case("l1", F.l1_loss, lambda y, t: jnp.mean(abs(y - t)), lambda y, t: np.mean(abs(y - t)), (_y, _t), smooth=False),
    Case("huber", F.huber_loss, _huber(jnp), _huber(np), (_y, _t)),
    Case("cross_entropy", F.cross_entropy, _jax_cross_entropy, _numpy_cross_entropy, (_logits, _labels)),
    Case(
        "binary_cross_entropy_with_logits",
        lambda y, t: F.binary_cross_entropy_with_logits(y, (t + 2) / 4),
        _binary(jnp),
        _binary(np),
        (_y, _t),
    ),
    Case(
        "kl_divergence",
        lambda y, p: F.kl_div(F.log_softmax(y, -1), p / p.sum(), reduction="sum"),
        lambda y, p: jnp.sum(jax.scipy.special.rel_entr(p / p.sum(), jax.nn.softmax(y))),
        lambda y, p: np.sum(scipy.special.rel_entr(p / p.sum(), scipy.special.softmax(y))),
        (_y, _probabilities),
    ),
    Case(
        "gaussian_nll",
        lambda y, t, v: F.gaussian_nll_loss(y, t, v),
        lambda y, t, v: jnp.mean(0.5 * (jnp.log(v) + (y - t) ** 2 / v)),
        lambda y, t, v: np.mean(0.5 * (np.log(v) + (y - t) ** 2 / v)),
        (_y, _t, _probabilities),
    ),
    Case(
        "poisson_nll",
        lambda y, t: F.poisson_nll_loss(y, t),
        lambda y, t: jnp.mean(jnp.exp(y) - t * y),
        lambda y, t: np.mean(np.exp(y) - t * y),
        (_y, _probabilities),
    ),
    Case("cosine_distance", lambda y, t: 1 - F.cosine_similarity(y, t, dim=0), _cosine(jnp), _cosine(np), (_y, _t)),
    Case(
        "hinge",
        lambda y: torch.clamp(1 - y, min=0).sum(),
        lambda y: jnp.maximum(0, 1 - y).sum(),
        lambda y: np.maximum(0, 1 - y).sum(),
        (_y,),
        smooth=False,
    ),
]

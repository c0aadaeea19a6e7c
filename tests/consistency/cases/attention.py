"""Attention."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import torch
import torch.nn.functional as F

from tests.consistency.case import Case, draw

_q, _k, _v = draw(50, 3, 2), draw(51, 3, 2), draw(52, 3, 2)


def _numpy_attention(q, k, v, mask=None):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    return scipy.special.softmax(scores, -1) @ v


def _jax_attention(q, k, v, **options):
    return jax.nn.dot_product_attention(q[None, :, None], k[None, :, None], v[None, :, None], **options)[0, :, 0]


def _rotate(xp):
    """Rotary position embedding of pairs of channels."""

    def rotate(x):
        angle = xp.arange(x.shape[0], dtype=x.dtype)[:, None] * 0.5
        a, b = x[:, :1], x[:, 1:]
        return xp.stack([a * xp.cos(angle) - b * xp.sin(angle), a * xp.sin(angle) + b * xp.cos(angle)], 1)[..., 0]

    return rotate


def _linear_attention(xp, elu):
    def attention(q, k, v):
        q, k = elu(q) + 1, elu(k) + 1
        return q @ (k.T @ v) / (q @ k.sum(0))[:, None]

    return attention


def _numpy_elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


CASES = [
    Case("attention", F.scaled_dot_product_attention, _jax_attention, _numpy_attention, (_q, _k, _v)),
    Case(
        "causal_attention",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: _jax_attention(q, k, v, is_causal=True),
        lambda q, k, v: _numpy_attention(q, k, v, np.tril(np.ones((3, 3), bool))),
        (_q, _k, _v),
    ),
    Case(
        "linear_attention",
        _linear_attention(torch, F.elu),
        _linear_attention(jnp, jax.nn.elu),
        _linear_attention(np, _numpy_elu),
        (_q, _k, _v),
    ),
    Case("rotary_embedding", _rotate(torch), _rotate(jnp), _rotate(np), (_q,), smooth=False),
]

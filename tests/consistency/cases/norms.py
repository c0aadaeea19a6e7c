"""Normalisations and norms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from tests.consistency.case import Case, draw

_x, _scale, _shift = draw(10, 2, 4), draw(11, 4, low=0.5), draw(12, 4)
_image = draw(13, 2, 2, 3)


def _layer_norm(xp):
    def layer_norm(x, scale, shift):
        centred = x - x.mean(-1, keepdims=True)
        return centred / xp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    return layer_norm


def _rms_norm(xp):
    return lambda x, scale: x / xp.sqrt(xp.mean(x**2, -1, keepdims=True) + 1e-6) * scale


def _batch_norm(xp):
    def batch_norm(x):
        mean = x.mean((0, 2), keepdims=True)
        return (x - mean) / xp.sqrt(((x - mean) ** 2).mean((0, 2), keepdims=True) + 1e-5)

    return batch_norm


def _group_norm(xp):
    def group_norm(x):
        grouped = x.reshape(x.shape[0], 2, -1)
        centred = grouped - grouped.mean(-1, keepdims=True)
        return (centred / xp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).reshape(x.shape)

    return group_norm


CASES = [
    Case(
        "layer_norm",
        lambda x, scale, shift: F.layer_norm(x, (4,), scale, shift),
        _layer_norm(jnp),
        _layer_norm(np),
        (_x, _scale, _shift),
    ),
    Case("rms_norm", lambda x, scale: F.rms_norm(x, (4,), scale, 1e-6), _rms_norm(jnp), _rms_norm(np), (_x, _scale)),
    Case(
        "batch_norm",
        lambda x: F.batch_norm(x, None, None, training=True),
        _batch_norm(jnp),
        _batch_norm(np),
        (_image,),
    ),
    Case("group_norm", lambda x: F.group_norm(x, 2), _group_norm(jnp), _group_norm(np), (draw(14, 1, 4, 2),)),
    Case("norm_2", torch.linalg.norm, jnp.linalg.norm, np.linalg.norm, (_scale,)),
    Case(
        "norm_3",
        lambda x: torch.linalg.vector_norm(x, 3),
        lambda x: jnp.linalg.norm(x, 3),
        lambda x: (np.abs(x) ** 3).sum() ** (1 / 3),
        (_shift,),
    ),
    Case(
        "normalize",
        lambda x: F.normalize(x, dim=-1),
        lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True),
        lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True),
        (_x,),
    ),
    Case(
        "frobenius",
        lambda x: torch.linalg.matrix_norm(x),
        lambda x: jnp.linalg.norm(x, "fro"),
        lambda x: np.linalg.norm(x, "fro"),
        (_x,),
    ),
    Case(
        "standardize",
        lambda x: (x - x.mean()) / x.std(correction=0),
        lambda x: jax.nn.standardize(x, epsilon=0.0),
        lambda x: (x - x.mean()) / x.std(),
        (draw(15, 5, low=-3, high=3),),
    ),
]

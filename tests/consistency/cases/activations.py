"""Activations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import torch
import torch.nn.functional as F

from tests.consistency.case import Case, draw

_x = draw(1, 6, low=-3, high=3)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


CASES = [
    Case("relu", F.relu, jax.nn.relu, lambda x: np.maximum(x, 0), (_x,), smooth=False),
    Case(
        "relu_squared", lambda x: F.relu(x) ** 2, lambda x: jax.nn.relu(x) ** 2, lambda x: np.maximum(x, 0) ** 2, (_x,)
    ),
    Case("sigmoid", torch.sigmoid, jax.nn.sigmoid, _sigmoid, (_x,)),
    Case("tanh", torch.tanh, jnp.tanh, np.tanh, (_x,)),
    Case("softplus", F.softplus, jax.nn.softplus, lambda x: np.logaddexp(0, x), (_x,)),
    Case("silu", F.silu, jax.nn.silu, lambda x: x * _sigmoid(x), (_x,)),
    Case(
        "gelu_erf",
        F.gelu,
        lambda x: jax.nn.gelu(x, approximate=False),
        lambda x: x * scipy.special.ndtr(x),
        (_x,),
    ),
    Case(
        "gelu_tanh",
        lambda x: F.gelu(x, approximate="tanh"),
        jax.nn.gelu,
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * x**3))),
        (_x,),
    ),
    Case("elu", F.elu, jax.nn.elu, _elu, (_x,)),
    Case(
        "selu",
        F.selu,
        jax.nn.selu,
        lambda x: (
            1.0507009873554804934193349852946
            * np.where(x > 0, x, 1.6732632423543772848170429916717 * np.expm1(np.minimum(x, 0)))
        ),
        (_x,),
    ),
    Case("mish", F.mish, jax.nn.mish, lambda x: x * np.tanh(np.logaddexp(0, x)), (_x,)),
    Case(
        "hardswish",
        F.hardswish,
        jax.nn.hard_swish,
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
        (draw(2, 6, low=-2.9, high=2.9),),
    ),
    Case("logsigmoid", F.logsigmoid, jax.nn.log_sigmoid, lambda x: -np.logaddexp(0, -x), (_x,)),
    Case(
        "leaky_relu",
        lambda x: F.leaky_relu(x, 0.1),
        lambda x: jax.nn.leaky_relu(x, 0.1),
        lambda x: np.where(x >= 0, x, 0.1 * x),
        (_x,),
        smooth=False,
    ),
    Case(
        "glu",
        lambda x: F.glu(x, -1),
        lambda x: jax.nn.glu(x, -1),
        lambda x: x[..., :2] * _sigmoid(x[..., 2:]),
        (draw(3, 2, 4),),
    ),
    Case("softmax", lambda x: torch.softmax(x, -1), jax.nn.softmax, _softmax, (draw(4, 2, 4),)),
    Case(
        "log_softmax",
        lambda x: F.log_softmax(x, -1),
        jax.nn.log_softmax,
        lambda x: x - scipy.special.logsumexp(x, -1, keepdims=True),
        (draw(5, 2, 4),),
    ),
]

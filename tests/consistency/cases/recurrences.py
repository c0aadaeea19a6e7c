"""Scans and recurrences."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tests.consistency.case import Case, draw

_x, _w = draw(60, 4), draw(61, 2, 2)
_sequence = draw(62, 3, 2)


def _torch_rnn(xs, w):
    h, out = torch.zeros_like(xs[0]), []
    for x in xs:
        h = torch.tanh(w @ h + x)
        out.append(h)
    return torch.stack(out)


def _jax_rnn(xs, w):
    def step(h, x):
        h = jnp.tanh(w @ h + x)
        return h, h

    return jax.lax.scan(step, jnp.zeros_like(xs[0]), xs)[1]


def _numpy_rnn(xs, w):
    h, out = np.zeros_like(xs[0]), []
    for x in xs:
        h = np.tanh(w @ h + x)
        out.append(h)
    return np.stack(out)


def _torch_filter(x):
    y = [x[0]]
    for value in x[1:]:
        y.append(0.9 * y[-1] + 0.1 * value)
    return torch.stack(y)


def _jax_filter(x):
    def combine(a, b):
        return a[0] * b[0], b[0] * a[1] + b[1]

    decay = jnp.full_like(x, 0.9).at[0].set(0.0)
    gain = jnp.full_like(x, 0.1).at[0].set(1.0)
    return jax.lax.associative_scan(combine, (decay, gain * x))[1]


def _numpy_filter(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = 0.9 * y[i - 1] + 0.1 * x[i]
    return y


def _torch_newton(x):
    y = torch.ones_like(x)
    for _ in range(6):
        y = 0.5 * (y + x / y)
    return y


def _jax_newton(x):
    return jax.lax.fori_loop(0, 6, lambda _, y: 0.5 * (y + x / y), jnp.ones_like(x))


def _numpy_newton(x):
    y = np.ones_like(x)
    for _ in range(6):
        y = 0.5 * (y + x / y)
    return y


def _logistic(x):
    for _ in range(3):
        x = 3.25 * x * (1 - x)
    return x


CASES = [
    Case("rnn", _torch_rnn, _jax_rnn, _numpy_rnn, (_sequence, _w)),
    Case("exponential_filter", _torch_filter, _jax_filter, _numpy_filter, (_x,), smooth=False),
    Case("newton_square_root", _torch_newton, _jax_newton, _numpy_newton, (draw(63, 3, low=0.5, high=3),)),
    Case("logistic_map", _logistic, _logistic, _logistic, (draw(64, 3, low=0.2, high=0.8),)),
    Case("cumsum", lambda x: torch.cumsum(x, 0), jnp.cumsum, np.cumsum, (_x,), smooth=False),
    Case("cumprod", lambda x: torch.cumprod(x, 0), jnp.cumprod, np.cumprod, (_x,)),
    Case(
        "logcumsumexp",
        lambda x: torch.logcumsumexp(x, 0),
        jax.lax.cumlogsumexp,
        lambda x: np.logaddexp.accumulate(x),
        (_x,),
    ),
]

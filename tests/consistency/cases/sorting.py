"""Sorting, indexing, moving entries around."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tests.consistency.case import Case, draw

_x = draw(80, 6)
_table, _index = draw(81, 4, 2), np.array([2, 0, 2])


def _segment_sum(x):
    return np.array([x[:2].sum(), x[2:3].sum(), x[3:].sum()], x.dtype)


CASES = [
    Case("sort", lambda x: torch.sort(x).values ** 2, lambda x: jnp.sort(x) ** 2, lambda x: np.sort(x) ** 2, (_x,)),
    Case(
        "top_k",
        lambda x: torch.topk(x, 3).values,
        lambda x: jax.lax.top_k(x, 3)[0],
        lambda x: np.sort(x)[::-1][:3].copy(),
        (_x,),
        smooth=False,
    ),
    Case("maximum", lambda x: torch.max(x) ** 2, lambda x: jnp.max(x) ** 2, lambda x: np.max(x) ** 2, (_x,)),
    Case(
        "gather",
        lambda t, i: t[i] ** 3,
        lambda t, i: t[i] ** 3,
        lambda t, i: t[i] ** 3,
        (_table, _index),
    ),
    Case(
        "scatter_add",
        lambda x: torch.zeros(3, dtype=x.dtype).index_add(0, torch.tensor([0, 0, 1, 2, 2, 2]), x) ** 2,
        lambda x: jax.ops.segment_sum(x, jnp.array([0, 0, 1, 2, 2, 2]), 3) ** 2,
        lambda x: _segment_sum(x) ** 2,
        (_x,),
    ),
    Case(
        "where",
        lambda x: torch.where(x > 0, torch.sin(x), x**2),
        lambda x: jnp.where(x > 0, jnp.sin(x), x**2),
        lambda x: np.where(x > 0, np.sin(x), x**2),
        (_x,),
    ),
    Case(
        "roll_and_flip",
        lambda x: torch.flip(torch.roll(x, 2), (0,)) * x,
        lambda x: jnp.flip(jnp.roll(x, 2)) * x,
        lambda x: np.flip(np.roll(x, 2)) * x,
        (_x,),
    ),
    Case(
        "median",
        lambda x: torch.median(x[:5]) ** 2,
        lambda x: jnp.median(x[:5]) ** 2,
        lambda x: np.median(x[:5]) ** 2,
        (_x,),
    ),
]

"""Parts of transformers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from tests.consistency.case import draw
from tests.consistency.ports.port import Port

LENGTH, WIDTH, HEADS = 3, 4, 2

BLOCK = {
    "norm1": {"weight": draw(600, WIDTH), "bias": draw(601, WIDTH)},
    "qkv": {"weight": draw(602, 3 * WIDTH, WIDTH), "bias": draw(603, 3 * WIDTH)},
    "proj": {"weight": draw(604, WIDTH, WIDTH), "bias": draw(605, WIDTH)},
    "norm2": {"weight": draw(606, WIDTH), "bias": draw(607, WIDTH)},
    "up": {"weight": draw(608, 6, WIDTH), "bias": draw(609, 6)},
    "down": {"weight": draw(610, WIDTH, 6), "bias": draw(611, WIDTH)},
}


def torch_block(p: Any, x: Any) -> Any:
    def linear(name: str, x: Any) -> Any:
        return F.linear(x, p[name]["weight"], p[name]["bias"])

    def norm(name: str, x: Any) -> Any:
        return F.layer_norm(x, (WIDTH,), p[name]["weight"], p[name]["bias"])

    q, k, v = linear("qkv", norm("norm1", x)).view(LENGTH, 3, HEADS, -1).permute(1, 2, 0, 3)
    mixed = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    x = x + linear("proj", mixed.transpose(0, 1).reshape(LENGTH, WIDTH))
    return x + linear("down", F.gelu(linear("up", norm("norm2", x))))


def jax_block(
    gelu: Callable[[Any], Any] = lambda x: jax.nn.gelu(x, approximate=False),
    k_of_mask: int = 0,
    scale: float = (WIDTH / HEADS) ** -0.5,
    second: str = "norm2",
    heads_last: bool = False,
    residual_of: str = "x",
) -> Callable[..., Any]:
    def block(p: Any, x: Any) -> Any:
        def linear(name: str, x: Any) -> Any:
            return x @ p[name]["weight"].T + p[name]["bias"]

        def norm(name: str, x: Any) -> Any:
            centred = x - x.mean(-1, keepdims=True)
            return centred / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * p[name]["weight"] + p[name]["bias"]

        normed = norm("norm1", x)
        parts = jnp.split(linear("qkv", normed), 3, axis=-1)
        if heads_last:
            q, k, v = (jnp.moveaxis(a.reshape(LENGTH, -1, HEADS), -1, 1) for a in parts)
        else:
            q, k, v = (a.reshape(LENGTH, HEADS, -1) for a in parts)
        scores = jnp.einsum("qhd,khd->hqk", q, k) * scale
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool), k_of_mask)
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1)
        mixed = jnp.einsum("hqk,khd->qhd", weights, v).reshape(LENGTH, WIDTH)
        x = (x if residual_of == "x" else normed) + linear("proj", mixed)
        return x + linear("down", gelu(linear("up", norm(second, x))))

    return block


def rope_angles(xp: Any, n: int, half: int, base: float = 10000.0) -> Any:
    return np.arange(n)[:, None] * base ** (-np.arange(half) / half)


def torch_rope(x: Any) -> Any:
    """Half-split."""
    n, d = x.shape
    angle = torch.as_tensor(rope_angles(np, n, d // 2), dtype=x.dtype)
    a, b = x[:, : d // 2], x[:, d // 2 :]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def jax_rope(interleaved: bool = False, sign: float = 1.0, base: float = 10000.0) -> Callable[[Any], Any]:
    def rope(x: Any) -> Any:
        n, d = x.shape
        angle = sign * rope_angles(np, n, d // 2, base)
        a, b = (x[:, ::2], x[:, 1::2]) if interleaved else jnp.split(x, 2, axis=-1)
        turned = a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)
        return jnp.stack(turned, -1).reshape(n, d) if interleaved else jnp.concatenate(turned, -1)

    return rope


def torch_rms(x: Any, w: Any) -> Any:
    return F.rms_norm(x, (x.shape[-1],), w, eps=1e-6)


def jax_rms(eps: float = 1e-6, outside: float = 0.0, plus: float = 0.0, centre: bool = False) -> Callable[..., Any]:
    def rms(x: Any, w: Any) -> Any:
        mean = x.mean(-1, keepdims=True) if centre else 0.0
        return x / (jnp.sqrt(jnp.mean((x - mean) ** 2, -1, keepdims=True) + eps) + outside) * (w + plus)

    return rms


def torch_grouped(q: Any, k: Any, v: Any) -> Any:
    """Four heads of queries, two of keys and values; (heads, length, width)."""
    k, v = (a.repeat_interleave(2, 0) for a in (k, v))
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def jax_grouped(tiled: bool = False, axis: int = -1) -> Callable[..., Any]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        k, v = (jnp.tile(a, (2, 1, 1)) if tiled else jnp.repeat(a, 2, axis=0) for a in (k, v))
        return jax.nn.softmax(jnp.einsum("hqd,hkd->hqk", q, k) / np.sqrt(q.shape[-1]), axis) @ v

    return attend


def torch_swiglu(x: Any, w: Any) -> Any:
    gate, up = (x @ w).chunk(2, -1)
    return F.silu(gate) * up


def jax_swiglu(swapped: bool = False, act: Callable[[Any], Any] = jax.nn.silu) -> Callable[..., Any]:
    def swiglu(x: Any, w: Any) -> Any:
        gate, up = jnp.split(x @ w, 2, axis=-1)
        return act(up) * gate if swapped else act(gate) * up

    return swiglu


SLOPES = np.array([0.25, 0.0625])


def torch_alibi(scores: Any) -> Any:
    n = scores.shape[-1]
    distance = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    scores = scores + torch.as_tensor(SLOPES, dtype=scores.dtype)[:, None, None] * distance
    return torch.softmax(scores.masked_fill(distance > 0, -math.inf), -1)


def jax_alibi(slopes: Any = SLOPES, turned: bool = False) -> Callable[[Any], Any]:
    def alibi(scores: Any) -> Any:
        n = scores.shape[-1]
        distance = np.arange(n)[None, :] - np.arange(n)[:, None]
        scores = scores + slopes[:, None, None] * distance
        return jax.nn.softmax(scores, axis=-1, where=(distance >= 0 if turned else distance <= 0))

    return alibi


PADDED = np.array([[True, True, False], [True, True, True]])


def torch_pooled(x: Any, keep: Any) -> Any:
    weight = keep[..., None].to(x.dtype)
    return (x * weight).sum(1) / weight.sum(1)


PORTS = (
    Port(
        "transformer block",
        torch_block,
        jax_block(),
        {
            "gelu by tanh": jax_block(gelu=jax.nn.gelu),
            "mask lets the next token through": jax_block(k_of_mask=1),
            "scaled by the width of the model": jax_block(scale=WIDTH**-0.5),
            "the first norm used twice": jax_block(second="norm1"),
            "heads split the other way": jax_block(heads_last=True),
            "residual from behind the norm": jax_block(residual_of="normed"),
        },
        (BLOCK, draw(612, LENGTH, WIDTH)),
    ),
    Port(
        "rotary embedding",
        torch_rope,
        jax_rope(),
        {
            "interleaved": jax_rope(interleaved=True),
            "turned backwards": jax_rope(sign=-1.0),
            "another base": jax_rope(base=500000.0),
        },
        (draw(613, 3, 6),),
    ),
    Port(
        "rms norm",
        torch_rms,
        jax_rms(),
        {
            "epsilon of another default": jax_rms(eps=1e-5),
            "epsilon outside": jax_rms(eps=0.0, outside=1e-6),
            "scale of 1 + w": jax_rms(plus=1.0),
            "centred": jax_rms(centre=True),
        },
        (draw(614, 2, 5), draw(615, 5)),
    ),
    Port(
        "grouped queries",
        torch_grouped,
        jax_grouped(),
        {"tiled for repeated": jax_grouped(tiled=True), "softmax over queries": jax_grouped(axis=-2)},
        (draw(616, 4, 3, 2), draw(617, 2, 3, 2), draw(618, 2, 3, 2)),
    ),
    Port(
        "swiglu",
        torch_swiglu,
        jax_swiglu(),
        {"gate and value swapped": jax_swiglu(swapped=True), "gelu for silu": jax_swiglu(act=jax.nn.gelu)},
        (draw(619, 2, 3), draw(620, 3, 8)),
    ),
    Port(
        "attention with linear biases",
        torch_alibi,
        jax_alibi(),
        {"slopes reversed": jax_alibi(SLOPES[::-1].copy()), "mask transposed": jax_alibi(turned=True)},
        (draw(621, 2, 3, 3),),
    ),
    Port(
        "pooling without the padding",
        torch_pooled,
        lambda x, keep: jnp.sum(x * keep[..., None], 1) / keep.sum(1, keepdims=True),
        {
            "padding counted": lambda x, keep: jnp.mean(x * keep[..., None], 1),
            "padding not masked": lambda x, keep: jnp.sum(x, 1) / keep.sum(1, keepdims=True),
        },
        (draw(622, 2, 3, 2), PADDED),
        numpy=lambda x, keep: (x * keep[..., None]).sum(1) / keep.sum(1, keepdims=True),
    ),
)

"""A transformer block ported from PyTorch to JAX, with one mistake in it, found. Run: python examples/port_with_a_mistake.py."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch import nn

from multigrad import check_consistency

torch.manual_seed(0)


class Block(nn.Module):
    """The original: two heads of attention and a network, each on normalised inputs."""

    def __init__(self, width: int = 4, heads: int = 2) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 6), nn.Linear(6, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y: torch.Tensor = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return y


def layer_norm(p: Any, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p["weight"] + p["bias"]


def linear(p: Any, x: Any) -> Any:
    return x @ p["weight"].T + p["bias"]


def attention(p: Any, x: Any) -> Any:
    qkv = x @ p["in_proj_weight"].T + p["in_proj_bias"]
    q, k, v = (part.reshape(len(x), 2, -1) for part in jnp.split(qkv, 3, axis=-1))
    weights = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(q.shape[-1]))
    return linear(p["out_proj"], jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape))


def port(p: Any, x: Any, approximate: bool = True) -> Any:
    """The port. jax.nn.gelu is another function than torch's, unless it is told approximate=False."""
    x = x + attention(p["attention"], layer_norm(p["norm1"], x))
    return x + linear(p["down"], jax.nn.gelu(linear(p["up"], layer_norm(p["norm2"], x)), approximate=approximate))


def nested(module: nn.Module) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, parameter in module.named_parameters():
        *path, last = name.split(".")
        node = tree
        for key in path:
            node = node.setdefault(key, {})
        node[last] = parameter.detach().numpy()
    return tree


block = Block().double()
x = torch.randn(3, 4, dtype=torch.double)
inputs = {"torch": (x,), "jax": (nested(block), x.numpy())}


def compare(port: Any) -> Any:
    return check_consistency({"torch": block, "jax": port}, inputs, reference="torch", raise_exception=False)


first = compare(jax.jit(port))
print("--- the port as it was written\n", first, sep="")
second = compare(jax.jit(lambda p, x: port(p, x, approximate=False)))
print("\n--- with gelu(approximate=False)\n", second, sep="")

# The same mistake in a small place, where the difference has a name.
third = check_consistency(
    {"torch": nn.functional.gelu, "jax": jax.nn.gelu}, x, reference="torch", raise_exception=False
)
print("\n--- gelu alone\n", third, sep="")

sys.exit(0 if (first.odd, second.verdict, third.conventions[0].name) == (("jax",), "ok", "gelu") else "unexpected")

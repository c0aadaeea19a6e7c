"""Parameters as they are when a model has just been made: biases of zeros and scales of ones look all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import torch
from torch import nn

from multigrad import ConsistencyReport, check_consistency
from tests.consistency.case import draw

Tree = dict[str, Any]
WIDTH = 3
X = draw(540, 2, WIDTH)


class Network(nn.Module):
    """Two residual layers, each behind a norm; the last kernel may be zero, as for a start from the identity."""

    def __init__(self, identity: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc1, self.fc2 = (nn.Linear(WIDTH, WIDTH, dtype=torch.float64) for _ in range(2))
        self.ln1, self.ln2 = (nn.LayerNorm(WIDTH, dtype=torch.float64) for _ in range(2))
        for parameter in (self.fc1.bias, self.fc2.bias, *[self.fc2.weight] * identity):
            nn.init.zeros_(parameter)

    def forward(self, x: Any) -> Any:
        x = x + self.fc1(self.ln1(x)).tanh()
        return x + self.fc2(self.ln2(x)).tanh()


def flax_like(module: Network, order: Callable[[Any], Any]) -> Tree:
    """The parameters with the names and layouts of Flax."""
    tree: Tree = {}
    for k in (1, 2):
        norm, dense = getattr(module, f"ln{k}"), getattr(module, f"fc{k}")
        tree[f"LayerNorm_{k - 1}"] = {"scale": norm.weight, "bias": norm.bias}
        tree[f"Dense_{k - 1}"] = {"kernel": dense.weight.T, "bias": dense.bias}
    return {
        name: {key: tree[name][key].detach().numpy().copy() for key in order(tree[name])} for name in order(list(tree))
    }


def port(twice: str = "", factor: float = 1.0) -> Callable[..., Any]:
    @jax.custom_vjp
    def scaled(b: Any) -> Any:
        return b

    scaled.defvjp(lambda b: (b, None), lambda _, u: (factor * u,))

    def dense(p: Any, x: Any) -> Any:
        return x @ p["kernel"] + scaled(p["bias"])

    def norm(p: Any, x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]

    def network(p: Any, x: Any) -> Any:
        x = x + jnp.tanh(dense(p["Dense_0"], norm(p["LayerNorm_0"], x)))
        return x + jnp.tanh(dense(p["Dense_1"], norm(p[twice or "LayerNorm_1"], x)))

    return network


def compared(fn: Any, order: Callable[[Any], Any] = list, identity: bool = True) -> ConsistencyReport:
    module = Network(identity)
    return check_consistency(
        {"torch": module, "jax": jax.jit(fn)},
        {"torch": (torch.tensor(X),), "jax": (flax_like(module, order), X)},
        reference="torch",
        raise_exception=False,
    )


@pytest.mark.parametrize("order", [list, sorted], ids=["as called", "sorted"])
def test_they_are_told_apart_by_their_derivatives(order: Callable[[Any], Any]) -> None:
    report = compared(port(), order)
    assert report.verdict == "ok", str(report)
    (said,) = [f for f in report.findings if "hold the same numbers;" in f.evidence]
    assert 'inputs[0]["Dense_0"]["bias"] for params["fc1.bias"]' in said.evidence
    assert report.layouts["jax"]['inputs[0]["Dense_1"]["kernel"]'] == (1, 0)


def test_a_norm_used_twice_is_found() -> None:
    """The values are the same as long as both norms are fresh."""
    report = compared(port(twice="LayerNorm_0"), identity=False)
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)


def test_a_wrong_derivative_of_one_of_them_is_found() -> None:
    report = compared(port(factor=1.01))
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    assert all("bias" in entry.input for entry in report.worst)

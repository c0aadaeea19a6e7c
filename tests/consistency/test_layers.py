"""Layers of torch.nn against the same in plain JAX, with the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from multigrad import ConsistencyReport, check_consistency
from tests.consistency.case import draw

Tree = dict[str, Any]


def weights(module: nn.Module) -> Tree:
    """The parameters as JAX code likes them: nested dicts of NumPy arrays."""
    tree: Tree = {}
    for name, parameter in module.named_parameters():
        *path, last = name.split(".")
        node = tree
        for key in path:
            node = node.setdefault(key, {})
        node[last] = parameter.detach().numpy().copy()
    return tree


def compare(
    module: nn.Module, port: Callable[..., Any], params: Tree, *inputs: Any, **options: Any
) -> ConsistencyReport:
    torch_inputs = tuple(torch.tensor(x) for x in inputs)
    return check_consistency(
        {"torch": module, "jax": jax.jit(port)},
        {"torch": torch_inputs, "jax": (params, *inputs)},
        reference="torch",
        raise_exception=False,
        **options,
    )


def made(kind: Any, *arguments: Any, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    module = kind(*arguments, dtype=torch.float64, **options)
    for parameter in module.parameters():  # biases and scales of zeros and ones would hide a mistake
        nn.init.uniform_(parameter, -0.8, 0.8)
    return module


def linear(p: Tree, x: Any) -> Any:
    return x @ p["weight"].T + p["bias"]


def dense(p: Tree, x: Any) -> Any:
    return x @ p["kernel"] + p["bias"]


def conv(p: Tree, x: Any) -> Any:
    y = jax.lax.conv_general_dilated(x, p["weight"], (2, 2), ((1, 1), (1, 1)))
    return y + p["bias"][:, None, None]


def conv_channels_last(p: Tree, x: Any) -> Any:
    y = jax.lax.conv_general_dilated(
        x, p["kernel"], (2, 2), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return y + p["bias"]


def layer_norm(p: Tree, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p["weight"] + p["bias"]


def attention(p: Tree, query: Any, key: Any, value: Any) -> Any:
    """Two heads of two channels; returns the mean of the weights as well, in a dict."""
    q, k, v = (
        (x @ w.T + b).reshape(x.shape[0], 2, 2)
        for x, w, b in zip(
            (query, key, value), jnp.split(p["in_proj_weight"], 3), jnp.split(p["in_proj_bias"], 3), strict=True
        )
    )
    scores = jax.nn.softmax(jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(2.0))
    mixed = jnp.einsum("hqk,khd->qhd", scores, v).reshape(query.shape)
    return {"output": mixed @ p["out_proj"]["weight"].T + p["out_proj"]["bias"], "weights": scores.mean(0)}


def gru(p: Tree, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        gi = jnp.split(p["weight_ih_l0"] @ x + p["bias_ih_l0"], 3)
        gh = jnp.split(p["weight_hh_l0"] @ h + p["bias_hh_l0"], 3)
        r, z = jax.nn.sigmoid(gi[0] + gh[0]), jax.nn.sigmoid(gi[1] + gh[1])
        h = (1 - z) * jnp.tanh(gi[2] + r * gh[2]) + z * h
        return h, h

    last, out = jax.lax.scan(step, jnp.zeros(2, xs.dtype), xs)
    return out, last[None]


def test_linear() -> None:
    module = made(nn.Linear, 3, 2)
    report = compare(module, linear, weights(module), draw(300, 2, 3), order=2)
    assert report.verdict == "ok", str(report)
    assert report.sides["torch"].inputs[1].path == 'params["weight"]'
    assert not report.layouts


def test_linear_with_a_transposed_kernel() -> None:
    module = made(nn.Linear, 3, 2)
    params = {"kernel": module.weight.detach().numpy().T.copy(), "bias": module.bias.detach().numpy()}
    report = compare(module, dense, params, draw(301, 2, 3))
    assert report.verdict == "ok", str(report)
    assert report.layouts == {"jax": {'inputs[0]["kernel"]': (1, 0)}}
    assert any(f.kind == "layout" and "transposed" in f.evidence for f in report.findings)


def test_conv() -> None:
    module = made(nn.Conv2d, 2, 2, 2, stride=2, padding=1)
    report = compare(module, conv, weights(module), draw(302, 1, 2, 4, 3))
    assert report.verdict == "ok", str(report)


@pytest.mark.parametrize("mapping", [{"jax": {"output": (0, 2, 3, 1)}}, {}], ids=["declared", "found"])
def test_conv_with_channels_last(mapping: Any) -> None:
    """Inputs and kernel are found by their numbers, and the output lies as the image does."""
    module = made(nn.Conv2d, 2, 3, 2, stride=2, padding=1)
    image = draw(303, 1, 2, 4, 3)
    params = {
        "kernel": module.weight.detach().numpy().transpose(2, 3, 1, 0).copy(),
        "bias": module.bias.detach().numpy(),
    }
    report = check_consistency(
        {"torch": module, "jax": jax.jit(conv_channels_last)},
        {"torch": (torch.tensor(image),), "jax": (params, image.transpose(0, 2, 3, 1).copy())},
        reference="torch",
        mapping=mapping,
        raise_exception=False,
    )
    assert report.verdict == "ok", str(report)
    said = [f for f in report.findings if f.where == "output"]
    assert len(said) == (not mapping)
    assert all(f.remedy.endswith("mapping={'jax': {'output': (0, 2, 3, 1)}}") for f in said)
    assert report.layouts["jax"]['inputs[0]["kernel"]'] == (2, 3, 1, 0)
    assert report.layouts["jax"]["inputs[1]"] == (0, 2, 3, 1)


def test_layer_norm() -> None:
    module = made(nn.LayerNorm, 4)
    report = compare(module, layer_norm, weights(module), draw(304, 2, 4), order=2)
    assert report.verdict == "ok", str(report)


def test_multi_head_attention_with_outputs_in_a_dict() -> None:
    module = made(nn.MultiheadAttention, 4, 2)
    q, k, v = draw(305, 2, 4), draw(306, 3, 4), draw(307, 3, 4)
    report = compare(module, attention, weights(module), q, k, v)
    assert report.verdict == "ok", str(report)
    assert len(report.sides["jax"].outputs) == 2


def test_gru() -> None:
    module = made(nn.GRU, 2, 2)
    report = compare(module, gru, weights(module), draw(308, 3, 2))
    assert report.verdict == "ok", str(report)


def heads_not_scaled(p: Tree, query: Any, key: Any, value: Any) -> Any:
    n = p["in_proj_weight"].shape[1]
    scaled = p["in_proj_weight"].at[:n].multiply(jnp.sqrt(2.0))
    bias = p["in_proj_bias"].at[:n].multiply(jnp.sqrt(2.0))
    return attention({**p, "in_proj_weight": scaled, "in_proj_bias": bias}, query, key, value)


def reset_after(p: Tree, xs: Any) -> Any:
    """The other GRU: the reset gate acts on the state before the matrix does."""

    def step(h: Any, x: Any) -> Any:
        gi = jnp.split(p["weight_ih_l0"] @ x + p["bias_ih_l0"], 3)
        gh = jnp.split(p["weight_hh_l0"] @ h + p["bias_hh_l0"], 3)
        r, z = jax.nn.sigmoid(gi[0] + gh[0]), jax.nn.sigmoid(gi[1] + gh[1])
        candidate = p["weight_hh_l0"][4:] @ (r * h) + p["bias_hh_l0"][4:]
        h = (1 - z) * jnp.tanh(gi[2] + candidate) + z * h
        return h, h

    last, out = jax.lax.scan(step, jnp.zeros(2, xs.dtype), xs)
    return out, last[None]


@pytest.mark.parametrize(
    ("module", "port", "inputs", "place"),
    [
        (
            made(nn.MultiheadAttention, 4, 2),
            heads_not_scaled,
            (draw(309, 2, 4), draw(310, 3, 4), draw(311, 3, 4)),
            "output",
        ),
        (made(nn.GRU, 2, 2), reset_after, (draw(312, 3, 2),), "output[0]["),
        (made(nn.LayerNorm, 4), lambda p, x: layer_norm(p, x) - p["bias"], (draw(313, 2, 4),), "output["),
        (made(nn.Linear, 3, 3), lambda p, x: x @ p["weight"] + p["bias"], (draw(314, 2, 3),), "output["),
    ],
    ids=["unscaled heads", "gru of the other kind", "no bias", "transposed weight"],
)
def test_a_mistake_in_the_port_is_found(module: nn.Module, port: Any, inputs: Any, place: str) -> None:
    report = compare(module, port, weights(module), *inputs)
    assert report.verdict == "mismatch"
    assert report.odd == ("jax",)
    assert report.worst[0].output.startswith(place)
    assert report.blame["jax"].startswith("by the reference")


def test_a_parameter_that_the_port_lacks_cannot_be_passed_over() -> None:
    module = made(nn.Linear, 3, 2)
    nn.init.zeros_(module.bias)
    report = compare(
        module, lambda p, x: x @ p["weight"].T, {"weight": module.weight.detach().numpy()}, draw(315, 2, 3)
    )
    assert report.verdict == "inconclusive"
    assert 'params["bias"]' in report.reason


def test_float32_layers() -> None:
    module = made(nn.Linear, 3, 2).float()
    x = draw(316, 2, 3).astype(np.float32)
    report = compare(module, linear, weights(module), x)
    assert report.verdict == "ok", str(report)

"""Thirty mistakes that ports are made with: the right backend is blamed, and the place named."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import torch
import torch.nn.functional as F

from multigrad import ConsistencyReport, check_consistency
from tests.consistency.case import draw, draw_complex

Function = Callable[..., Any]

X, W, SQUARE, B = draw(200, 3, 4), draw(201, 5, 4), draw(202, 4, 4), draw(203, 5)
Q, K, V = draw(204, 3, 4), draw(205, 3, 4), draw(206, 3, 4)
VECTOR, SEQUENCE = draw(207, 6), draw(208, 5, 2)
Z, Y = draw_complex(209, 3), draw_complex(210, 3)
IMAGE, FILTER = draw(211, 1, 2, 4, 4), draw(212, 2, 2, 3, 3)


@dataclass(frozen=True)
class Mistake:
    """A function in three frameworks, wrong in one of them.

    Attributes:
        odd: the backend with the mistake.
        said: what the report must say of it, besides the backend and the place.
        place: how the places shown must begin.
        what: in which column the mistake shows.
    """

    name: str
    odd: str
    torch: Function
    jax: Function
    numpy: Function
    inputs: tuple[Any, ...]
    said: str = ""
    place: str = "output"
    what: str = "value"


def softmax(x: Any, axis: int = -1) -> Any:
    return scipy.special.softmax(x, axis)


def linear(x: Any, w: Any, b: Any) -> Any:
    return x @ w.T + b


def layer_norm(xp: Any, eps_outside: bool = False, ddof: int = 0) -> Function:
    def normalise(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).sum(-1, keepdims=True) / (x.shape[-1] - ddof)
        return centred / (xp.sqrt(variance) + 1e-5 if eps_outside else xp.sqrt(variance + 1e-5))

    return normalise


def attention(softmax_of: Function, scale: float | None = None) -> Function:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return softmax_of(q @ k.T / (math.sqrt(q.shape[-1]) if scale is None else scale)) @ v

    return attend


def scan(xp: Any, shifted: bool = False, start: float = 0.0) -> Function:
    """A leaky sum over time; shifted, every output is that of the step before."""

    def run(xs: Any) -> Any:
        h, out = xs[0] * 0 + start, []
        for x in xs:
            before = h
            h = 0.5 * h + xp.tanh(x)
            out.append(before if shifted else h)
        return xp.stack(out)

    return run


def stopped(x: Any) -> Any:
    return x * jax.lax.stop_gradient(jnp.exp(x))


@jax.custom_vjp
def wrong_rule(x: Any) -> Any:
    return jnp.sum(x**3)


wrong_rule.defvjp(lambda x: (jnp.sum(x**3), x), lambda x, u: (u * 2 * x**2,))


class WrongBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        s = torch.sigmoid(ctx.saved_tensors[0])
        return u * s * (1 + ctx.saved_tensors[0])


def numpy_conv(x: Any, w: Any, flip: bool = False, pad: str = "constant") -> Any:
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode=pad)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.einsum("nihwab,oiab->nohw", windows, w[:, :, ::-1, ::-1] if flip else w)


def jax_conv(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")


def torch_conv(x: Any, w: Any) -> Any:
    return F.conv2d(x, w, padding=1)


def gates(xp: Any, sigmoid: Function, swapped: bool = False) -> Function:
    def cell(x: Any, h: Any) -> Any:
        z, r = sigmoid(x[:2]), sigmoid(x[2:])
        z, r = (r, z) if swapped else (z, r)
        return (1 - z) * xp.tanh(x[:2] + r * h) + z * h

    return cell


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def silu(x: Any) -> Any:
    return x * sigmoid(x)


def cross_entropy(axis: int = 1, reduce: Function = np.mean) -> Function:
    def loss(logits: Any, labels: Any) -> Any:
        log_p = logits - scipy.special.logsumexp(logits, axis, keepdims=True)
        return -reduce(log_p[np.arange(3), labels])

    return loss


def jax_cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(3), labels])


LABELS = np.array([1, 0, 3])

MISTAKES = [
    Mistake(
        "transposed weight",
        "jax",
        lambda x, w: x @ w.T,
        lambda x, w: x @ w,
        lambda x, w: x @ w.T,
        (X, SQUARE),
        "jax agrees with torch if it has inputs[1] the axes in the order (1, 0), transposed",
    ),
    Mistake("missing bias", "jax", F.linear, lambda x, w, b: x @ w.T, linear, (X, W, B), "it lacks input leaf 2"),
    Mistake("bias added twice", "numpy", F.linear, linear, lambda x, w, b: x @ w.T + 2 * b, (X, W, B), "added once"),
    Mistake("mean for sum", "torch", torch.mean, jnp.sum, np.sum, (X,), "12 is the size of an input"),
    Mistake(
        "sum for mean",
        "jax",
        F.mse_loss,
        lambda y, t: jnp.sum((y - t) ** 2),
        lambda y, t: np.mean((y - t) ** 2),
        (X, X + V),
        "factor of 12",
    ),
    Mistake(
        "epsilon outside the root",
        "jax",
        lambda x: F.layer_norm(x, (4,)),
        layer_norm(jnp, eps_outside=True),
        layer_norm(np),
        (X,),
    ),
    Mistake("ddof", "torch", torch.std, jnp.std, np.std, (X,), "ddof: a standard deviation divided by n - 1"),
    Mistake(
        "ddof inside a layer norm",
        "numpy",
        lambda x: F.layer_norm(x, (4,)),
        layer_norm(jnp),
        layer_norm(np, ddof=1),
        (X,),
    ),
    Mistake(
        "approximate for exact gelu",
        "jax",
        F.gelu,
        jax.nn.gelu,
        lambda x: x * scipy.special.ndtr(x),
        (X,),
        "gelu: gelu by the formula with tanh",
    ),
    Mistake(
        "softmax over the wrong axis",
        "numpy",
        lambda x: torch.softmax(x, -1),
        jax.nn.softmax,
        lambda x: softmax(x, 0),
        (X,),
    ),
    Mistake(
        "cross entropy over the wrong axis",
        "numpy",
        F.cross_entropy,
        jax_cross_entropy,
        cross_entropy(axis=0),
        (X, LABELS),
    ),
    Mistake(
        "cross entropy summed",
        "numpy",
        F.cross_entropy,
        jax_cross_entropy,
        cross_entropy(reduce=np.sum),
        (X, LABELS),
        "factor of 3",
    ),
    Mistake(
        "unscaled attention",
        "jax",
        F.scaled_dot_product_attention,
        attention(jax.nn.softmax, 1.0),
        attention(softmax),
        (Q, K, V),
    ),
    Mistake(
        "attention scaled by d",
        "numpy",
        F.scaled_dot_product_attention,
        attention(jax.nn.softmax),
        attention(softmax, 4.0),
        (Q, K, V),
    ),
    Mistake(
        "keys and values swapped",
        "torch",
        lambda q, k, v: F.scaled_dot_product_attention(q, v, k),
        attention(jax.nn.softmax),
        attention(softmax),
        (Q, K, V),
    ),
    Mistake(
        "scan off by one", "jax", scan(torch), scan(jnp, shifted=True), scan(np), (SEQUENCE,), "off by one along axis 0"
    ),
    Mistake("scan from another start", "numpy", scan(torch), scan(jnp), scan(np, start=1.0), (SEQUENCE,)),
    Mistake(
        "stop_gradient forgotten",
        "jax",
        lambda x: x * torch.exp(x),
        stopped,
        lambda x: x * np.exp(x),
        (VECTOR,),
        "stop_gradient",
        "output[",
        "reverse",
    ),
    Mistake(
        "detach forgotten",
        "torch",
        lambda x: x * torch.exp(x).detach(),
        lambda x: x * jnp.exp(x),
        lambda x: x * np.exp(x),
        (VECTOR,),
        "",
        "output[",
        "reverse",
    ),
    Mistake(
        "all detached",
        "torch",
        lambda x: torch.tensor(np.tanh(x.detach().numpy())),
        jnp.tanh,
        np.tanh,
        (VECTOR,),
        "",
        "output[",
        "reverse",
    ),
    Mistake(
        "wrong custom_vjp",
        "jax",
        lambda x: (x**3).sum(),
        wrong_rule,
        lambda x: (x**3).sum(),
        (VECTOR,),
        "",
        "output",
        "reverse",
    ),
    Mistake(
        "wrong autograd.Function", "torch", WrongBackward.apply, jax.nn.silu, silu, (VECTOR,), "", "output[", "reverse"
    ),
    Mistake(
        "conjugation",
        "jax",
        torch.conj,
        lambda z: z + 0,
        np.conj,
        (Z,),
        "conjugation: one is the complex conjugate of the other",
    ),
    Mistake("dot for vdot", "numpy", torch.vdot, jnp.vdot, np.dot, (Z, Y)),
    Mistake(
        "convolution for correlation",
        "numpy",
        torch_conv,
        jax_conv,
        lambda x, w: numpy_conv(x, w, flip=True),
        (IMAGE, FILTER),
    ),
    Mistake(
        "reflected for zero padding",
        "numpy",
        torch_conv,
        jax_conv,
        lambda x, w: numpy_conv(x, w, pad="reflect"),
        (draw(213, 1, 2, 7, 7), FILTER),
        "padding",
    ),
    Mistake(
        "gates swapped",
        "jax",
        gates(torch, torch.sigmoid),
        gates(jnp, jax.nn.sigmoid, swapped=True),
        gates(np, sigmoid),
        (draw(214, 4), draw(215, 2)),
    ),
    Mistake(
        "wrong sign",
        "torch",
        lambda x: -F.logsigmoid(-x),
        jax.nn.log_sigmoid,
        lambda x: -np.logaddexp(0, -x),
        (VECTOR,),
    ),
    Mistake(
        "sorted the other way",
        "numpy",
        lambda x: torch.sort(x).values,
        jnp.sort,
        lambda x: np.sort(x)[::-1].copy(),
        (VECTOR,),
        "run backwards along axis 0",
    ),
    Mistake(
        "log2 for log",
        "jax",
        lambda x: torch.log(x + 2),
        lambda x: jnp.log2(x + 2),
        lambda x: np.log(x + 2),
        (VECTOR,),
        "a constant factor of 1.44269504",
    ),
    Mistake(
        "kernel flipped in the last layer",
        "torch",
        lambda x, w: torch.tanh(x @ w.T.flip(0)),
        lambda x, w: jnp.tanh(x @ w.T),
        lambda x, w: np.tanh(x @ w.T),
        (X, W),
    ),
    Mistake(
        "wrong decay",
        "jax",
        lambda x: 0.99 * x + 0.01 * x**2,
        lambda x: 0.999 * x + 0.001 * x**2,
        lambda x: 0.99 * x + 0.01 * x**2,
        (VECTOR,),
    ),
]


def test_there_are_thirty() -> None:
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 30


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name.replace(" ", "_"))
def test_the_right_one_is_blamed(mistake: Mistake) -> None:
    functions = {"torch": mistake.torch, "jax": jax.jit(mistake.jax), "numpy": mistake.numpy}
    report = check_consistency(functions, mistake.inputs, raise_exception=False)
    assert report.verdict == "mismatch", str(report)
    assert report.odd == (mistake.odd,), str(report)
    assert_places(report, mistake)
    assert mistake.said in everything(report), str(report)


def assert_places(report: ConsistencyReport, mistake: Mistake) -> None:
    """The worst entry is in the column of the mistake, and the odd one says something else there than the others."""
    entry = report.worst[0]
    assert entry.what == mistake.what
    assert entry.output.startswith(mistake.place)
    assert entry.input.startswith("inputs[0]") == (mistake.what != "value")
    wrong = entry.numbers[mistake.odd]
    right = [number for name, number in entry.numbers.items() if name != mistake.odd]
    assert right
    assert all(abs(wrong - number) > 1e-9 * abs(number) for number in right)
    if entry.numeric is not None:
        assert all(abs(number - entry.numeric) <= 1e-7 * abs(number) + entry.bar for number in right)


def everything(report: ConsistencyReport) -> str:
    return "\n".join([str(report), *(str(side) for side in report.sides.values())])

"""What people train and minimise."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.problems.problem import Array, Problem, draw, everywhere
from tests.problems.reductions import softmax

_eye = np.eye
_labels = np.array([1, 0, 3])


def _rosenbrock(x: Array) -> Array:
    gradient = np.zeros_like(x)
    rise = x[1:] - x[:-1] ** 2
    gradient[1:] += 200 * rise
    gradient[:-1] -= 400 * x[:-1] * rise + 2 * (1 - x[:-1])
    return gradient


def _polynomial(c: Array, x: Array) -> list[Array]:
    powers = x[:, None] ** np.arange(len(c))
    return [powers, np.diag(powers[:, :-1] @ (c[1:] * np.arange(1, len(c))))]


def _horner(c: Any, x: Any) -> Any:
    y = 0 * x
    for k in reversed(range(len(c))):
        y = y * x + c[k]
    return y


def _correlate(x: Array, w: Array) -> list[Array]:
    """y_i = sum_k w_k x_(i + k)."""
    m = len(x) - len(w) + 1
    by_x = sum(w[k] * _eye(m, len(x), k) for k in range(len(w)))
    return [np.asarray(by_x), np.stack([x[i : i + len(w)] for i in range(m)])]


def _torch_correlate(torch: Any) -> Any:
    return lambda x, w: torch.nn.functional.conv1d(x[None, None], w[None, None])[0, 0]


def _mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> list[Array]:
    h = np.tanh(w1 @ x + b1)
    back = w2 * (1 - h**2)
    return [
        back @ w1,
        np.einsum("ik,l->ikl", back, x),
        back,
        np.einsum("ik,l->ikl", _eye(len(w2)), h),
        _eye(len(w2)),
    ]


def _numpy_cross_entropy(xp: Any) -> Any:
    def cross_entropy(logits: Any, labels: Any) -> Any:
        log_p = logits - xp.log(xp.sum(xp.exp(logits), axis=1, keepdims=True))
        return -xp.mean(log_p[np.arange(3), labels])

    return cross_entropy


def _cross_entropy(logits: Array, labels: Array) -> Array:
    return (softmax(logits) - _eye(logits.shape[1])[labels]) / len(logits)


def _huber_formula(xp: Any) -> Any:
    def huber(x: Any, t: Any) -> Any:
        d = x - t
        return xp.mean(xp.where(abs(d) < 1, 0.5 * d * d, abs(d) - 0.5))

    return huber


def _huber(x: Array, t: Array) -> list[Array]:
    gradient = np.clip(x - t, -1, 1) / len(x)
    return [gradient, -gradient]


def _attention_formula(xp: Any) -> Any:
    def attention(q: Any, k: Any, v: Any) -> Any:
        e = xp.exp(q @ k.T / np.sqrt(2.0))
        return e / xp.sum(e, axis=1, keepdims=True) @ v

    return attention


def _attention(q: Array, k: Array, v: Array) -> list[Array]:
    """O = P V with P = softmax(S), S = Q K^T / sqrt(d), so dO_ia / dS_ij = P_ij (V_ja - O_ia)."""
    p = softmax(q @ k.T / np.sqrt(2.0))
    by_score = np.einsum("ij,jia->iaj", p, v[:, None, :] - (p @ v)[None, :, :]) / np.sqrt(2.0)
    same_row = _eye(len(q))
    return [
        np.einsum("ic,iaj,jb->iacb", same_row, by_score, k),
        np.einsum("iaj,ib->iajb", by_score, q),
        np.einsum("ij,ab->iajb", p, _eye(v.shape[1])),
    ]


PROBLEMS = [
    Problem(
        "rosenbrock",
        everywhere(lambda xp: lambda x: xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)),
        (draw(40, 4),),
        _rosenbrock,
    ),
    Problem("polynomial", everywhere(lambda xp: _horner), (draw(41, 4), draw(42, 3)), _polynomial),
    Problem(
        "convolution",
        {
            "numpy": lambda xp: lambda x, w: xp.correlate(x, w, "valid"),
            "jax": lambda xp: lambda x, w: xp.correlate(x, w, "valid"),
            "torch": _torch_correlate,
        },
        (draw(43, 7), draw(44, 3)),
        _correlate,
    ),
    Problem(
        "mlp",
        everywhere(lambda xp: lambda x, w1, b1, w2, b2: w2 @ xp.tanh(w1 @ x + b1) + b2),
        (draw(45, 3), draw(46, 4, 3), draw(47, 4), draw(48, 2, 4), draw(49, 2)),
        _mlp,
    ),
    Problem(
        "cross_entropy",
        {
            "numpy": _numpy_cross_entropy,
            "jax": _numpy_cross_entropy,
            "torch": lambda xp: xp.nn.functional.cross_entropy,
        },
        (draw(50, 3, 4), _labels),
        _cross_entropy,
        frozenset({"structure"}),
    ),
    Problem(
        "mean_square_error",
        everywhere(lambda xp: lambda x, t: xp.mean((x - t) ** 2)),
        (draw(51, 5), draw(52, 5)),
        lambda x, t: [2 * (x - t) / len(x), 2 * (t - x) / len(x)],
    ),
    Problem(
        "huber",
        {"numpy": _huber_formula, "jax": _huber_formula, "torch": lambda xp: xp.nn.functional.huber_loss},
        (np.array([0.2, -3.0, 1.7, 0.9]), np.array([0.5, 0.1, 0.3, 0.2])),
        _huber,
        frozenset({"kinks"}),
    ),
    Problem("attention", everywhere(_attention_formula), (draw(53, 3, 2), draw(54, 3, 2), draw(55, 3, 2)), _attention),
]

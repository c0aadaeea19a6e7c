"""The main job, end to end: right gradients in three frameworks, then a wrong one. Run: make demo."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import nn

from multigrad import GradReport, check_grad

torch.manual_seed(0)
SURPRISES: list[str] = []


def show(heading: str, report: GradReport, expected: str = "ok") -> None:
    print(f"\n--- {heading}\n{report}")
    if report.verdict != expected:
        SURPRISES.append(f"{heading}: {report.verdict}, expected {expected}")


def check(heading: str, fn: Callable[..., Any], inputs: Any, **options: Any) -> None:
    show(heading, check_grad(fn, inputs, raise_exception=False, **options))


# A 1x1 convolution in float32, as people first write it. A fixed step in float32 calls it wrong.
image = torch.randn(1, 1, 2, 2, requires_grad=True)
conv = nn.Conv2d(1, 1, 1, 1)
check("1x1 convolution, float32", lambda x: conv(x), (image,), backend="torch")

# A linear layer in float64.
linear = nn.Linear(5, 3).double()
batch = torch.randn(10, 5, dtype=torch.double, requires_grad=True)
check("linear layer, float64", lambda x: linear(x), batch, backend="torch")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(15, 30), nn.ReLU(), nn.Linear(30, 15), nn.ReLU(), nn.Linear(15, 1), nn.Sigmoid()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.net(x)
        return y


# A network and its parameters: an nn.Module passed as fn has them checked too.
inputs = torch.randn(10, 15, dtype=torch.double, requires_grad=True)
check("ReLU/sigmoid network with its parameters, float64", Net().double(), inputs, backend="torch")

# The derivative of a scalar by a matrix: d(a^T X b)/dX = a b^T.
a, b = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 3.0, 4.0])
X = np.array([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0], [8.0, 9.0, 10.0], [5.0, 4.0, 3.0]])
check("d(a^T X b)/dX = a b^T", lambda X: a @ X @ b, X, backend="numpy", jac=lambda X: np.outer(a, b))

# The derivative of a matrix by a matrix: for F = A X the cotangent of ones gives dF/dX = A^T 1.
A = np.array([[1.0, 2.0], [3.0, 4.0]])
Y = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ones = np.ones((2, 3))
check("sum of F = A X by X: A^T 1", lambda Y: np.sum(A @ Y), Y, backend="numpy", jac=lambda Y: A.T @ ones)
Yt = torch.tensor(Y, requires_grad=True)
check("F = A X by X, every entry", lambda Y: torch.tensor(A) @ Y, Yt, backend="torch")


@jax.custom_vjp
def log1pexp(x: jax.Array) -> jax.Array:
    return jnp.logaddexp(0.0, x)


log1pexp.defvjp(lambda x: (log1pexp(x), x), lambda x, ct: (ct * jax.nn.sigmoid(x),))
check("jax.custom_vjp: log(1 + exp x)", log1pexp, np.array([-3.0, 0.5, 40.0]), backend="jax")


def least_squares(w: np.ndarray) -> float:
    return 0.5 * float(np.sum((X @ w - a) ** 2))


def gradient(w: np.ndarray) -> np.ndarray:
    return X.T @ (X @ w - a)


w = np.array([0.5, -1.0, 0.25])
check("NumPy, least squares with a gradient by hand", least_squares, w, backend="numpy", jac=gradient)


# A planted bug: one entry of the hand-written Jacobian has the wrong sign, another lost its factor.
def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def wrong_jacobian(z: np.ndarray) -> np.ndarray:
    p = softmax(z)
    jacobian = np.diag(p) - np.outer(p, p)
    jacobian[0, 2] *= -1
    jacobian[3, 1] = p[3]
    return jacobian


z = np.array([0.1, 1.2, -0.7, 0.4])
report = check_grad(softmax, z, backend="numpy", jac=wrong_jacobian, raise_exception=False)
show("softmax with two entries of its Jacobian wrong: [0] by [2], [3] by [1]", report, expected="mismatch")

print()
sys.exit("unexpected: " + "; ".join(SURPRISES) if SURPRISES else 0)

"""What the tests of the torch adapter share: a flat function, and its derivatives by a plain loop."""

import numpy as np
import torch

from multigrad.backends import Options
from multigrad_torch import TorchBackend


def flatten(fn, *inputs, params=None):
    return TorchBackend().flatten(fn, inputs, Options(params=params))


def real(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def imaginary(*shape, seed=0):
    return torch.complex(real(*shape, seed=seed), real(*shape, seed=seed + 1))


def numerical(f, h=1e-5):
    """The Jacobian of a flat function by plain calls and fourth-order differences, shape (m, n)."""
    columns = []
    for direction in np.eye(len(f.x)):
        at = [f((f.x + k * h * direction)[None])[0] for k in (-2, -1, 1, 2)]
        columns.append((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h))
    return np.stack(columns, axis=1)


def row_by_row(product, rows):
    return np.concatenate([product(row[None]) for row in rows])


def reverse(f):
    return row_by_row(f.vjp, np.eye(f.repeats.shape[1]))


def forward(f):
    return row_by_row(f.jvp, np.eye(len(f.x))).T

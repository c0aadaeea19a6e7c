"""What does evaluation in float64 cost?

Three figures for each function, all the processor's time of whole checks in one thread: the function in float64, as it is written; the same
without the look for low precision that every check begins with; the function in float32, promoted. Rounds of the three
alternate and the least of each counts, so that a busy machine spoils none of them.
usage: python benchmarks/bench_promotion.py [--repeats N]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[pool] = "1"

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import nn

from multigrad import check_grad
from multigrad_jax import _function
from multigrad_torch import _flat

RESULTS = Path(__file__).parent / "results"
Make = Callable[[], tuple[nn.Module, torch.Tensor]]


def mlp() -> tuple[nn.Module, torch.Tensor]:
    layers = nn.Linear(15, 30), nn.ReLU(), nn.Linear(30, 15), nn.ReLU(), nn.Linear(15, 1), nn.Sigmoid()
    return nn.Sequential(*layers), torch.randn(10, 15)


def transformer() -> tuple[nn.Module, torch.Tensor]:
    return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), torch.randn(2, 4, 8)


def lstm() -> tuple[nn.Module, torch.Tensor]:
    return nn.LSTM(3, 4), torch.randn(3, 1, 3)


def convolution() -> tuple[nn.Module, torch.Tensor]:
    return nn.Conv2d(1, 1, 1, 1), torch.randn(1, 1, 2, 2)


def check(make: Make, dtype: torch.dtype) -> Callable[[], Any]:
    torch.manual_seed(0)
    module, x = make()
    module, x = module.to(dtype), x.to(dtype).requires_grad_()

    def output(x: torch.Tensor) -> torch.Tensor:
        out = module(x)
        return out if isinstance(out, torch.Tensor) else out[0]

    return lambda: check_grad(output, x)


def jax_mlp(x: jax.Array) -> jax.Array:
    return jax.nn.sigmoid(jnp.tanh(x @ _weights(x, 15, 30)) @ _weights(x, 30, 1))


def jax_attention(x: jax.Array) -> jax.Array:
    q, k, v = (x @ _weights(x, 8, 8) for _ in range(3))
    return jax.nn.softmax(q @ k.T / 8**0.5) @ v


def _weights(x: jax.Array, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=shape) / shape[0] ** 0.5, x.dtype)


def check_jax(fn: Callable[[jax.Array], jax.Array], shape: tuple[int, int], dtype: type) -> Callable[[], Any]:
    x = np.random.default_rng(1).normal(size=shape).astype(dtype)
    return lambda: check_grad(fn, x, "jax")


def unexamined(call: Callable[[], Any]) -> Callable[[], Any]:
    """The check without a look at what is inside the function, whatever it is."""

    def run() -> Any:
        with (
            mock.patch.object(_flat, "is_double", return_value=True),
            mock.patch.object(_function, "is_double", return_value=True),
        ):
            return call()

    return run


def least(calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Milliseconds of the fastest call of each, after one that is not counted."""
    best = [float("inf")] * len(calls)
    for round_ in range(repeats + 1):
        for k, call in enumerate(calls):
            started = process_time()
            call()
            if round_:
                best[k] = min(best[k], 1e3 * (process_time() - started))
    return best


def measured() -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Each function in float64 and in float32."""
    for make in (convolution, mlp, transformer, lstm):
        yield make.__name__, check(make, torch.float64), check(make, torch.float32)
    for fn, shape in ((jax_mlp, (10, 15)), (jax_attention, (4, 8))):
        yield fn.__name__, check_jax(fn, shape, np.float64), check_jax(fn, shape, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    rows = []
    print(
        f"{'':14}{'float64':>10}{'unexamined':>12}{'ratio':>8}{'float32':>10}{'ratio':>8}   (ms, ms, , ms, to float64)"
    )
    for name, double, single in measured():
        examined, plain, promoted = least([double, unexamined(double), single], repeats)
        row = {"function": name, "float64_ms": examined, "unexamined_ms": plain, "float32_ms": promoted}
        rows.append(row | {"float64_ratio": examined / plain, "float32_ratio": promoted / examined})
        print(
            f"{name:14}{examined:10.2f}{plain:12.2f}{examined / plain:8.3f}{promoted:10.2f}{promoted / examined:8.2f}"
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench_promotion.json").write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

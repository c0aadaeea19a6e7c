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
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[pool] = "1"

import torch
from torch import nn

from multigrad import check_grad
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


def unexamined(call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with mock.patch.object(_flat, "settle", return_value=2.0**-52):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    rows = []
    print(
        f"{'':14}{'float64':>10}{'unexamined':>12}{'ratio':>8}{'float32':>10}{'ratio':>8}   (ms, ms, , ms, to float64)"
    )
    for make in (convolution, mlp, transformer, lstm):
        double, single = check(make, torch.float64), check(make, torch.float32)
        examined, plain, promoted = least([double, unexamined(double), single], repeats)
        row = {"function": make.__name__, "float64_ms": examined, "unexamined_ms": plain, "float32_ms": promoted}
        rows.append(row | {"float64_ratio": examined / plain, "float32_ratio": promoted / examined})
        print(
            f"{make.__name__:14}{examined:10.2f}{plain:12.2f}{examined / plain:8.3f}"
            f"{promoted:10.2f}{promoted / examined:8.2f}"
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench_promotion.json").write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

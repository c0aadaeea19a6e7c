"""How does a check of every entry compare with torch's gradcheck of every entry?

Both look at the whole Jacobian of the same function at the same point, in one process and one thread; the ratio of the
median processor times is what to read.
usage: python benchmarks/bench_full.py [--repeats N]
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import torch
from timing import RESULTS, milliseconds
from torch import nn
from torch.autograd import gradcheck

from multigrad import check_grad

Work = tuple[str, Callable[..., Any], tuple[Any, ...]]


def points(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


def works() -> list[Work]:
    """Functions without parameters of their own to check: a lambda hides those of the modules."""
    linear, conv, small, tiny = nn.Linear(64, 64), nn.Conv2d(3, 8, 3), nn.Linear(5, 3), nn.Conv2d(1, 1, 1, 1)
    deep = nn.Sequential(nn.Linear(15, 30), nn.ReLU(), nn.Linear(30, 15), nn.ReLU(), nn.Linear(15, 1), nn.Sigmoid())
    wide = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    for module in (linear, conv, small, tiny, deep, wide):
        module.double()
    return [
        ("Linear(64, 64), batch 8", lambda x: linear(x), (points(8, 64),)),
        ("MLP 15-30-15-1, batch 10", lambda x: deep(x), (points(10, 15),)),
        ("Conv2d(3, 8, 3), 1x3x16x16", lambda x: conv(x), (points(1, 3, 16, 16),)),
        ("softplus, 4096", lambda x: nn.functional.softplus(x), (points(4096),)),
        ("MLP 64-64-10, batch 16", lambda x: wide(x), (points(16, 64),)),
        ("Linear(5, 3), batch 10", lambda x: small(x), (points(10, 5),)),
        ("Conv2d(1, 1, 1), 1x1x2x2", lambda x: tiny(x), (points(1, 1, 2, 2),)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.manual_seed(0)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    print(f"{'function':30s} {'n -> m':>13s} {'gradcheck ms':>13s} {'multigrad ms':>13s} {'ratio':>6s} evaluations")
    for name, fn, inputs in works():
        n, m = inputs[0].numel(), fn(*inputs).numel()
        report = check_grad(fn, inputs, raise_exception=False)
        theirs = milliseconds(lambda fn=fn, inputs=inputs: gradcheck(fn, inputs), repeats)
        ours = milliseconds(lambda fn=fn, inputs=inputs: check_grad(fn, inputs, raise_exception=False), repeats)
        rows.append({"function": name, "n": n, "m": m, "gradcheck_ms": theirs, "multigrad_ms": ours})
        size = f"{n} -> {m}"
        print(
            f"{name:30s} {size:>13s} {theirs:13.2f} {ours:13.2f} {theirs / ours:6.1f} {report.evaluations}", flush=True
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench_full.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

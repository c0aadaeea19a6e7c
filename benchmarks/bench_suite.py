"""How long does a test suite's worth of small checks take: a hundred and fifty functions, a few dozen entries each?

usage: python benchmarks/bench_suite.py
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from timing import milliseconds
from torch.autograd import gradcheck

from multigrad import check_grad

UNARY = [
    "sin",
    "cos",
    "tan",
    "exp",
    "log1p",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "erf",
    "expm1",
    "sinh",
    "cosh",
    "asinh",
    "atan",
    "square",
    "reciprocal",
    "lgamma",
    "digamma",
    "abs",
]
SHAPES = [(3,), (2, 4), (12,), (2, 3, 4)]


def works() -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for shape in SHAPES:
        x = (torch.rand(*shape, dtype=torch.double) + 0.5).requires_grad_()
        found += [(getattr(torch, name), x) for name in UNARY]
        found += [(lambda x: x.softmax(-1), x), (lambda x: x.cumsum(-1), x), (lambda x: x.logsumexp(-1), x)]
        found += [(lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), x)]
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    checks = works()
    ours = milliseconds(lambda: [check_grad(fn, (x,)) for fn, x in checks], 5)
    theirs = milliseconds(lambda: [gradcheck(fn, (x,)) for fn, x in checks], 5)
    fast = milliseconds(lambda: [gradcheck(fn, (x,), fast_mode=True) for fn, x in checks], 5)
    for name, time in (("multigrad", ours), ("gradcheck", theirs), ("gradcheck, fast mode", fast)):
        print(f"{name:22s} {time:8.1f} ms for {len(checks)} checks, {time / len(checks):.2f} ms each")


if __name__ == "__main__":
    main()

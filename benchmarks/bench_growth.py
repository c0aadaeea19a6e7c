"""How do time, evaluations and memory grow with the number of inputs and outputs? Draws growth.png.

Three functions: elementwise (sparse), a network of fixed width with one output for each ten inputs (dense), and the
mean of squares (one output). Every size is checked in a fresh process, so that its peak memory is its own.
usage: python benchmarks/bench_growth.py [--largest 1000000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from timing import RESULTS

SIZES = [10, 100, 1000, 10_000, 100_000, 1_000_000]
KINDS = ("elementwise", "network", "scalar")
WIDTH = 32


def function(kind: str, n: int) -> Callable[[Any], Any]:
    import torch

    if kind == "elementwise":
        return lambda x: torch.exp(-x) * torch.sin(x)
    if kind == "scalar":
        return lambda x: (torch.tanh(x) ** 2).mean()
    m = max(1, min(n // 10, 1000))
    first, second = torch.randn(n, WIDTH).double() / n**0.5, torch.randn(WIDTH, m).double()
    return lambda x: torch.tanh(x @ first) @ second


def measure(kind: str, n: int) -> dict[str, Any]:
    """In this process: what one check costs, its first call apart."""
    import resource
    from time import perf_counter

    import torch

    from multigrad import check_grad

    torch.set_num_threads(1)
    torch.manual_seed(0)
    fn, x = function(kind, n), torch.randn(n, dtype=torch.double, requires_grad=True)
    check_grad(function(kind, 10), (x[:10].detach().requires_grad_(),))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    report = check_grad(fn, (x,), raise_exception=False)
    seconds = perf_counter() - start
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
    way = "probed" if report.probed else "full"
    said = {"verdict": str(report.verdict), "way": way, "evaluations": report.evaluations}
    return {"kind": kind, "n": n, "m": fn(x).numel(), "seconds": seconds, "memory_mb": memory, **said}


def draw(rows: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4))
    for axis, key, label in zip(
        axes, ("seconds", "evaluations", "memory_mb"), ("seconds", "evaluations", "memory, MB"), strict=True
    ):
        for kind in KINDS:
            mine = [row for row in rows if row["kind"] == kind]
            axis.plot([r["n"] for r in mine], [max(r[key], 1e-3) for r in mine], label=kind, alpha=0.5)
            for way, marker in (("full", "o"), ("probed", "^")):
                some = [r for r in mine if r["way"] == way]
                axis.plot(
                    [r["n"] for r in some], [max(r[key], 1e-3) for r in some], marker, color=axis.lines[-1].get_color()
                )
        axis.set(xscale="log", yscale="log", xlabel="inputs", ylabel=label)
    axes[0].legend()
    figure.suptitle("one check; circles: every entry compared, triangles: probed")
    figure.tight_layout()
    figure.savefig(RESULTS.parent / "growth.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--one", nargs=2, metavar=("KIND", "N"))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one[0], int(asked.one[1]))))
        return
    rows = []
    for kind in KINDS:
        for n in [size for size in SIZES if size <= asked.largest]:
            run = subprocess.run(
                [sys.executable, __file__, "--one", kind, str(n)], capture_output=True, text=True, check=True
            )
            rows.append(json.loads(run.stdout))
            r = rows[-1]
            print(
                f"{kind:12s} {n:8d} -> {r['m']:<8d} {r['way']:7s} {r['verdict']:14s} {r['seconds']:9.3f} s "
                f"{r['evaluations']:7d} evaluations {r['memory_mb']:8.1f} MB",
                flush=True,
            )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "bench_growth.json").write_text(json.dumps(rows, indent=1))
    draw(rows)


if __name__ == "__main__":
    main()

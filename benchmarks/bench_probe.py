"""Is one wrong entry of a thousand million found, at what price, and does torch's fast mode see it?

The Jacobian has 10^6 columns and 10^3 rows; one entry of the backward pass is wrong by a fraction of itself.
usage: python benchmarks/bench_probe.py [--error 1e-3] [--inputs 1000000] [--outputs 1000]
"""

from __future__ import annotations

import argparse
import resource
from time import perf_counter
from typing import Any

import numpy as np
import timing  # noqa: F401 - one thread
import torch
from torch.autograd import gradcheck

from multigrad import check_grad


def function(n: int, m: int, place: tuple[int, int], error: float) -> Any:
    """sin of the lowest frequencies of tanh(x): every output depends on every input."""
    row, column = place

    class Spectrum(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            z = torch.fft.rfft(torch.tanh(x), norm="ortho").real[:m]
            ctx.save_for_backward(x, z)
            return torch.sin(z)

        @staticmethod
        def backward(ctx: Any, cotangent: torch.Tensor) -> torch.Tensor:
            x, z = ctx.saved_tensors
            u = torch.zeros(n, dtype=torch.cdouble)
            u[:m] = cotangent * torch.cos(z)
            slope = 1 - torch.tanh(x) ** 2
            gradient = torch.fft.fft(u).real / np.sqrt(n) * slope
            wrong = u[row].real * np.cos(2 * np.pi * row * column / n) / np.sqrt(n) * slope[column]
            gradient[column] += error * wrong
            return gradient

    return Spectrum.apply


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--error", type=float, default=1e-3)
    parser.add_argument("--inputs", type=int, default=10**6)
    parser.add_argument("--outputs", type=int, default=10**3)
    asked = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    n, m = asked.inputs, asked.outputs
    place = m // 3, n // 4 + 17
    fn, x = function(n, m, place, asked.error), torch.randn(n, dtype=torch.double, requires_grad=True)
    start = perf_counter()
    report = check_grad(fn, (x,), modes=("reverse",), raise_exception=False)
    seconds = perf_counter() - start
    start = perf_counter()
    fast = gradcheck(fn, (x,), fast_mode=True, raise_exception=False, check_undefined_grad=False)
    print(report)
    print(f"wrong by {asked.error:g}: d output[{place[0]}] / d inputs[0][{place[1]}]")
    print(f"multigrad: {report.verdict}, {report.evaluations} evaluations, {seconds:.1f} s")
    print(f"gradcheck, fast mode: {'accepts it' if fast else 'refuses it'}, {perf_counter() - start:.1f} s")
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()

"""How long does a whole check take, beside the other checkers on the same functions?

Every checker compares a numerical with the analytical Jacobian of the same function at the same point, in one process
and one thread. scipy and numdifftools only estimate; the comparison with the gradient by hand is timed with them.
"first" is the first call (with what it compiles), "best" the minimum of the repeats.
usage: python benchmarks/bench_check.py [--repeats N] [--only WORD]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[pool] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import jax.test_util
import numdifftools
import numpy as np
import scipy.differentiate
import torch
from torch import nn
from torch.autograd import gradcheck

from multigrad import check_grad

RESULTS = Path(__file__).parent / "results"
Checker = Callable[["Workload"], bool]


@dataclass(frozen=True)
class Workload:
    """A function, the point, and for NumPy its Jacobian; ``size`` is n -> m."""

    name: str
    framework: str
    fn: Callable[..., Any]
    inputs: tuple[Any, ...]
    size: str
    jac: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Timing:
    workload: str
    size: str
    checker: str
    says: str
    first_ms: float
    best_ms: float
    ratio: float


def network(*widths: int) -> nn.Module:
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1], nn.Sigmoid()).double()


def points(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


def torch_workloads() -> list[Workload]:
    conv, linear, net = nn.Conv2d(1, 1, 1, 1).double(), nn.Linear(5, 3).double(), network(15, 30, 15, 1)
    wide = network(400, 64, 10)
    # Called through a lambda, so that everyone checks the inputs alone and not the parameters.
    return [
        Workload("conv 1x1", "torch", lambda x: conv(x), (points(1, 1, 2, 2),), "4 -> 4"),
        Workload("linear 10x5", "torch", lambda x: linear(x), (points(10, 5),), "50 -> 30"),
        Workload("network 10x15", "torch", lambda x: net(x), (points(10, 15),), "150 -> 10"),
        Workload("softmax 8x32", "torch", lambda x: x.softmax(-1), (points(8, 32),), "256 -> 256"),
        Workload("wide network", "torch", lambda x: wide(x), (points(400),), "400 -> 10"),
    ]


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def jax_workloads() -> list[Workload]:
    rng = np.random.default_rng(0)
    w1, w2 = rng.normal(size=(64, 1000)) / 30, rng.normal(size=(10, 64)) / 8
    q, k, v = (jnp.asarray(rng.normal(size=(8, 4))) for _ in range(3))
    return [
        Workload("tanh", "jax", jnp.tanh, (jnp.asarray(rng.normal(size=16)),), "16 -> 16"),
        Workload("softmax 8x32", "jax", jax.nn.softmax, (jnp.asarray(rng.normal(size=(8, 32))),), "256 -> 256"),
        Workload("attention", "jax", attention, (q, k, v), "96 -> 32"),
        Workload(
            "wide network", "jax", lambda x: w2 @ jnp.tanh(w1 @ x), (jnp.asarray(rng.normal(size=1000)),), "1000 -> 10"
        ),
    ]


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2, axis=0)


def rosenbrock_gradient(x: Any) -> Any:
    rise, gradient = x[1:] - x[:-1] ** 2, np.zeros_like(x)
    gradient[1:] += 200 * rise
    gradient[:-1] -= 400 * x[:-1] * rise + 2 * (1 - x[:-1])
    return gradient


def softmax(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(axis=0)


def softmax_jacobian(x: Any) -> Any:
    p = softmax(x)
    return np.diag(p) - np.outer(p, p)


def numpy_workloads() -> list[Workload]:
    """Functions of the first axis, so that scipy may pass whole batches along the others."""
    rng = np.random.default_rng(0)
    w1, w2 = rng.normal(size=(64, 1000)) / 30, rng.normal(size=(10, 64)) / 8

    def layers(x: Any) -> Any:
        return np.tanh(w2 @ np.tanh(w1 @ x))

    def layers_jacobian(x: Any) -> Any:
        h = np.tanh(w1 @ x)
        return (1 - np.tanh(w2 @ h) ** 2)[:, None] * ((w2 * (1 - h**2)) @ w1)

    def each(x: Any) -> Any:
        """The same along the first axis, whatever the others are."""
        return layers(x.reshape(len(x), -1)).reshape(10, *x.shape[1:])

    return [
        Workload("wide network", "numpy", each, (rng.normal(size=1000),), "1000 -> 10", layers_jacobian),
        Workload("rosenbrock", "numpy", rosenbrock, (rng.normal(size=20),), "20 -> 1", rosenbrock_gradient),
        Workload("softmax", "numpy", softmax, (rng.normal(size=32),), "32 -> 32", softmax_jacobian),
    ]


def ours(w: Workload) -> bool:
    return bool(check_grad(w.fn, w.inputs, backend=w.framework, jac=w.jac, raise_exception=False))


def torch_slow(w: Workload) -> bool:
    return gradcheck(w.fn, w.inputs, raise_exception=False)


def torch_fast(w: Workload) -> bool:
    return gradcheck(w.fn, w.inputs, raise_exception=False, fast_mode=True)


def jax_check_grads(w: Workload) -> bool:
    try:
        jax.test_util.check_grads(w.fn, w.inputs, order=1)
    except AssertionError:
        return False
    return True


def agrees(w: Workload, numerical: Any) -> bool:
    assert w.jac is not None
    analytical = w.jac(*w.inputs)
    return bool(np.allclose(np.reshape(numerical, np.shape(analytical)), analytical, rtol=1e-3, atol=1e-5))


def scipy_jacobian(w: Workload) -> bool:
    return agrees(
        w, scipy.differentiate.jacobian(lambda x: np.atleast_1d(w.fn(x)) if x.ndim == 1 else w.fn(x), *w.inputs).df
    )


def numdifftools_jacobian(w: Workload) -> bool:
    return agrees(w, numdifftools.Jacobian(w.fn)(*w.inputs))


CHECKERS: dict[str, dict[str, Checker]] = {
    "torch": {"multigrad": ours, "gradcheck slow": torch_slow, "gradcheck fast": torch_fast},
    "jax": {"multigrad": ours, "check_grads": jax_check_grads},
    "numpy": {"multigrad": ours, "scipy jacobian": scipy_jacobian, "numdifftools": numdifftools_jacobian},
}


def milliseconds(checker: Checker, w: Workload) -> tuple[float, bool]:
    start = perf_counter()
    verdict = checker(w)
    return 1e3 * (perf_counter() - start), verdict


def measure(w: Workload, repeats: int) -> list[Timing]:
    rows: list[Timing] = []
    for name, checker in CHECKERS[w.framework].items():
        first, verdict = milliseconds(checker, w)
        best = min(milliseconds(checker, w)[0] for _ in range(repeats))
        reference = rows[0].best_ms if rows else best
        says = "ok" if verdict else "not ok"
        rows.append(Timing(f"{w.framework} {w.name}", w.size, name, says, first, best, best / reference))
    return rows


def show(rows: list[Timing]) -> None:
    print(
        f"{'function':22s} {'n -> m':>12s}  {'checker':16s} {'says':7s} {'first ms':>9s} {'best ms':>9s} {'x ours':>7s}"
    )
    for r in rows:
        print(
            f"{r.workload:22s} {r.size:>12s}  {r.checker:16s} {r.says:7s} {r.first_ms:9.2f} {r.best_ms:9.2f} {r.ratio:7.2f}"
        )


def save(rows: list[Timing], repeats: int) -> Path:
    machine = {"python": platform.python_version(), "machine": platform.machine(), "threads": 1, "repeats": repeats}
    versions = {name: version(name) for name in ("jax", "numdifftools", "numpy", "scipy", "torch")}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "bench_check.json"
    path.write_text(json.dumps({**machine, "versions": versions, "rows": [asdict(r) for r in rows]}, indent=1))
    return path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="a word of the function's name")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    workloads = [*torch_workloads(), *jax_workloads(), *numpy_workloads()]
    chosen = [w for w in workloads if arguments.only in f"{w.framework} {w.name}"]
    rows = [row for w in chosen for row in measure(w, arguments.repeats)]
    show(rows)
    print(f"written: {save(rows, arguments.repeats)}")


if __name__ == "__main__":
    main()

"""What do vectorised perturbations of NumPy code save, and what does the first trace of a loop cost?

Processor time in one process and one thread. The plain loop is what a check does without vectorisation: the arguments
are made anew for every row, and its outputs laid out; the bare loop only calls the function.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import timing  # noqa: F401 - sets the threads, so it is imported before NumPy

# isort: split

import jax
import numpy as np

from multigrad import check_grad
from multigrad.backends import Array, Options, get_backend
from multigrad.batches import Batched

REPEATS = 9
rng = np.random.default_rng(0)
W1, W2 = rng.normal(size=(64, 1000)) / 30, rng.normal(size=(10, 64)) / 8
U, V, O = rng.normal(size=(32, 32)) / 6, rng.normal(size=(32, 8)) / 3, rng.normal(size=(4, 32))


def network(x: Array) -> Array:
    return W2 @ np.tanh(W1 @ x)


def recurrent(inputs: Array) -> Array:
    h = np.zeros(32)
    for t in range(100):
        h = np.tanh(U @ h + V @ inputs[t])
    return O @ h


def items(x: Array) -> Array:
    out = np.zeros(60)
    for i in range(60):
        out[i] = x[i] ** 2 + x[(i + 1) % 60]
    return out


def seconds(run: Callable[[], object]) -> float:
    """The least processor time of several runs."""
    times = []
    for _ in range(REPEATS):
        start = process_time()
        run()
        times.append(process_time() - start)
    return min(times)


def compare(name: str, fn: Callable[[Array], Array], x: Array) -> None:
    f = get_backend("numpy").flatten(fn, (x,), Options(jac=lambda x: 0, extra={"trace": False}))
    rows = f.x + 1e-3 * rng.normal(size=(2 * f.x.size, f.x.size))
    width = f.repeats.shape[1]
    vectorised = seconds(lambda: Batched(f, width)(rows))
    plain = seconds(lambda: [f(rows[i : i + 1]) for i in range(len(rows))])
    bare = seconds(lambda: [fn(row.reshape(x.shape)) for row in rows])
    print(
        f"{name}: vectorised {1e3 * vectorised:.1f} ms; plain loop {plain / vectorised:.1f} times, "
        f"bare loop {bare / vectorised:.1f} times as long"
    )


def main() -> None:
    jax.numpy.zeros(1).block_until_ready()  # JAX's own start is not counted
    start = process_time()
    check_grad(items, np.linspace(0.1, 1, 60))
    print(f"first check of a loop of 60 item assignments, traced: {process_time() - start:.2f} s")
    compare("network 1000-64-10", network, rng.normal(size=1000))
    compare("recurrent network, 100 steps", recurrent, rng.normal(size=(100, 8)))


if __name__ == "__main__":
    main()

"""Everything the user owns is as it was: after success, after a mismatch, after an exception in their function."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

from multigrad import check_grad

X = np.array([0.3, -0.7, 1.1])
BACKENDS = ("torch", "jax", "numpy")
COUNTER = 0


class Owner:
    """A callable that keeps all that a function can keep."""

    def __init__(self, xp: Any, fails_at: int, factor: float) -> None:
        self.xp, self.fails_at, self.factor = xp, fails_at, factor
        self.calls, self.seen, self.scratch, self.table, self.names = 0, [], np.zeros(3), {"a": np.ones(2)}, {"x"}

    def __call__(self, x: Any, fixed: Any) -> Any:
        global COUNTER
        COUNTER += 1
        self.calls += 1
        self.seen.append(self.calls)
        self.scratch[:] = self.calls
        self.table["a"] += 1
        self.table["b"] = self.calls
        self.names.add(self.calls)
        if self.calls > self.fails_at:
            raise KeyError("enough")
        return self.xp.sin(x) * fixed

    def jac(self, x: Any, fixed: Any) -> Any:
        self.scratch += 1
        return self.factor * np.diag(np.cos(x) * fixed), np.diag(np.sin(x))

    def state(self) -> Any:
        return copy.deepcopy((self.calls, self.seen, self.scratch.tolist(), self.table["a"].tolist(), self.names))


def _inputs(backend: str) -> tuple[Any, Any]:
    if backend == "torch":
        import torch

        x = torch.tensor(X, requires_grad=True)
        x.grad = torch.ones(3, dtype=torch.float64)
        return x, torch.tensor(X + 2)
    return X.copy(), X + 2


def _contents(inputs: tuple[Any, Any]) -> Any:
    return [x.tolist() for x in inputs]


def _module(backend: str) -> Any:
    return pytest.importorskip({"torch": "torch", "jax": "jax.numpy", "numpy": "numpy"}[backend])


@pytest.mark.parametrize("ending", ["success", "mismatch", "exception", "exception at once"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_as_it_was(backend: str, ending: str) -> None:
    fails_at = {"exception": 3, "exception at once": 0}.get(ending, 10**9)
    owner = Owner(_module(backend), fails_at, 1.5 if ending == "mismatch" else 1.0)
    inputs = _inputs(backend)
    options = {"jac": owner.jac} if backend == "numpy" else {}
    before, contents, counter = owner.state(), _contents(inputs), COUNTER
    numbers, legacy = random.getstate(), np.random.get_state()[1].tolist()
    mode = _mode(backend)
    try:
        report = check_grad(owner, inputs, backend=backend, raise_exception=False, **options)
    except KeyError:
        assert ending.startswith("exception")
    else:
        assert ending == "exception" or report.verdict == (
            "mismatch" if (backend, ending) == ("numpy", "mismatch") else "ok"
        )
    assert owner.state() == before
    assert "b" not in owner.table
    assert counter == COUNTER
    assert _contents(inputs) == contents
    assert (random.getstate(), np.random.get_state()[1].tolist(), _mode(backend)) == (numbers, legacy, mode)
    if backend == "torch":
        assert inputs[0].grad.tolist() == [1, 1, 1]
        assert inputs[0].requires_grad
        assert inputs[0]._version == 0


def _mode(backend: str) -> Any:
    if backend == "jax":
        import jax

        return jax.config.jax_enable_x64
    if backend == "torch":
        import torch

        return torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_rng_state().tolist()
    return np.geterr()


@pytest.mark.parametrize("order", [1, 2])
def test_a_module(order: int) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 2, bias=False), torch.nn.BatchNorm1d(2), torch.nn.Tanh()).double()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net[0].weight.requires_grad_(False)
    check_grad(net, torch.tensor(np.outer([1, -2, 0.5, 0.3], X) + np.sin(np.arange(12).reshape(4, 3))), order=order)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not net[0].weight.requires_grad
    assert all(p.grad is None for p in net.parameters())


def test_random_numbers_drawn_by_the_function() -> None:
    random.seed(1)
    np.random.seed(1)
    states = random.getstate(), np.random.get_state()[1].tolist()

    def fn(x: Any) -> Any:
        return np.sum(x) * (np.random.rand() + random.random())

    check_grad(fn, X, jac=np.ones_like, raise_exception=False)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states


def test_a_name_rebound_in_an_enclosing_function() -> None:
    count = 0

    def fn(x: Any) -> Any:
        nonlocal count
        count += 1
        return np.sum(x**2)

    check_grad(fn, X, jac=lambda x: 2 * x)
    assert count == 0


def test_copies_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multigrad._belongings.ROOM", 100)
    scratch = [np.zeros(8), np.zeros(8)]

    def f(x: Any) -> Any:
        for each in scratch:
            each += 1
        return np.sum(x**2)

    check_grad(f, X, backend="numpy", jac=lambda x: 2 * x)
    assert not scratch[0].any()
    assert scratch[1].all()

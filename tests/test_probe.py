"""Probing: one wrong entry among very many is found and named, and a report says how sharp it was."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from multigrad._differences.directions import Index
from multigrad._probing.search import search
from multigrad._report.probe_leg import ProbeLeg
from multigrad._report.report import GradReport
from multigrad._run import Settings, run_check
from multigrad.backends import Array, Leaf
from multigrad.errors import InvalidUse
from tests.flat import Flat

RANK = 5


class Mixing:
    """sin(A tanh(B x)) by factors, with wrong derivatives of the given relative errors in the given entries."""

    eps = 2.0**-52

    def __init__(self, n: int, m: int, wrong: Sequence[tuple[int, int, float]] = (), every: float = 0.0) -> None:
        rng = np.random.default_rng(n)
        self.A, self.B = rng.normal(size=(m, RANK)), rng.normal(size=(RANK, n)) / np.sqrt(n)
        self.x = rng.normal(size=n)
        self.inputs = [
            Leaf("inputs[0]", (n - n // 2,), "float64", 0),
            Leaf("inputs[1]", (n // 2,), "float64", n - n // 2),
        ]
        self.outputs = [Leaf("output", (m,), "float64", 0)]
        self.fixed: Sequence[str] = ()
        self.findings: Sequence[Any] = ()
        self.repeats = np.repeat(self(self.x[None]), 2, axis=0)
        self.wrong, self.every = wrong, every

    def __call__(self, X: Array, /) -> Array:
        return np.sin(np.tanh(X @ self.B.T) @ self.A.T)

    def _outer(self) -> Array:
        t = np.tanh(self.B @ self.x)
        return np.cos(self.A @ t)[:, None] * self.A * (1 - t**2)

    def entry(self, i: int, j: int) -> float:
        return float(self._outer()[i] @ self.B[:, j])

    def vjp(self, U: Array, /) -> Array:
        out = (1 + self.every) * (U @ self._outer()) @ self.B
        for i, j, error in self.wrong:
            out[:, j] += U[:, i] * error * self.entry(i, j)
        return out

    def jvp(self, V: Array, /) -> Array:
        out = (1 + self.every) * (V @ self.B.T) @ self._outer().T
        for i, j, error in self.wrong:
            out[:, i] += V[:, j] * error * self.entry(i, j)
        return out


def entries(report: GradReport) -> set[tuple[str, str]]:
    return {(entry.output, entry.input) for entry in report.worst}


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_one_wrong_entry_of_very_many(mode: str) -> None:
    n, m, i, j = 300_000, 1000, 123, 265_432
    f = Mixing(n, m, [(i, j, 1e-3)])
    tracemalloc.start()
    report = run_check(f, Settings(modes=(mode,)))  # auto: there are too many entries
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.verdict == "mismatch"
    assert entries(report) == {(f"output[{i}]", f"inputs[1][{j - n // 2}]")}
    assert report.worst[0].numeric == pytest.approx(f.entry(i, j), rel=1e-6)
    assert report.evaluations < 500
    assert peak < 2**30


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_a_right_jacobian(mode: str) -> None:
    report = run_check(Mixing(20_000, 300), Settings(modes=(mode,)))
    assert report.verdict == "ok"
    assert not report.legs
    assert not report.blocks
    (leg,) = report.probed
    assert leg.size == 20_000 * 300
    assert 0 < report.sharpness < 1e-7
    assert "3 random directions" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["probed"][mode]["directions"] == 3


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("every", [-2.0, 0.05, 1e-3, 1e-6])
def test_an_error_in_every_entry(mode: str, every: float) -> None:
    report = run_check(Mixing(3000, 50, every=every), Settings(modes=(mode,), method="probe"))
    assert report.verdict == "mismatch"


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("seed", range(5))
def test_several_wrong_entries(mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wrong = [(int(i), int(j), 0.3) for i, j in zip(rng.choice(80, 6), rng.choice(4000, 6, replace=False), strict=True)]
    report = run_check(Mixing(4000, 80, wrong), Settings(modes=(mode,), method="probe", seed=seed))
    assert report.verdict == "mismatch"
    places = {(f"output[{i}]", f"inputs[{j // 2000}][{j % 2000}]") for i, j, _ in wrong}
    assert entries(report) <= places


def test_errors_within_the_tolerance_are_no_errors() -> None:
    assert run_check(Mixing(2000, 50, every=1e-9), Settings(method="probe")).verdict == "ok"


def test_what_is_asked_for_in_full_must_fit() -> None:
    with pytest.raises(InvalidUse) as caught:
        run_check(Mixing(20_000, 300), Settings(method="full", max_memory=2**28))
    assert caught.value.kind == "too_large"


def test_little_memory_means_probing() -> None:
    f = Mixing(400, 50)
    assert run_check(f).legs
    assert run_check(f, Settings(max_memory=2**20)).probed


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000, 12345])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_search(n: int, count: int) -> None:
    rng = np.random.default_rng((n, count))
    numbers = np.zeros(n)
    where = rng.choice(n, min(n, count), replace=False)
    numbers[where] = rng.normal(size=len(where)) + 3
    asked = 0

    def sums(pairs: Sequence[tuple[Index, Array]]) -> tuple[Array, Array]:
        nonlocal asked
        asked += len(pairs)
        exact = np.array([numbers[items] @ weights for items, weights in pairs])
        return exact + 1e-9 * rng.normal(size=len(pairs)), np.full(len(pairs), 1e-8)

    found = search(sums, np.arange(n), rng)
    assert asked <= 2 * np.log2(n) + 40
    if count == 0:
        assert not len(found)
    if count:
        assert len(found) == 1
        assert found[0] in where


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_entry_that_is_not_finite_is_found(value: float) -> None:
    with np.errstate(invalid="ignore"):
        report = run_check(Mixing(3000, 50, [(7, 1234, value)]), Settings(modes=("reverse",), method="probe"))
    assert report.verdict == "mismatch"
    # U[:, i] * value is NaN for every cotangent, so that the whole column is
    assert {name for _, name in entries(report)} == {"inputs[0][1234]"}


def test_a_wrong_entry_is_named_without_a_matrix_of_all_outputs() -> None:
    """The output to blame is asked for by itself: 4 * 10^10 doubles would not fit."""
    n, k = 200_000, 777
    x = np.linspace(0.1, 1.2, n)
    slope = np.cos(x)
    slope[k] *= 1.01

    class Elementwise(Flat):
        def vjp(self, U: Array, /) -> Array:
            return U * slope

    report = run_check(Elementwise(np.sin, x, np.eye(1)), Settings(modes=("reverse",), method="probe"))
    assert report.verdict == "mismatch"
    assert entries(report) == {(f"output[{k}]", f"inputs[0][{k}]")}


@pytest.mark.parametrize(
    ("told", "sees", "verdict"),
    [
        ([0, 0], [1e-9, 1e-4], "ok"),
        ([0, 1], [1e-9, 0.0], "ok"),
        ([0, 0], [1e-9, 0.7], "inconclusive"),
        ([1, 1], [0.0, 0.0], "inconclusive"),
    ],
)
def test_probing_that_sees_nothing_is_not_ok(told: list[int], sees: list[float], verdict: str) -> None:
    """Neither a row that might be wrong altogether without its showing, nor rows that are all too small to resolve."""
    leg = ProbeLeg("reverse", (9, 9), (), np.array(told, np.int8), np.zeros(2), np.array(sees), 3, 1e-7)
    assert leg.verdict == verdict
    assert bool(leg.unexplained) == (verdict != "ok")

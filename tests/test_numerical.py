"""The numerics alone: functions with known derivatives, far from 1 and coupled, right and with planted errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tests.flat import check_flat

FAMILIES = {
    "exp": (np.exp, np.exp, 50.0),
    "log": (lambda x: np.log(np.abs(x)), lambda x: 1 / x, 1e8),
    "sqrt": (lambda x: np.sqrt(np.abs(x)), lambda x: np.sign(x) / (2 * np.sqrt(np.abs(x))), 1e8),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x**2, 1e8),
    "log_gamma": (lambda x: special.gammaln(np.abs(x)), lambda x: np.sign(x) * special.digamma(np.abs(x)), 1e8),
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x) ** 2, 8.0),
    "sin": (np.sin, np.cos, 1e8),
    "wave": (lambda x: x * np.sin(1e3 * x), lambda x: np.sin(1e3 * x) + 1e3 * x * np.cos(1e3 * x), 1e3),
    "square": (np.square, lambda x: 2 * x, 1e8),
    "three_halves": (lambda x: np.abs(x) ** 1.5, lambda x: 1.5 * np.sign(x) * np.sqrt(np.abs(x)), 1e8),
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, 1e8),
    "abs": (np.abs, np.sign, 1e8),
    "offset": (lambda x: 1e6 + np.sin(x), np.cos, 1e4),
    "softplus": (lambda x: np.logaddexp(x, 0), special.expit, 20.0),
}


def points(name: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, *map(ord, name)])
    x = 10 ** rng.uniform(-8, 8, 8) * rng.choice([-1.0, 1.0], 8)
    largest = FAMILIES[name][2]
    return np.where(np.abs(x) > largest, rng.uniform(-1, 1, 8) * largest, x)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FAMILIES)
def test_right_and_wrong_from_1e_minus_8_to_1e8(name: str, seed: int) -> None:
    f, derivative, _ = FAMILIES[name]
    x = points(name, seed)
    slopes = derivative(x)
    J = np.diag(slopes)
    right = check_flat(f, x, J, seed)
    assert right.verdict == "ok", right
    leg = right.legs[0]
    assert np.all(np.abs(leg.numeric - J) <= leg.bar + 1e-11 * np.abs(J))
    for factor in (1.01, 1.001, 1.0001, 1.000001):
        assert check_flat(f, x, factor * J, seed).verdict == "mismatch", factor
    for k in (int(np.argmax(np.abs(slopes))), int(np.argmin(np.abs(x)))):
        plant(f, x, J, k, seed)


def plant(f: Any, x: np.ndarray, J: np.ndarray, k: int, seed: int) -> None:
    for wrong in (-J[k, k], 0.0, 1.001 * J[k, k], 1.0001 * J[k, k]):
        planted = J.copy()
        planted[k, k] = wrong
        if planted[k, k] == J[k, k]:  # relu left of 0
            continue
        report = check_flat(f, x, planted, seed)
        assert report.verdict == "mismatch"
        assert (report.worst[0].output, report.worst[0].input) == (f"output[{k}]", f"inputs[0][{k}]")


def softmax(X: np.ndarray) -> np.ndarray:
    return special.softmax(X, axis=1)


@pytest.mark.parametrize("scale", [1e-2, 0.3, 3.0, 30.0])
def test_a_coupled_function(scale: float) -> None:
    x = scale * np.random.default_rng(5).normal(size=12)
    s = softmax(x[None])[0]
    J = np.diag(s) - np.outer(s, s)
    assert check_flat(softmax, x, J).verdict == "ok"
    row = int(np.argmax(s))
    for column in np.flatnonzero(np.abs(J[row]) > 1e-9 * np.abs(J[row]).max()):
        for factor in (-1.0, 0.0, 1.001):
            planted = J.copy()
            planted[row, column] *= factor
            assert check_flat(softmax, x, planted).verdict == "mismatch", (column, factor)


@pytest.mark.parametrize("noise", [1e-13, 1e-11, 1e-9, 1e-7])
def test_noise_is_no_error(noise: float) -> None:
    def f(X: np.ndarray) -> np.ndarray:
        jitter = np.sin(7.1e8 * X.sum(axis=1)) * 43758.5453
        return ((X**2).sum(axis=1) + noise * (2 * (jitter - np.floor(jitter)) - 1))[:, None]

    x = np.array([0.3, -1.2, 0.8])
    assert check_flat(f, x, [2 * x]).verdict == "ok"
    assert check_flat(f, x, [2.02 * x]).verdict == "mismatch"


@pytest.mark.parametrize("distance", [1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_kink_beside_the_point(distance: float, side: float, seed: int) -> None:
    x = np.array([side * distance, 0.7])
    for f, slopes in ((np.abs, np.sign(x)), (lambda X: np.maximum(X, 0), (x > 0) * 1.0)):
        assert check_flat(f, x, np.diag(slopes), seed).verdict != "mismatch"
        assert check_flat(f, x, np.diag(slopes + 0.5), seed).verdict not in ("ok", "nondifferentiable")


@pytest.mark.parametrize(
    ("f", "legal", "illegal"),
    [
        (lambda X: np.maximum(X, 0), (0.0, 0.5, 1.0), (2.0, -0.1, np.nan)),
        (np.abs, (0.0, 1.0, -1.0), (1.5, np.nan)),
        (lambda X: np.clip(X, 0, 1), (0.0, 1.0), (1.1, -0.5)),
        (np.floor, (0.0,), (np.nan,)),
    ],
)
def test_at_a_kink(f: object, legal: tuple[float, ...], illegal: tuple[float, ...]) -> None:
    for a in legal:
        assert check_flat(f, np.zeros(1), [[a]]).verdict == "nondifferentiable", a  # type: ignore[arg-type]
    for a in illegal:
        assert check_flat(f, np.zeros(1), [[a]]).verdict == "mismatch", a  # type: ignore[arg-type]


@pytest.mark.parametrize(("a", "verdict"), [((0.5, 0.5), "nondifferentiable"), ((1, 0), "nondifferentiable")])
def test_legal_choices_at_a_tie(a: tuple[float, float], verdict: str) -> None:
    assert check_flat(lambda X: X.max(axis=1, keepdims=True), np.ones(2), [a]).verdict == verdict


@pytest.mark.parametrize("a", [(1, 1), (1.2, 0), (0, 0), (2, -1)])
def test_no_gradients_at_a_tie(a: tuple[float, float]) -> None:
    assert check_flat(lambda X: X.max(axis=1, keepdims=True), np.ones(2), [a]).verdict == "mismatch"


def test_legal_choices_of_sums_of_kinks() -> None:
    """relu(x) - relu(y) at 0: the rules of a framework choose 0 for both, which no directional slope is."""
    f = lambda X: (np.maximum(X[:, 0], 0) - np.maximum(X[:, 1], 0))[:, None]
    for a in ((0.0, 0.0), (1.0, -1.0), (0.5, -0.5), (1.0, 0.0)):
        assert check_flat(f, np.zeros(2), [a]).verdict == "nondifferentiable", a


@pytest.mark.parametrize("x", [1e-9, 1e-12])
def test_at_the_edge_of_a_domain(x: float) -> None:
    at = np.array([x, 2.0])
    assert check_flat(np.log, at, np.diag(1 / at)).verdict == "ok"
    assert check_flat(np.log, at, np.diag(1.01 / at)).verdict == "mismatch"
    assert check_flat(lambda X: X**1.5, np.array([0.0, 2.0]), np.diag([0.0, 1.5 * 2**0.5])).verdict != "mismatch"


def test_many_wrong_directions_are_not_all_followed_up() -> None:
    x = np.linspace(0.1, 1, 600)
    report = check_flat(lambda X: np.sin(X).sum(axis=1, keepdims=True), x, [2 * np.cos(x)])
    assert report.verdict == "mismatch"
    assert report.evaluations < 40_000


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(0, 10_000),
    st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]),
)
def test_bars_cover_the_truth_on_random_functions(n: int, m: int, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    A, B, x = rng.normal(size=(m, n)), rng.normal(size=(m, n)), scale * rng.normal(size=n)
    A, B = A / scale, B / scale
    J = np.cos(A @ x)[:, None] * A + 2 * (B @ x)[:, None] * B
    report = check_flat(lambda X: np.sin(X @ A.T) + (X @ B.T) ** 2, x, J, seed)
    assert report.verdict == "ok", report
    leg = report.legs[0]
    assert np.all(np.abs(leg.numeric - J) <= leg.bar + 1e-11 * np.abs(J).max())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(-40, 40))
def test_verdicts_do_not_depend_on_the_unit_of_f(seed: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    x, unit = rng.normal(size=4), 2.0**exponent
    for factor, verdict in ((1.0, "ok"), (1.001, "mismatch")):
        report = check_flat(lambda X: unit * np.sin(X), x, factor * unit * np.diag(np.cos(x)), seed)
        assert report.verdict == verdict

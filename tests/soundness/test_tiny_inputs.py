"""Inputs that are tiny beside others, and points a step away from which the function is infinite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from multigrad import check_grad

STEEP = [1e9, 1e10, 1e11, 1e12, 1e13]
WRONG = [-1.0, 1e3, 1.001]


def say(fn: Callable[..., Any], inputs: Any, jac: Callable[..., Any]) -> str:
    return str(check_grad(fn, inputs, "numpy", jac=jac, raise_exception=False).verdict)


def tanh(a: float, b: float, steep: float) -> Any:
    return np.tanh(a * steep) + np.tanh(b)


def d_tanh(a: float, b: float, steep: float, factor: float) -> tuple[Any, Any]:
    return steep * (1 - np.tanh(a * steep) ** 2), factor * (1 - np.tanh(b) ** 2)


@pytest.mark.parametrize("steep", STEEP)
@pytest.mark.parametrize("factor", [1.0, *WRONG])
def test_a_tiny_input_hides_no_error_in_another(steep: float, factor: float) -> None:
    verdict = say(lambda a, b: tanh(a, b, steep), (0.7 / steep, 0.3), lambda a, b: d_tanh(a, b, steep, factor))
    assert verdict == ("ok" if factor == 1 else "mismatch")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("factor", [1.0, *WRONG])
def test_inputs_of_all_magnitudes(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-12, 9, 5)
    x, M = rng.normal(size=5) * size, rng.normal(size=(3, 5)) / size

    def jac(x: Any) -> Any:
        J = (1 - np.tanh(M @ x) ** 2)[:, None] * M
        largest = np.argmax(np.abs(J * x))
        J.flat[largest] *= factor
        return J

    assert say(lambda x: np.tanh(M @ x), x, jac) == ("ok" if factor == 1 else "mismatch")


def barrier(x: Any) -> Any:
    return np.inf if np.sum(x) >= 1 else -np.log(1 - np.sum(x))


def entropy(x: Any) -> Any:
    return np.where(x > 0, -x * np.log(np.where(x > 0, x, 1.0)), -np.inf)


@pytest.mark.parametrize("factor", [1.0, *WRONG])
def test_infinite_a_step_away(factor: float) -> None:
    right = factor == 1
    expected = "ok" if right else "mismatch"
    assert say(barrier, np.array([0.5, 0.499999]), lambda x: np.full(2, factor / (1 - x.sum()))) == expected
    assert say(entropy, np.array(1e-6), lambda x: factor * (-np.log(x) - 1)) == expected


def test_infinite_a_step_away_has_a_sharpness() -> None:
    report = check_grad(barrier, np.array([0.5, 0.499999]), "numpy", jac=lambda x: np.full(2, 1 / (1 - x.sum())))
    assert all(np.isfinite(block.bar).all() for block in report.blocks)

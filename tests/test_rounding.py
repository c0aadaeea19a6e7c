"""Entries that the rounding of f leaves half seen, and functions that round on purpose."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.flat import check_flat


def hidden(slope):
    """A value of about 1 that moves by ``slope``, and bends too much for long steps; beside it one that is easy."""
    return lambda X: np.concatenate([1 + slope * np.sin(300 * X) / 300, 2 * X], axis=1)


@pytest.mark.parametrize("slope", [1e-12, 3e-12, 1e-11, 3e-11, 1e-10, 1e-9, 1e-6])
@pytest.mark.parametrize("seed", range(4))
def test_slopes_near_the_rounding_of_the_value(slope, seed):
    f = hidden(slope)
    right = check_flat(f, np.array([0.0]), [[slope], [2.0]], seed).verdict
    assert right == "ok" if slope >= 1e-9 else right in ("ok", "inconclusive")
    if slope >= 1e-11:
        for wrong in (0.0, -slope, 2 * slope):
            assert check_flat(f, np.array([0.0]), [[wrong], [2.0]], seed).verdict == "mismatch"
    if slope >= 1e-9:
        assert check_flat(f, np.array([0.0]), [[1.01 * slope], [2.0]], seed).verdict == "mismatch"


@pytest.mark.parametrize("far", [-8.2, -7.3, -6.6, -6.0, -5.5])
@pytest.mark.parametrize("seed", range(8))
def test_outputs_that_are_multiples_of_the_rounding_of_others(far, seed):
    """(1 + erf(x)) / 2 far to the left is made of a few roundings of 1; a line may meet one at each of its points."""
    x = np.array([far, -1.0, 0.5])
    slope = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)

    def f(X):
        return (1 + np.vectorize(math.erf)(X / math.sqrt(2))) / 2

    assert check_flat(f, x, np.diag(slope), seed).verdict in (("ok",) if far > -7 else ("ok", "inconclusive"))
    if far > -7:
        assert check_flat(f, x, np.diag(slope * [1.01, 1, 1]), seed).verdict == "mismatch"


@pytest.mark.parametrize("quantum", [1e-3, 1e-2, 0.5])
def test_functions_that_round_on_purpose(quantum):
    """Their gradient is 0, or that of a straight-through rule: neither is called wrong."""

    def f(X):
        return quantum * np.round(X / quantum)

    for x in np.concatenate([np.linspace(1.0, 1.0 + quantum, 23), 1 + quantum * (0.5 + np.array([1e-9, 1e-6, -1e-4]))]):
        assert check_flat(f, np.array([x]), [[0.0]]).verdict != "mismatch", x


@pytest.mark.parametrize("distance", [1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.5])
@pytest.mark.parametrize("size", [1.0, 1e-6])
def test_one_step_or_a_dead_zone_is_no_staircase(distance, size):
    """Their gradient is 0 on the left, however near the end of it is, unless the rounding of 3 hides all that f may do."""
    for f in (lambda X: 3 + size * (X > 1), lambda X: 3 + size * np.maximum(X - 1, 0)):
        hidden = size * distance < 4e-12
        verdicts = ("ok", "nondifferentiable", "inconclusive") if hidden else ("ok", "nondifferentiable")
        assert check_flat(f, np.array([1 - distance]), [[0.0]]).verdict in verdicts


@pytest.mark.parametrize("x", np.linspace(1.0, 1.001, 7))
def test_the_rounding_of_float32_is_not_taken_for_a_purpose(x):
    def f(X):
        return np.sin(X).astype(np.float32).astype(float)

    assert check_flat(f, np.array([x]), [[0.0]]).verdict in ("mismatch", "inconclusive")
    assert check_flat(f, np.array([x]), [[np.cos(x)]]).verdict in ("ok", "inconclusive")

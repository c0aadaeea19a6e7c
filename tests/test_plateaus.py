"""Plateaus and readings: functions that do not change over small steps, and noise that is none."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad._differences.directions import Directions, unit_vectors
from multigrad._differences.ladder import long_ladder, points, samples
from multigrad._differences.plateaus import FARTHEST, flat_steps, is_staircase, windows
from multigrad._run import Settings, run_check
from tests.flat import Flat, check_flat

EPS = 2.0**-52
ONE = Directions(1, np.array([0, 1]), np.array([0]), np.array([1.0]))


def flat(f, x):
    point = np.array([x])
    exponents = long_ladder(EPS, point)
    X, up, down = points(point, unit_vectors(point, np.random.default_rng(0)), exponents)
    return flat_steps(samples(f(X), up, down, exponents), f(point[None])[0])[0, 0]


def test_how_far_a_function_stands_still():
    assert flat(lambda X: np.maximum(X, 0), 0.3) == 0
    assert flat(lambda X: np.maximum(X - 0.31, 0), 0.3) in (2.0**-8, 2.0**-10)
    assert flat(lambda X: np.ones_like(X), 0.3) == 4
    assert flat(lambda X: np.round(1e6 * X) / 1e6, 0.3) < 1e-6


@pytest.mark.parametrize("quantum", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("place", [0.02, 0.3, 0.5, 0.97])
def test_staircases_and_dead_zones(quantum, place):
    """Wherever on its plateau x is."""
    x = np.array([0.37 + (place - 0.5) * quantum])
    stairs = lambda X: np.round((X - 0.37) / quantum) * quantum
    step = min(place, 1 - place) * quantum / 2
    assert is_staircase(stairs(windows(x, ONE, step, FARTHEST, 4.0)), stairs(x[None])[0])[0]
    ramp = lambda X: np.maximum(X - x - step, 0)
    assert not is_staircase(ramp(windows(x, ONE, step, FARTHEST, 4.0)), ramp(x[None])[0])[0]


@pytest.mark.parametrize("d", [1e-13, 1e-12, 1e-9, 1e-4])
def test_a_dead_zone_has_a_derivative_of_0(d):
    """Other inputs at a distance of the noise lines' reach must not make noise of the corner."""
    f = lambda X: np.maximum(X - 0.5, 0)
    x = np.array([0.5 - d, 0.9, 0.1])
    J = np.diag([0.0, 1.0, 0.0])
    assert check_flat(f, x, J)
    J[0, 0] = 0.5
    assert check_flat(f, x, J).verdict != "ok"


def test_quantised_and_far_down():
    """The normal distribution function as (1 + erf) / 2 consists of multiples of 2**-54 at -8: its slope is hidden."""
    from scipy.special import erf

    x = np.array([-8.0, 0.3])
    J = np.diag(np.exp(-x * x / 2) / np.sqrt(2 * np.pi))
    assert check_flat(lambda X: (1 + erf(X / np.sqrt(2))) / 2, x, J).verdict != "mismatch"


@pytest.mark.parametrize("x", [1e-25, 1e-12, 3e-9])
@pytest.mark.parametrize("f", [lambda X: 1 / X, lambda X: np.sqrt(np.abs(X)), lambda X: np.log(np.abs(X))])
def test_a_pole_beside_x_is_no_noise(f, x):
    """Lines that cross the pole measure its height; steps that do not, tell the slope."""
    x = np.array([x, 0.7])
    J = np.diag((f(x * (1 + 1e-7)) - f(x * (1 - 1e-7))) / (2e-7 * x))
    for factor in (1, 1 + 1e-2, 0, -1):
        wrong = J.copy()
        wrong[0, 0] *= factor
        verdict = check_flat(f, x, wrong + 0.0).verdict
        assert verdict != ("mismatch" if factor == 1 else "ok"), factor


@pytest.mark.parametrize("beside", [0.0, 1e-3, 0.5, 1.0, 7.0])
@pytest.mark.parametrize(
    "f",
    [
        lambda X: np.maximum(X, 0) ** 2,
        lambda X: X * np.abs(X),
        lambda X: np.where(X > 0, X**2, X**2 / 2),
        lambda X: np.abs(X) ** 1.5,
    ],
    ids=["relu squared", "x abs(x)", "two parabolas", "power 3/2"],
)
def test_the_rounding_of_double_is_no_staircase(f, beside):
    """Where the curvature jumps, small steps have to tell a slope of 0, and change a value of 1 by single ulps."""
    x = np.array([0.0, 0.3])
    g = lambda X: f(X[:, :1]) + beside * np.exp(X[:, 1:])
    J = np.array([[0.0, beside * np.exp(0.3)]])
    assert check_flat(g, x, J).verdict == "ok"
    J[0, 0] = 1e-3
    assert check_flat(g, x, J).verdict == "mismatch"


@pytest.mark.parametrize("x", [2.1, 2.4, 2.689726501093, 3.061, 3.3, 4.1])
@pytest.mark.parametrize("error", [1e-5, 1e-2, 0.1])
def test_poles_are_no_staircase_on_a_slope(x, error):
    """Between its poles the gamma function hardly moves, beside what it does at them and what it grows to."""
    from scipy.special import digamma, gamma

    slope = gamma(x) * digamma(x)
    assert check_flat(gamma, np.array([x]), [[slope]]).verdict == "ok"
    assert check_flat(gamma, np.array([x]), [[slope * (1 + error)]]).verdict == "mismatch"


def test_long_points_are_not_looked_at_beyond_their_plateau(monkeypatch):
    """A look takes two thousand of them, which would be gigabytes."""
    f = lambda X: np.round((X - 0.37) * 1e7) / 1e7
    looked = check_flat(f, np.array([0.5]), np.zeros((1, 1))).evaluations
    monkeypatch.setattr("multigrad._comparison.staircases.LONGEST", 0)
    assert check_flat(f, np.array([0.5]), np.zeros((1, 1))).evaluations < looked


def rounded(f, dtype):
    return lambda X: f(X.astype(dtype)).astype(dtype).astype(np.float64)


@pytest.mark.parametrize("offset", [300.0, 1e3, 3e4, 1e5])
@pytest.mark.parametrize("x", [0.3, -0.7, 2.0])
def test_values_rounded_to_float32_hide_slopes_and_not_those_that_are_twice_as_large(offset, x):
    """Of a large value the slope shows on steps alone at which it is no longer straight."""
    f = rounded(lambda X: np.asarray(offset, X.dtype) + np.sin(X), np.float32)
    J = np.array([[np.cos(x)]])
    assert check_flat(f, np.array([x]), J).verdict in ("ok", "inconclusive")
    for wrong in (2 * J, -J, 0.3 * J):
        verdicts = ("mismatch",) if offset <= 1e3 else ("mismatch", "inconclusive")
        assert check_flat(f, np.array([x]), wrong).verdict in verdicts


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("seed", range(4))
def test_a_derivative_that_is_rounded_as_the_values_are(dtype, seed):
    """A backward pass in low precision is linear but for its rounding."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=6)
    f = rounded(lambda X: np.asarray(4, X.dtype) + np.sin(X), dtype)

    class Written(Flat):
        written = float(np.finfo(dtype).eps)

        def vjp(self, U):
            return (U.astype(dtype) * np.cos(x).astype(dtype) * dtype(self.J[0, 0])).astype(np.float64)

    for factor, verdicts in ((1.0, ("ok", "inconclusive")), (2.0, ("mismatch",))):
        flat = Written(f, x, np.full((6, 6), factor))
        assert run_check(flat, Settings(modes=("reverse",), seed=seed)).verdict in verdicts


@pytest.mark.parametrize("x", [640.3, 1500.8])
def test_a_function_of_double_that_rounds_to_integers_means_it(x):
    """Large integers are as close together as numbers of float16 are."""
    assert check_flat(np.floor, np.array([x]), np.ones((1, 1))).verdict == "mismatch"
    assert check_flat(np.floor, np.array([x]), np.zeros((1, 1))).verdict == "ok"

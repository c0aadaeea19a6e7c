"""The fit: what no single step resolves, many do together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigrad._differences.directions import unit_vectors
from multigrad._differences.fit import REACHES, STEPS, exponents, fit
from multigrad._differences.ladder import points

EPS = 2.0**-52


def fitted(f, x, seed=0, limit=np.inf):
    rng = np.random.default_rng(seed)
    point = np.array([x])
    units = unit_vectors(point, rng)
    at = exponents(rng, 4.0)
    X, up, down = points(point, units, at)
    best = fit(f(X), up, down, at, EPS, np.array([[limit]]))
    return best.value[0, 0] / units.weights[0], best.bar[0, 0] / units.weights[0]


@given(st.integers(0, 10**6), st.floats(13, 26))
def test_a_slope_far_below_the_rounding_of_the_values(seed, x):
    value, bar = fitted(lambda X: 1 / (1 + np.exp(-X)), x, seed)
    true = np.exp(-x) / (1 + np.exp(-x)) ** 2
    assert abs(value - true) <= bar < 1e-14


@given(st.integers(0, 10**6), st.floats(-3, 3))
def test_smooth_functions(seed, x):
    value, bar = fitted(np.sin, x, seed)
    assert abs(value - np.cos(x)) <= bar < 1e-12


def test_noise_widens_the_bar():
    rng = np.random.default_rng(0)
    noisy = lambda X: np.sin(X) + 1e-6 * rng.uniform(-1, 1, X.shape)
    value, bar = fitted(noisy, 0.3)
    assert abs(value - np.cos(0.3)) <= bar
    assert 1e-7 < bar < 1e-4


@pytest.mark.parametrize("limit", [0.3, 1e-2])
def test_steps_beyond_the_limit_are_not_used(limit):
    wall = lambda X: np.where(np.abs(X) < 0.7 * limit, np.sin(X), np.nan)
    value, bar = fitted(wall, 0.0, limit=limit)
    assert abs(value - 1) <= bar if limit > 2.0 ** min(REACHES) else np.isinf(bar)


def test_values_that_are_not_finite_give_no_bar():
    assert np.isinf(fitted(lambda X: X * np.nan, 1.0)[1])


def test_steps_crowd_towards_the_longest_and_are_no_powers_of_two():
    at = exponents(np.random.default_rng(0), 4.0).reshape(len(REACHES), STEPS)
    assert (at.max(axis=1) <= np.array(REACHES)).all() and (at.max(axis=1) > np.array(REACHES) - 0.1).all()
    assert (np.median(2.0**at, axis=1) > 0.6 * 2.0 ** np.array(REACHES)).all()
    assert (at % 1 != 0).all()

"""Noise: what is measured is what was put in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigrad._differences.directions import scale_of
from multigrad._differences.noise import Noise, lines, measure, offset
from tests.shapes import white_noise

EPS = 2.0**-52


def measured(f, x, seed=0):
    x = np.asarray(x, float)
    return measure(f(lines(x, scale_of(x), EPS, np.random.default_rng(seed))), EPS)


@given(st.integers(0, 1000), st.sampled_from([1e-13, 1e-10, 1e-7, 1e-4]), st.sampled_from([1, 3, 20]))
def test_noise_is_measured_within_a_factor(seed, size, n):
    x = np.random.default_rng(seed).normal(size=n)
    noise = measured(lambda X: np.sin(X).sum(axis=1, keepdims=True) + white_noise(X, size), x, seed)
    uniform = size / np.sqrt(3)
    assert 0.25 * uniform < noise.sigma[0] < 4 * uniform


@pytest.mark.parametrize("f", [np.sin, np.exp, lambda X: X**3, lambda X: 1e6 + X, np.tanh])
def test_smooth_functions_have_no_more_than_rounding(f):
    assert (measured(f, [0.3, -1.2]).relative < 8 * EPS).all()


def test_a_constant_has_none():
    assert measured(lambda X: np.ones_like(X), [1.0]).sigma == 0


def test_values_that_are_not_finite_are_left_out():
    noise = measured(lambda X: np.where(X > 1, np.nan, X), [1.0])
    assert np.isfinite(noise.sigma).all() and np.isfinite(noise.level).all()


def test_noise_grows_with_the_values():
    noise = Noise(sigma=np.array([1e-10]), level=np.array([1.0]))
    assert noise.of(np.array([0.1]), EPS) == 4e-10
    assert noise.of(np.array([10.0]), EPS) == pytest.approx(4e-9)
    assert noise.of(np.array([1e9]), EPS) >= 2**-52 * 1e9


def test_rows_of_a_batch_are_rounded_in_another_way_than_one_alone():
    x = np.array([0.3, 2.0])
    points = lines(x, scale_of(x), EPS, np.random.default_rng(0))
    assert offset(np.sin(points), np.sin(x) + np.array([0.0, 2.0**-50])).tolist() == [0.0, 2.0**-50]

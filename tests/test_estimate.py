"""Estimates: the bar covers the error, and is not wide without reason."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from multigrad._differences.directions import scale_of, unit_vectors
from multigrad._differences.estimate import ONE_SIDED, estimate, extrapolate, quotients, tail_noise
from multigrad._differences.ladder import long_ladder, points, samples, short_ladder
from multigrad._differences.noise import lines, measure
from tests.shapes import white_noise

EPS = 2.0**-52


def sampled(f, x, ladder=long_ladder, seed=0):
    x = np.array([x])
    units = unit_vectors(x, np.random.default_rng(seed))
    exponents = ladder(EPS, x) if ladder is long_ladder else ladder(EPS)
    X, up, down = points(x, units, exponents)
    return samples(f(X), up, down, exponents), f(x[None])[0], units.weights[0]


def derivative(f, x, ladder=long_ladder, seed=0, every=False):
    """The estimate and its bar: of the first output, or of ``every`` one."""
    rungs, here, weight = sampled(f, x, ladder, seed)
    point = np.array([x])
    with np.errstate(all="ignore"):
        noise = measure(f(lines(point, scale_of(point), EPS, np.random.default_rng(seed))), EPS)
        q = quotients(rungs, here, noise, EPS)
        best = estimate(q.central, q.central_noise, rungs.ratio)
    outputs = ... if every else 0
    return best.value[0, outputs] / weight, best.bar[0, outputs] / weight


def random_sum(seed):
    """A smooth function, its derivative, the point, the size of what is added up: waves, an exponential, a cubic."""
    rng = np.random.default_rng(seed)
    a, k, p = rng.normal(size=3), 10.0 ** rng.uniform(-1, 2), rng.uniform(0, 6)
    x = float(rng.normal() * 10.0 ** rng.uniform(-6, 2))
    rate = min(1.0, 20 / abs(x))
    size = abs(a[0]) * (1 + k) + abs(a[1]) * np.exp(rate * x) + abs(a[2] * x**2) * (1 + abs(x))
    return (
        lambda X: a[0] * np.sin(k * X + p) + a[1] * np.exp(rate * X) + a[2] * X**3,
        a[0] * k * np.cos(k * x + p) + a[1] * rate * np.exp(rate * x) + 3 * a[2] * x * x,
        x,
        size,
    )


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_bar_covers_the_error(seed):
    f, true, x, _ = random_sum(seed)
    value, bar = derivative(f, x, long_ladder, seed)
    assert abs(value - true) <= bar + 1e-13 * abs(true)


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_what_the_short_ladder_accepts_is_covered(seed):
    f, true, x, _ = random_sum(seed)
    value, bar = derivative(f, x, short_ladder, seed)
    assume(bar <= 1e-6 * abs(value))
    assert abs(value - true) <= 2 * bar + 1e-13 * abs(true)


def test_bars_are_narrow():
    wide = 0
    for seed in range(100):
        f, _, x, size = random_sum(seed)
        _, bar = derivative(f, x, seed=seed)
        wide += bar > 1e-8 * size
    assert wide <= 2


def test_large_steps_that_agree_by_accident_are_contradicted():
    value, bar = derivative(lambda X: np.maximum(X - 1e-7, 0), 0.0)
    assert abs(value) <= bar < 1e-3  # all steps above 1e-6 say 1/2


@pytest.mark.parametrize("seed", range(5))
def test_two_steps_that_agree_by_accident_while_rounding_hides_the_next_are_not_enough(seed):
    """Of 20000 tiny waves beside a 1 some have two quotients alike where the error of both is about to change its sign."""
    rng, m = np.random.default_rng(seed), 20000
    size, rate, phase = 10 ** rng.uniform(-12, -6, m), 10 ** rng.uniform(-1, 1, m), rng.uniform(0, 6, m)

    def f(X):
        return 1 + size * np.sin(rate * X + phase)

    value, bar = derivative(f, 0.7, seed=seed, every=True)
    error = np.abs(value - size * rate * np.cos(rate * 0.7 + phase))
    assert (error <= 2 * bar).all()
    assert np.count_nonzero(error > bar) <= 2


def test_a_rung_outside_of_the_domain_contradicts_nothing():
    with np.errstate(invalid="ignore"):
        value, bar = derivative(np.log, 1e-3)
    assert abs(value - 1e3) <= bar < 1e-5


@given(st.floats(-10, 10), st.floats(-10, 10), st.floats(-10, 10))
def test_extrapolation_is_exact_where_one_term_is_in_error(limit, term, size):
    h = 4.0 ** -np.arange(5.0)
    column = (limit + term * h**2)[:, None, None]
    once, _ = extrapolate(column, np.zeros_like(column), 16.0)
    np.testing.assert_allclose(once, np.full_like(once, limit), atol=1e-12)


def test_one_sided_quotients():
    h = 4.0 ** -np.arange(8.0)
    best = estimate((3 + 2 * h)[:, None, None], np.full((8, 1, 1), 1e-12), 4.0, ONE_SIDED)
    assert abs(best.value[0, 0] - 3) <= best.bar[0, 0] < 1e-10


def test_the_least_bar_is_minded():
    h = 4.0 ** -np.arange(8.0)
    least = np.full((8, 1, 1), 0.25)
    best = estimate(np.full((8, 1, 1), 3.0) + h[:, None, None] ** 2, np.full((8, 1, 1), 1e-12), 4.0, least=least)
    assert best.bar[0, 0] == 0.25


@pytest.mark.parametrize("size", [1e-12, 1e-8, 1e-4])
def test_noise_of_the_smallest_steps(size):
    rungs, _, _ = sampled(lambda X: np.sin(X) + white_noise(X, size), 0.4)
    assert 0.1 * size < tail_noise(rungs)[0, 0] < 4 * size


@pytest.mark.parametrize("f", [np.sin, lambda X: np.where(X > 0.4, X + 1, X)], ids=["smooth", "jump at x"])
def test_there_is_none_in_smooth_functions_and_across_a_jump(f):
    rungs, _, _ = sampled(f, 0.4)
    assert tail_noise(rungs)[0, 0] < 4 * EPS


def test_fewer_rungs_do_not_reach_a_kink_beside_x():
    rungs, _, _ = sampled(lambda X: np.maximum(X - 1, 0), 1 + 3e-11)
    assert tail_noise(rungs, rungs=5, powers=(0, 1))[0, 0] < 1e-14 < tail_noise(rungs)[0, 0]

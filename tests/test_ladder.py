"""The ladder: the steps that are divided by are those that were taken."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigrad._differences.directions import unit_vectors
from multigrad._differences.ladder import long_ladder, points, samples, short_ladder, zeros_ladder

DOUBLE, SINGLE, BFLOAT16 = 2.0**-52, 2.0**-23, 2.0**-7


@given(st.floats(-1e8, 1e8), st.integers(0, 1000))
def test_steps_taken_are_exact_or_lost(x, seed):
    point = np.array([x])
    units = unit_vectors(point, np.random.default_rng(seed))
    exponents = long_ladder(DOUBLE, point)
    X, up, down = points(point, units, exponents)
    plus, minus = X.reshape(2, -1)
    weight = Fraction(float(units.weights[0]))
    for k in range(len(exponents)):
        for end, step in ((plus[k], up[k, 0, 0]), (minus[k], down[k, 0, 0])):
            taken = abs(Fraction(float(end)) - Fraction(x)) / weight
            if np.isnan(step):
                assert abs(float(taken) / 2.0 ** exponents[k] - 1) > 0.019
            else:
                assert float(taken) == pytest.approx(step, rel=1e-14)


@pytest.mark.parametrize("eps", [DOUBLE, SINGLE, BFLOAT16])
def test_rungs(eps):
    for ladder in (short_ladder(eps), long_ladder(eps, np.ones(1)), zeros_ladder(eps)):
        assert (np.diff(ladder) == np.diff(ladder)[0]).all() and np.diff(ladder)[0] < 0
    assert long_ladder(eps, np.ones(1))[-1] > np.log2(eps)
    assert long_ladder(eps, np.zeros(1))[-1] > zeros_ladder(eps)[-1]


@pytest.mark.parametrize("x", [1e-12, 1e-100, 1e-300])
def test_tiny_inputs_have_rungs_below_them(x):
    assert 2.0 ** long_ladder(DOUBLE, np.array([1.0, x]))[-1] < 1e-5 * x


def test_values_are_arranged_by_side_rung_and_direction():
    x = np.array([1.0, -2.0])
    units = unit_vectors(x, np.random.default_rng(0))
    exponents = short_ladder(DOUBLE)
    X, up, down = points(x, units, exponents)
    sampled = samples(X, up, down, exponents)
    assert sampled.plus.shape == (3, 2, 2) and sampled.ratio == 8
    for direction in range(2):
        moved = sampled.plus[:, direction] - x
        np.testing.assert_allclose(moved[:, direction], 2.0**exponents * units.weights[direction], rtol=1e-12)
        assert (moved[:, 1 - direction] == 0).all()
    np.testing.assert_allclose(sampled.plus + sampled.minus, np.broadcast_to(2 * x, (3, 2, 2)))

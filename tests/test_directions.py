"""Directions: sparse vectors behave as the dense ones that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigrad._differences.directions import Directions, scale_of, signed, unit_vectors

seeds = st.integers(0, 2**32 - 1)


def groups(rng: np.random.Generator) -> Directions:
    """The inputs dealt out to a few directions, each in one of them."""
    n = int(rng.integers(1, 12))
    owner = np.sort(rng.integers(0, rng.integers(1, n + 1), n))
    starts = np.concatenate([[0], np.flatnonzero(np.diff(owner)) + 1, [n]])
    return Directions(n, starts, rng.permutation(n), rng.uniform(0.5, 1.0, n))


@given(seeds)
def test_products_equal_those_of_dense_vectors(seed):
    rng = np.random.default_rng(seed)
    directions = groups(rng)
    J = rng.normal(size=(3, directions.n))
    np.testing.assert_allclose(directions.times(J), directions.dense() @ J.T, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(directions.lengths[:, 0], np.linalg.norm(directions.dense(), axis=1), rtol=1e-13)


@given(seeds)
def test_some_of_the_directions(seed):
    rng = np.random.default_rng(seed)
    directions = groups(rng)
    chosen = rng.integers(0, len(directions), 3)
    np.testing.assert_array_equal(directions.take(chosen).dense(), directions.dense()[chosen])
    np.testing.assert_array_equal(directions.take(slice(0, 1)).dense(), directions.dense()[:1])


def test_lengths_of_inputs_whose_squares_overflow():
    directions = Directions(3, np.array([0, 3, 6]), np.tile(np.arange(3), 2), 1e200 * np.array([3.0, -1, 2, 5, 4, -7]))
    assert np.isfinite(directions.lengths).all()
    assert (directions.lengths >= np.abs(directions.dense()).max(axis=1, keepdims=True)).all()


@pytest.mark.parametrize(("x", "scale"), [(0.0, 1), (0.3, 1), (-1.0, 1), (1.5, 2), (-1000.0, 1024), (np.inf, 1)])
def test_scale(x, scale):
    assert scale_of(np.array([x])) == scale


@given(seeds)
def test_unit_vectors_move_one_input_by_about_its_scale(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=5) * 10.0 ** rng.integers(-5, 5, 5)
    units = unit_vectors(x, rng)
    assert np.count_nonzero(units.dense()) == 5
    assert ((units.weights >= 0.7 * scale_of(x)) & (units.weights <= scale_of(x))).all()
    # A power of two would alias with periodic functions.
    assert (np.log2(units.weights) % 1 != 0).all()


def test_no_weight_is_small():
    drawn = signed(np.random.default_rng(0), 0.5, 1.0, (1000,))
    assert (np.abs(drawn) >= 0.5).all() and (np.abs(drawn) <= 1).all()
    assert 300 < (drawn > 0).sum() < 700

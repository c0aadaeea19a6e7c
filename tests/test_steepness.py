"""How steep a function is a step away, and what that excuses."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad._differences import ladder
from multigrad._differences.directions import unit_vectors
from multigrad._differences.steepness import Steepness
from multigrad.backends import Array
from tests.flat import check_flat
from tests.test_acceptance import FUNCTIONS, H


@pytest.mark.parametrize("name", ["smooth", "steep", "kinks"])
@pytest.mark.parametrize("turn", [1, -1])
def test_the_largest_is_that_of_all_one_sided_quotients(name: str, turn: int) -> None:
    x = turn * np.array([0.3, 0.7, 0.7])
    X, up, down = ladder.points(x, unit_vectors(x, np.random.default_rng(0)), H)

    def f(X: Array) -> Array:
        return FUNCTIONS[name](turn * X)

    here = f(x[None])[0]
    sampled = ladder.samples(f(X), up, down, H)
    expected = np.abs([(sampled.plus - here) / sampled.up, (sampled.minus - here) / sampled.down]).max(axis=(0, 1, 2))
    found = Steepness.of(sampled, here, np.zeros_like(here))
    np.testing.assert_allclose(found.largest, expected, rtol=1e-12)
    assert (found.curved <= found.largest).all()


@pytest.mark.parametrize(("power", "least", "most"), [(1, 0.6, 1.0), (2, 0.4, 1.0), (8, 0.0, 1e-9)])
def test_the_curvature_at_the_point_bounds_it(power: int, least: float, most: float) -> None:
    """As a multiple of what it is at the largest step."""
    x = np.zeros(1)
    X, up, down = ladder.points(x, unit_vectors(x, np.random.default_rng(0)), H)
    sampled = ladder.samples(X**power, up, down, H)
    found = Steepness.of(sampled, np.zeros(1), np.zeros(1))
    assert least <= found.curved[0] / found.largest[0] <= most


@pytest.mark.parametrize("bug", [1.01, 2.0, -1.0, 0.0])
@pytest.mark.parametrize(
    "barrier", [lambda y: np.exp(1e4 * (y - 3e-3)), lambda y: 1e13 * np.maximum(y - 5e-3, 0.0)], ids=["exp", "relu"]
)
def test_a_barrier_nearby_is_no_excuse(barrier, bug: float) -> None:
    def f(X: Array) -> Array:
        return np.stack([barrier(X[:, 0]) + X[:, 0], X[:, 1] ** 2], axis=1)

    right = np.array([[1.0 + (1e4 * np.exp(-30) if barrier(0.0) else 0.0), 0.0], [0.0, 0.6]])
    assert check_flat(f, np.array([0.0, 0.3]), right).verdict == "ok"
    assert check_flat(f, np.array([0.0, 0.3]), right * [[bug, 1], [1, 1]]).verdict == "mismatch"

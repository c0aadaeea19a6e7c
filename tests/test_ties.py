"""Ties: entries that are legal one by one must be legal together."""

from __future__ import annotations

import numpy as np
import pytest

from tests.flat import check_flat


def column(f):
    return lambda X: f(X)[:, None]


def relu(x):
    return np.maximum(x, 0)


CASES = {
    "max": (column(lambda X: X.max(axis=1)), 2, [[0.5, 0.5], [1, 0], [0.3, 0.7]], [[1, 1], [0, 0], [0.5, 0.4]]),
    "max of 4": (column(lambda X: X.max(axis=1)), 4, [[0.25] * 4, [1, 0, 0, 0]], [[1] * 4, [0] * 4, [1, 1, 0, 0]]),
    "max of 9": (
        column(lambda X: X.max(axis=1)),
        9,
        [[1 / 9] * 9, [1] + [0] * 8, [0.5] * 2 + [0] * 7],
        [[1] * 9, [0] * 9, [2 / 9] * 9],
    ),
    "relu - relu": (
        column(lambda X: relu(X[:, 0]) - relu(X[:, 1])),
        2,
        [[0, 0], [1, -1], [1, 0], [0.5, -0.5]],
        [[1, 1], [2, 0], [-0.1, 0]],
    ),
    "relu(2 relu - relu)": (column(lambda X: relu(2 * relu(X[:, 0]) - relu(X[:, 1]))), 2, [[0, 0], [2, 0]], [[3, 0]]),
    "norm": (column(lambda X: np.linalg.norm(X, axis=1)), 3, [[0] * 3, [0.5, 0.5, 0]], [[1, 1, 1], [1.5, 0, 0]]),
    "sum of abs": (column(lambda X: np.abs(X).sum(axis=1)), 3, [[0] * 3, [1, -1, 0.5]], [[1, 1.5, 0]]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_tied(name, seed, offset):
    f, n, legal, illegal = CASES[name]
    x = np.full(n, offset)
    for a in legal:
        assert check_flat(lambda X: f(X - offset), x, np.array([a], float), seed).verdict == "nondifferentiable", a
    for a in illegal:
        assert check_flat(lambda X: f(X - offset), x, np.array([a], float), seed).verdict == "mismatch", a


def test_a_pool_that_hands_its_gradient_to_all_that_are_equal():
    def pool(X):
        return X.reshape(-1, 4, 9).max(axis=2)

    x, all_of_them = np.zeros(36), np.kron(np.eye(4), np.ones(9))
    assert check_flat(pool, x, all_of_them / 9).verdict == "nondifferentiable"
    report = check_flat(pool, x, all_of_them)
    assert report.verdict == "mismatch"
    assert "nan" not in str(report)


def test_tied_in_sorting():
    f, x = lambda X: np.sort(X, axis=1), np.array([1.0, 1.0, 2.0])
    for order in ([0, 1, 2], [1, 0, 2]):
        assert check_flat(f, x, np.eye(3)[order]).verdict == "nondifferentiable"
    assert check_flat(f, x, np.array([[1.0, 1, 0], [0, 0, 0], [0, 0, 1]])).verdict == "mismatch"


def test_nan_at_the_tip_of_a_cone():
    f = column(lambda X: np.linalg.norm(X, axis=1))
    assert check_flat(f, np.zeros(3), np.full((1, 3), np.nan)).verdict == "nondifferentiable"
    assert check_flat(f, np.ones(3), np.full((1, 3), np.nan)).verdict == "mismatch"


def test_a_unit_of_a_network_at_0():
    rng = np.random.default_rng(4)
    W, V, x = rng.normal(size=(8, 6)), rng.normal(size=(3, 8)), rng.normal(size=6)
    b = rng.normal(size=8)
    b[0] = -(W @ x)[0]
    active = 1.0 * (W @ x + b > 1e-9)
    for choice in (0, 0.5, 1):
        active[0] = choice
        assert check_flat(lambda X: relu(X @ W.T + b) @ V.T, x, (V * active) @ W)
    wrong = (V * active) @ W
    wrong[0, 0] += 5
    assert check_flat(lambda X: relu(X @ W.T + b) @ V.T, x, wrong).verdict == "mismatch"


@pytest.mark.parametrize("seed", range(20, 32))
def test_units_that_are_all_off_in_a_narrow_cone(seed):
    """A layer without a bias at 0: the side on which none of its units is on is a small part of all directions."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(5, 4))
    W *= -np.sign(W @ rng.normal(size=4))[:, None]
    V = rng.normal(size=(1, 5))
    f = lambda X: relu(X @ W.T) @ V.T
    assert check_flat(f, np.zeros(4), np.zeros((1, 4))).verdict in ("nondifferentiable", "inconclusive")
    assert check_flat(f, np.zeros(4), 4 * np.abs(V) @ np.abs(W)).verdict == "mismatch"

"""Values so small or large that their squares are beyond the range of a double."""

from __future__ import annotations

import numpy as np
import pytest

from tests.flat import check_flat

X = np.array([0.7, -0.4])
EXPONENTS = np.array([[3.0, 1.0], [-2.0, 5.0]])


def rounded(X, scale):
    """Sums of exponentials that carry a few hundred roundings each, as a softmax far from its maximum does."""
    z = X[:, None, :] * EXPONENTS + 400.0
    return scale * np.exp(z - 400.0).sum(axis=2)


@pytest.mark.parametrize("scale", [1e-280, 1e-170, 1e-154, 1.0, 1e154, 1e170, 1e280])
@pytest.mark.parametrize("seed", range(3))
def test_noise_is_seen_at_any_size(scale, seed):
    J = scale * EXPONENTS * np.exp(EXPONENTS * X)
    right = check_flat(lambda X: rounded(X, scale), X, J, seed)
    assert right.verdict == "ok"
    (leg,) = right.legs
    assert (np.abs(leg.numeric - J) <= 2 * leg.bar + 1e-9 * np.abs(J)).all()
    wrong = check_flat(lambda X: rounded(X, scale), X, J * (1 + 1e-4 * np.eye(2)), seed)
    assert wrong.verdict == "mismatch"


def test_at_the_end_of_the_range_it_cannot_be_told():
    x = np.array([709.6])
    report = check_flat(lambda X: np.exp(np.minimum(X, 709.7)), x, np.exp(x)[:, None], 0)
    assert report.verdict == "inconclusive"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("f, slope", [(np.sin, np.cos), (lambda X: X % 1.0, np.ones_like)], ids=["sin", "sawtooth"])
def test_far_out_what_moves_too_fast_to_be_seen_is_not_called_wrong(f, slope, seed):
    """Doubles near 1e10 are 2e-6 apart: all but the smallest steps meet values without any order."""
    x = np.random.default_rng(seed).uniform(-10, 10, 3) * 1e10
    assert check_flat(f, x, np.diag(slope(x)), seed).verdict != "mismatch"


@pytest.mark.parametrize("seed", [0, 2, 7, 8, 24])
def test_far_out_no_tie_is_seen_where_slopes_cannot_be(seed):
    x = np.random.default_rng(seed).uniform(-3, 3, 3) * 1e10
    f = lambda X: np.sin(X).sum(axis=1, keepdims=True)
    assert check_flat(f, x, np.cos(x)[None], seed).verdict != "mismatch"


SATURATING = {
    "tanh": lambda X: np.tanh(X),
    "normalised": lambda X: X / np.maximum(np.abs(X), 1.0),
    "softsign": lambda X: X / (np.abs(X) + 1.0),
}


@pytest.mark.parametrize("f", SATURATING.values(), ids=SATURATING)
@pytest.mark.parametrize("scale", [1e-12, 1e-15])
@pytest.mark.parametrize("seed", range(3))
def test_beside_0_what_f_does_may_have_any_scale(f, scale, seed):
    """Vectors are normalised by max(norm, 1e-12)."""
    slope = np.array([[1 / scale]])
    assert check_flat(lambda X: f(X / scale), np.zeros(1), slope, seed).verdict == "ok"
    for factor in (1.1, 0.9, -1.0):
        assert check_flat(lambda X: f(X / scale), np.zeros(1), factor * slope, seed).verdict in (
            "inconclusive",
            "mismatch",
        )


# Steps far below the rounding of a term are lost in it, and not in what else f is made of.
ABSORBING = {
    "plain": (lambda X: ((1e8 + X) - 1e8) + 1e-3 * X, 1.001),
    "steep": (lambda X: ((1e10 + X) - 1e10) + 1e3 * X, 1001.0),
    "rounded": (lambda X: np.round(np.sin(X) / 1e-9) * 1e-9 + 1e-3 * X, 1.001),
    "sines": (lambda X: np.sin((1000.0 + X) - 1000.0) + np.sinh(X), 2.0),
}


@pytest.mark.parametrize(("f", "right"), ABSORBING.values(), ids=ABSORBING)
@pytest.mark.parametrize("seed", range(3))
def test_beside_0_the_smallest_steps_accuse_nothing_that_is_lost_in_them(f, right, seed):
    assert check_flat(f, np.zeros(1), np.array([[right]]), seed).verdict != "mismatch"


@pytest.mark.parametrize("seed", range(6))
def test_beside_0_the_smallest_steps_excuse_nothing_that_is_lost_in_them(seed):
    f, _ = ABSORBING["sines"]
    assert check_flat(f, np.zeros(1), np.array([[1.0]]), seed).verdict != "ok"


HUGE = {
    "x": (lambda X: X, np.ones_like),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "log": (np.log, lambda x: 1 / x),
    "cbrt": (np.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2)),
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("x", [1e280, 1e295, 1e300, 1e305, 1e307, 1e308])
def test_inputs_up_to_the_end_of_the_range(name, x):
    f, derivative = HUGE[name]
    point = np.array([x, 0.3 * x])
    right = np.diag(derivative(point))
    assert check_flat(f, point, right).verdict == "ok"
    for factor in (1.0001, -1.0):
        assert check_flat(f, point, right * factor).verdict == "mismatch"

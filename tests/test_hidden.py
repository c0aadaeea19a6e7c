"""Points where a function is smooth along every input and has no derivative."""

from __future__ import annotations

import numpy as np
import pytest

from tests.flat import check_flat

EQUAL = np.full(4, 2.0)


def median(X):
    return np.median(X, axis=1, keepdims=True)


def smallest_singular_value(X):
    return np.linalg.svd(X.reshape(-1, 2, 2), compute_uv=False)[:, -1:]


@pytest.mark.parametrize(
    "gradient", [[0, 0.5, 0.5, 0], [0.5, 0, 0, 0.5], [0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0, 0.5]]
)
def test_choices_of_the_median(gradient):
    assert check_flat(median, EQUAL, [gradient]).verdict == "nondifferentiable"


@pytest.mark.parametrize(
    "gradient", [[0, 0.5, 0.51, 0], [0.5, 0.5, 0.5, 0.5], [0, 1, 1, 0], [0, -0.5, -0.5, 0], [3, -2, 0, 0]]
)
def test_no_choices_of_the_median(gradient):
    report = check_flat(median, EQUAL, [gradient])
    assert report.verdict in (("mismatch",) if sum(gradient) != 1 else ("mismatch", "inconclusive"))


@pytest.mark.parametrize("gradient", [[0.5, 0, 0, 0.5], [0, 0.5, -0.5, 0], [0.2, 0.1, 0, 0.3]])
def test_choices_of_the_smallest_singular_value(gradient):
    assert check_flat(smallest_singular_value, np.zeros(4), [gradient]).verdict == "nondifferentiable"


def test_no_choices_of_the_smallest_singular_value():
    assert not check_flat(smallest_singular_value, np.zeros(4), [[2.0, 0, 0, 2.0]])


@pytest.mark.parametrize("bug", [1.0001, 1.01, 1.5, -1.0, 0.0])
@pytest.mark.parametrize("curvature", [0.0, 1.0, 100.0])
def test_smooth_functions_have_no_choice(bug, curvature):
    x = np.array([0.3, -0.8, 1.2])

    def f(X):
        return np.stack([np.sin(X).sum(axis=1) + curvature * (X**2).prod(axis=1), np.exp(X[:, 0] * X[:, 1])], axis=1)

    other = (x**2).prod() / x**2
    J = np.stack([np.cos(x) + curvature * 2 * x * other, np.exp(x[0] * x[1]) * np.array([x[1], x[0], 0])])
    assert check_flat(f, x, J).verdict == "ok"
    wrong = J.copy()
    wrong[0, 1] *= bug
    assert check_flat(f, x, wrong).verdict == "mismatch"
    assert check_flat(f, x, bug * J).verdict == "mismatch"


@pytest.mark.parametrize("bug", [1.01, -1.0, 0.0])
@pytest.mark.parametrize(
    "kinked",
    [np.abs, np.sign, lambda y: np.maximum(y, 0), lambda y: np.where(y > 0, y + 1, 0)],
    ids=["abs", "sign", "relu", "jump"],
)
def test_the_kink_of_another_input_is_no_excuse(kinked, bug):
    def f(X):
        return (np.sin(X[:, 0]) + X[:, 1] ** 2 * X[:, 0] + kinked(X[:, 2]))[:, None]

    x = np.array([0.7, 1.3, 0.0])
    right = np.array([[np.cos(0.7) + 1.69, 2 * 1.3 * 0.7, 0.0]])
    assert check_flat(f, x, right).verdict == "nondifferentiable"
    assert check_flat(f, x, right * [[1, bug, 1]]).verdict == "mismatch"


@pytest.mark.parametrize(("at", "bug"), [(0.05, 1.001), (0.01, 1.01), (0.001, 1.05), (0.001, 1.01), (1e-4, 1.5)])
def test_the_kink_of_another_input_is_no_excuse_where_slopes_vary(at, bug):
    """Wrong by less than slopes a step away differ by."""

    def f(X):
        return (np.maximum(X[:, 0], 0) + X[:, 1] ** 2)[:, None]

    x, right = np.array([0.0, at]), np.array([[0.0, 2 * at]])
    assert check_flat(f, x, right).verdict == "nondifferentiable"
    assert check_flat(f, x, right * [[1, bug]]).verdict == "mismatch"


def test_an_error_as_small_as_slopes_differ_by_right_at_the_kink_is_not_told():
    def f(X):
        return (np.maximum(X[:, 0], 0) + X[:, 1] ** 2)[:, None]

    assert not check_flat(f, np.array([0.0, 1e-4]), np.array([[0.0, 2.001e-4]]))


@pytest.mark.parametrize("bug", [1.01, -1.0])
def test_what_f_is_beyond_a_jump_is_no_excuse(bug):
    """Beside y = 1 f is 0, as losses are whose labels are not 1 or -1: those slopes are no choices at y = 1."""

    def f(X):
        return np.where(X[:, 2] == 1, np.sin(X[:, 0]) + X[:, 1] ** 2 * X[:, 0], 0)[:, None]

    x, right = np.array([0.7, 1.3, 1.0]), np.array([[np.cos(0.7) + 1.69, 2 * 1.3 * 0.7, 0.0]])
    assert check_flat(f, x, right).verdict == "nondifferentiable"
    assert check_flat(f, x, right * [[bug, bug, 1]]).verdict == "mismatch"


@pytest.mark.parametrize("bug", [1.05, 0.5, 0.0])
def test_a_jump_that_passes_for_noise_is_no_excuse(bug):
    """The lines on which noise is measured are all beyond it, but for x itself."""

    def f(X):
        return np.where(X[:, 1] != 1, np.maximum(8.396163642458497 - X[:, 0], 0) + X[:, 0], X[:, 0])[:, None]

    x = np.array([-8.478373527526855, 1.0])
    assert check_flat(f, x, [[1.0, 0.0]]).verdict == "nondifferentiable"
    assert check_flat(f, x, [[bug, 0.0]]).verdict == "mismatch"


@pytest.mark.parametrize("n", [2, 4, 6])
@pytest.mark.parametrize("seed", range(3))
def test_a_piece_that_few_points_nearby_are_on(n, seed):
    """The smallest of numbers, if it is positive, is so where all are: its gradient is shared among equal ones."""
    f = lambda X: np.maximum(X.min(axis=1, keepdims=True), 0)
    assert check_flat(f, np.zeros(n), np.full((1, n), 1 / n), seed).verdict == "nondifferentiable"
    assert not check_flat(f, np.zeros(n), np.ones((1, n)), seed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n", [5, 8])
def test_choices_that_few_of_the_points_nearby_show(n, seed):
    """Where the largest so far of equal numbers is said to be the last, they increase: one order of n! has all of that."""
    W = np.random.default_rng(seed).normal(size=(n, 2))

    def f(X):
        return np.maximum.accumulate(X, axis=1) @ W

    assert check_flat(f, np.ones(n), W.T).verdict in ("nondifferentiable", "inconclusive")
    assert check_flat(f, np.ones(n), -W.T).verdict == "mismatch"
    assert check_flat(f, np.ones(n), W.T + [[0.0] * (n - 1) + [9.0]]).verdict == "mismatch"

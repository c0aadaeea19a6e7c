"""Backward passes that are right to a tolerance of their own, as those of iterations and adaptive steps are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.ode import odeint

from multigrad import check_grad
from multigrad._run import Settings, run_check
from tests.flat import Flat

X = np.array([0.4, -1.2, 2.0])
A = np.array([[2.0, 0.3, 0.0], [-0.5, 1.5, 0.2], [0.4, 0.0, 3.0]])


class Adjoint(Flat):
    """A backward pass that is off by ``size`` of its largest entry, by another amount for every cotangent."""

    def __init__(self, J, size):
        super().__init__(lambda X: np.sin(X) @ A.T, X, J)
        self.size = size

    def vjp(self, U):
        exact = U @ self.J
        rest = np.sin(1e3 * U @ np.arange(1.0, 4.0)[:, None] + np.arange(3.0))
        return exact + self.size * rest * np.abs(exact).max(axis=1, keepdims=True)


def check(J, size):
    return run_check(Adjoint(J, size), Settings(modes=("reverse",)))


@pytest.mark.parametrize(
    ("size", "verdict"), [(0.0, {"ok"}), (1e-11, {"ok"}), (1e-9, {"ok"}), (2e-7, {"mismatch", "inconclusive"})]
)
def test_a_right_backward_that_is_not_exact(size, verdict):
    """Its entries that should be 0 are off by more than any rounding."""
    report = check(A * np.cos(X), size)
    assert report.verdict in verdict
    assert size in (0.0, 2e-7) or "2 too small to resolve" in str(report)


@pytest.mark.parametrize("size", [0.0, 1e-11, 1e-9])
@pytest.mark.parametrize("error", [1e-6, 1e-3, 1.0])
def test_a_wrong_one_is_wrong_all_the_same(size, error):
    J = A * np.cos(X)
    J[1, 0] *= 1 + error
    assert check(J, size).verdict == "mismatch"
    J = A * np.cos(X)
    J[0, 2] += error
    assert check(J, size).verdict == "mismatch"


def test_an_error_of_the_size_of_what_is_inexact_is_never_called_right():
    J = A * np.cos(X)
    J[1, 0] *= 1 + 4e-7
    report = check(J, 2e-8)
    assert report.verdict == "inconclusive"
    assert "the backward pass is not exact" in str(report)


def test_a_backward_that_is_not_linear_is_no_inexact_one():
    assert check(A * np.cos(X), 1e-3).verdict == "mismatch"


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "ok"), (1.01, "mismatch")])
def test_an_ode_solver(factor, verdict):
    """JAX solves the adjoint equation anew, with steps of its own."""

    @jax.custom_jvp
    def rate(k):
        return k

    rate.defjvp(lambda p, t: (p[0], factor * t[0]))

    @jax.jit
    def solution(y, k):
        return odeint(lambda y, t: -rate(k) * y, y, jnp.array([0.0, 1.0]), rtol=1e-10, atol=1e-10)[-1]

    report = check_grad(solution, (np.array([1.0, 2.0]), 0.7), backend="jax", raise_exception=False)
    assert report.verdict == verdict

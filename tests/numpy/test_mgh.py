"""Classical problems with derivatives by hand: right as they are, wrong when a term is dropped, equal to the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

from multigrad import Verdict, check_grad
from multigrad.backends import Options
from multigrad_numpy import NumpyBackend
from tests.numpy.mgh import PROBLEMS, Problem


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_derivative_by_hand_is_right(problem: Problem) -> None:
    assert check_grad(problem.residuals, problem.x, jac=problem.jacobian).verdict is Verdict.OK


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_a_changed_term_is_noticed(problem: Problem) -> None:
    jac = problem.jacobian(problem.x)
    i, j = np.unravel_index(np.argmax(np.abs(jac)), jac.shape)

    def spoiled(x: Any) -> Any:
        out = problem.jacobian(x)
        out[i, j] *= 1 - 1e-4
        return out

    report = check_grad(problem.residuals, problem.x, jac=spoiled, trace=False, raise_exception=False)
    assert report.verdict is Verdict.MISMATCH
    assert (report.worst[0].output, report.worst[0].input) == (f"output[{i}]", f"inputs[0][{j}]")


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_trace_gives_the_derivative_by_hand(problem: Problem) -> None:
    f = NumpyBackend().flatten(problem.residuals, (problem.x,), Options())
    expected = problem.jacobian(problem.x)
    np.testing.assert_allclose(
        f.vjp(np.eye(len(expected))), expected, rtol=1e-13, atol=1e-13 * np.max(np.abs(expected))
    )


X = np.array([-0.3, 0.7, 1.2, 0.5])


@pytest.mark.parametrize(
    ("fn", "by_hand"),
    [(scipy.optimize.rosen, scipy.optimize.rosen_der), (scipy.optimize.rosen_der, scipy.optimize.rosen_hess)],
)
def test_rosen_of_scipy(fn: Any, by_hand: Any) -> None:
    f = NumpyBackend().flatten(fn, (X,), Options())
    expected = np.atleast_2d(by_hand(X))
    np.testing.assert_allclose(f.vjp(np.eye(len(expected))), expected, rtol=0, atol=1e-13 * np.max(np.abs(expected)))


def test_the_second_opinion_tells_the_exact_error_of_the_users_gradient() -> None:
    def spoiled(x: Any) -> Any:
        out = scipy.optimize.rosen_der(x)
        out[2] *= 1.001
        return out

    report = check_grad(scipy.optimize.rosen, X, jac=spoiled, raise_exception=False)
    assert report.verdict is Verdict.MISMATCH and report.worst[0].input == "inputs[0][2]"
    (opinion,) = (f for f in report.findings if f.kind == "diagnosis" and "traced by JAX" in f.evidence)
    assert "agrees with the numerical side" in opinion.evidence
    assert "relative error 0.000999" in opinion.evidence
    assert opinion.where == "output by inputs[0][2]"


def test_without_trace_there_is_no_second_opinion() -> None:
    report = check_grad(
        scipy.optimize.rosen, X, jac=lambda x: scipy.optimize.rosen_der(x) * 2, trace=False, raise_exception=False
    )
    assert not any("traced by JAX" in f.evidence for f in report.findings)

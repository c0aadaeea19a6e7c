"""At the points where a formula of the trace is singular and the function is not, the trace is right all the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

from multigrad import check_grad
from multigrad._comparison.verdict import Verdict

ZERO = np.array([0.0, 0.5, 2.0])
END = np.array([1.0, 0.3, -1.0])
PART = np.array([0.0, 0.2, 0.7, -0.03])

SMOOTH: dict[str, Any] = {
    "np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)": ZERO,
    "np.log1p(np.exp(-np.fabs(x))) + np.maximum(x, 0)": ZERO,
    "(x + abs(x)) * (x - abs(x)) + x": ZERO,
    "np.power(x, np.array([0.0, 1.0, 2.0]))": ZERO,
    "np.linalg.matrix_power(np.diag(x), 0) * x": ZERO,
    "np.cross(x, x) + x": ZERO,
    "np.cross(x, x)": ZERO,
    "sp.betainc(1.0, 3.0, x / 2)": ZERO,
    "sp.ellipe(x)": PART,
    "sp.ellipeinc(0.5, x)": PART,
    "sp.ellipk(x)": PART,
    "sp.ellipkinc(0.5, x)": PART,
    "sp.ellipkm1(1 - x)": PART,
    "sp.eval_chebyu(3, x)": END,
    "sp.eval_gegenbauer(0, 1.0, x) + x": END,
    "sp.eval_jacobi(0, 1.0, 1.0, x) + x": END,
    "sp.eval_laguerre(3, x)": ZERO,
    "sp.eval_legendre(3, x)": END,
    "sp.powm1(x, 2.0)": ZERO,
    "sp.powm1(x + 1, x)": ZERO,
    "sp.rgamma(-x)": np.array([0.0, 1.0, 2.0, 0.3]),
    "sp.spence(x + 1)": ZERO,
}


@pytest.mark.parametrize("text", SMOOTH)
def test_a_smooth_function_is_right_at_a_singular_point_of_its_formula(text: str) -> None:
    function = eval(f"lambda x: {text}", {"np": np, "sp": sp, "__name__": "users_code"})
    assert check_grad(function, SMOOTH[text]).verdict is Verdict.OK


@pytest.mark.parametrize("text", ["sp.ellipk(x)", "sp.ellipeinc(0.5, x)", "sp.eval_legendre(4, x)"])
def test_the_second_derivative_is_right_too(text: str) -> None:
    function = eval(f"lambda x: np.sum({text})", {"np": np, "sp": sp, "__name__": "users_code"})
    assert check_grad(function, PART[:2], order=2).verdict is Verdict.OK


@pytest.mark.parametrize("text", ["np.sqrt(x)", "x**0.5", "np.cbrt(x)", "np.arcsin(1 - x)"])
def test_where_the_derivative_is_infinite_the_function_has_none(text: str) -> None:
    function = eval(f"lambda x: {text}", {"np": np, "__name__": "users_code"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert check_grad(function, ZERO).verdict is Verdict.NONDIFFERENTIABLE

"""check_grad: its arguments, what it raises, and functions that are not what they should be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from multigrad import check_grad
from multigrad._run import Settings, run_check
from multigrad.errors import (
    GradientMismatch,
    InconclusiveCheck,
    InvalidUse,
    MultigradError,
    NonDifferentiableWarning,
    UnknownBackend,
)
from tests.flat import Flat

X = np.array([1.0, 2.0])


def square(x):
    return np.sum(x**2)


def double(x):
    return 2 * x


def check(fn=square, inputs=X, **options):
    return check_grad(fn, inputs, **{"jac": double, **options})


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"modes": ("backward",)}, "unknown_mode"),
        ({"modes": ()}, "unknown_mode"),
        ({"modes": "reverse"}, "unknown_mode"),
        ({"eps": 0.0}, "bad_tolerance"),
        ({"eps": -1e-6}, "bad_tolerance"),
        ({"eps": np.nan}, "bad_tolerance"),
        ({"rtol": -1.0}, "bad_tolerance"),
        ({"rtol": np.inf}, "bad_tolerance"),
        ({"atol": -1e-9}, "bad_tolerance"),
        ({"fn": 3}, "not_callable"),
        ({"executor": 3}, "not_an_executor"),
        ({"nonsense": True}, "unknown_option"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(options, kind):
    with pytest.raises(InvalidUse) as caught:
        check(**options)
    assert caught.value.kind == kind and isinstance(caught.value, ValueError)
    assert str(caught.value)


def test_unknown_backend():
    with pytest.raises(UnknownBackend, match="theano"):
        check(backend="theano")


def test_mismatch_raises_with_the_report():
    with pytest.raises(GradientMismatch) as caught:
        check(jac=lambda x: 3 * x)
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, MultigradError)
    assert caught.value.report.verdict == "mismatch"
    assert "inputs[0][0]" in str(caught.value)
    assert check(jac=lambda x: 3 * x, raise_exception=False).verdict == "mismatch"


def test_kinks_warn():
    with pytest.warns(NonDifferentiableWarning, match="kink"):
        assert check(lambda x: np.sum(np.abs(x)), np.zeros(1), jac=np.sign)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(lambda x: np.sum(np.abs(x)), np.zeros(1), jac=np.sign, raise_exception=False)


def test_inconclusive_raises():
    with pytest.raises(InconclusiveCheck) as caught:
        check(lambda x: 1e14 + np.sum(np.sin(x)), jac=np.cos)
    assert caught.value.report.reason


def test_rtol():
    almost = lambda x: 2 * x * (1 + 1e-4)
    assert check(jac=almost, raise_exception=False).verdict == "mismatch"
    assert check(jac=almost, rtol=1e-3)


def test_atol_hides_small_gradients():
    wrong = lambda x: 2 * x + 1e-3
    assert check(jac=wrong, raise_exception=False).verdict == "mismatch"
    assert check(jac=wrong, atol=1e-2)


class TestFixedStep:
    def test_right_and_wrong(self):
        assert check(eps=1e-5, rtol=1e-6).verdict == "ok"
        assert check(jac=lambda x: 2.1 * x, eps=1e-5, raise_exception=False).verdict == "mismatch"

    def test_it_is_one_central_difference(self):
        seen = []

        def f(X):
            seen.extend(X[:, 0])
            return X**3

        report = run_check(Flat(f, np.ones(1), np.full((1, 1), 3.0)), Settings(eps=0.125))
        assert {0.875, 1.125} <= set(seen)
        assert report.legs[0].numeric[0, 0] == pytest.approx(3 + 0.125**2, rel=1e-12)

    @pytest.mark.parametrize(
        ("a", "verdict"), [(0.0, "nondifferentiable"), (1.0, "nondifferentiable"), (2.0, "mismatch")]
    )
    def test_relu_at_0(self, a, verdict):
        report = check(
            lambda x: np.sum(np.maximum(x, 0)), np.zeros(1), jac=lambda x: a + 0 * x, eps=1e-6, raise_exception=False
        )
        assert report.verdict == verdict


def test_a_function_that_raises_at_the_inputs_is_not_wrapped():
    def f(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        check(f)


def test_a_function_that_raises_beside_the_inputs():
    def f(x):
        if x[0] != 1.0:
            raise ArithmeticError("only here")
        return np.sum(x**2)

    report = check(f, raise_exception=False)
    assert report.verdict == "inconclusive" and "only here" in report.reason


def test_a_function_that_raises_on_one_side():
    def f(x):
        if x[0] < 1.0:
            raise ArithmeticError("not there")
        return np.sum(x**2)

    assert check(f, raise_exception=False).verdict in ("ok", "inconclusive")
    assert not check(f, jac=lambda x: 3 * x, raise_exception=False)


def test_another_shape_beside_the_inputs():
    report = check(lambda x: x[: 1 + (x[0] == 1.0)] ** 2, jac=lambda x: np.diag(2 * x), raise_exception=False)
    assert report.verdict == "inconclusive"
    assert "shape_depends_on_value" in [finding.kind for finding in report.findings]


@pytest.mark.parametrize("returned", [None, "text"])
def test_a_function_that_returns_no_array(returned):
    with pytest.raises(InvalidUse):
        check(lambda x: returned)


def test_values_that_are_not_finite():
    report = check(lambda x: np.array([np.nan, x[1] ** 2]), jac=lambda x: np.diag(2 * x), raise_exception=False)
    assert report.verdict == "inconclusive"
    assert [finding.where for finding in report.findings if finding.kind == "non_finite"] == ["output[0]"]


def test_infinite_inputs_cannot_be_perturbed():
    x = np.array([np.inf, 2.0])
    report = check(lambda x: np.exp(-x), x, jac=lambda x: np.diag(-np.exp(-x)), raise_exception=False)
    assert report.verdict == "ok"


def test_a_stationary_point_is_said_to_be_one():
    """What AD leaves of a 0 is not told from it, and the function is not noisy for that."""
    x = np.array([1.4616321449683623])
    report = run_check(Flat(gammaln, x, digamma(x)[None]))
    assert report.verdict == "inconclusive"
    assert "check at a point where they are larger" in report.reason


@pytest.mark.parametrize(("typo", "meant"), [("raise_exceptions", "raise_exception"), ("trce", "trace")])
def test_a_misspelt_option_gets_a_suggestion(typo, meant):
    with pytest.raises(InvalidUse, match=f"no option '{typo}'; did you mean '{meant}'"):
        check(**{typo: False})


def test_a_second_input_without_a_tuple_is_no_backend():
    with pytest.raises(InvalidUse, match=r"not of type ndarray; several inputs go into a tuple"):
        check_grad(np.add, np.ones(2), np.ones(2))


def test_a_list_of_numbers_is_said_to_be_several_arguments():
    with pytest.raises(TypeError) as caught:
        check_grad(lambda x: np.sum(x), [1.0, 2.0], backend="numpy", jac=lambda x: np.ones(2))
    assert "each item of a tuple or list is passed as an argument" in caught.value.__notes__[0]


def test_what_a_prompt_shows_is_the_text():
    report = check_grad(np.sin, np.array([0.5]), backend="numpy", jac=lambda x: np.cos(x)[None])
    assert repr(report) == str(report)


def test_a_reason_is_given_once():
    report = check_grad(np.sin, X, backend="numpy", jac=np.cos, raise_exception=False)
    assert "wrong_shape" in report.reason
    assert str(report).count(report.reason.removeprefix("wrong_shape: ")) == 1

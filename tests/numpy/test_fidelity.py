"""A trace whose derivative is not that of the function is given up; it never passes for the function's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import multigrad
from multigrad import check_grad
from multigrad._comparison.verdict import Verdict
from multigrad.errors import Unsupported
from multigrad_numpy._tracing.table import TABLE

X = np.array([0.7, 1.3, 2.1])


def bisection(x: Any) -> Any:
    low, high = 0.0, 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**3 < x[0] else (low, middle)
    return middle + 0 * x


def difference_of_one_sided(x: Any) -> Any:  # x itself, of which either half is 0 at 0
    return np.where(x > 0, x, 0.0) - np.where(-x > 0, -x, 0.0)


def rounded_by_hand(x: Any) -> Any:
    return np.floor(x * 1e12) / 1e12


@pytest.mark.parametrize(
    ("function", "x"),
    [(bisection, X), (difference_of_one_sided, np.array([0.0, 1.0])), (rounded_by_hand, X)],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_what_hides_from_jax_is_an_error_and_no_mismatch(function: Callable[[Any], Any], x: Any) -> None:
    with pytest.raises(Unsupported, match=r"tracer fidelity: by the trace d output.* is 0, by NumPy's values .*jac="):
        check_grad(function, x)


@pytest.mark.parametrize("spec", [".17g", ".17e", ".16f"])
def test_text_with_all_digits_is_refused(spec: str) -> None:
    with pytest.raises(Unsupported, match=r"test_fidelity.py:\d+: format\(x, .*would drop its gradient"):
        check_grad(lambda x: float(f"{x[0]:{spec}}") * x, X)


def test_an_array_as_text_with_all_digits_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"np.array2string\(\) of a value"):
        check_grad(lambda x: float(np.array2string(x, precision=17).strip("[]").split()[0]) * x, X)
    with pytest.raises(Unsupported, match=r"np.format_float_positional\(\) of a value"):
        check_grad(lambda x: float(np.format_float_positional(x[0])) * x, X)


def test_text_for_people_is_no_hindrance() -> None:
    assert check_grad(lambda x: x * len(f"{x[0]:.3f} {np.array2string(x, precision=4)} {np.array_repr(x)}"), X)


@pytest.mark.parametrize("decimals", [0, 2, 10, 12, 15])
def test_rounding_has_steps_only_where_they_are_to_be_seen(decimals: int) -> None:
    x = np.array([0.321534, -1.284353, 0.823534])
    slope = 0.0 if decimals < 8 else 1.0
    assert check_grad(lambda x: np.round(x, decimals), x)
    assert check_grad(lambda x: x.round(decimals), x, jac=lambda x: slope * np.eye(3))


def test_a_grid_whose_ends_depend_on_the_input() -> None:
    assert check_grad(lambda x: np.arange(x[0], x[2], x[1] / 5), X)
    assert check_grad(lambda x: np.arange(4) * x[0] + np.arange(x[2])[1] * x[1], X)


@pytest.fixture
def wrong_rule() -> Iterator[None]:
    struve = scipy.special.struve
    rule = jax.custom_jvp(lambda v, x: jnp.asarray(struve(v, np.asarray(x))))
    rule.defjvp(lambda p, t: (rule(*p), 1.001 * (2 / np.pi - rule(p[0] + 1, p[1])) * t[1]))
    multigrad.register_numpy(struve, rule)
    yield
    del TABLE[struve]


@pytest.mark.usefixtures("wrong_rule")
def test_a_wrong_derivative_that_the_user_registered_is_a_mismatch() -> None:
    report = check_grad(lambda x: scipy.special.struve(0, x), X, raise_exception=False)
    assert report.verdict is Verdict.MISMATCH


def test_a_method_of_compiled_code_is_refused_and_does_not_crash() -> None:
    with pytest.raises(Unsupported, match="standard_gamma has no derivative rule"):
        check_grad(lambda x: x * np.random.default_rng(0).standard_gamma(x), X)
    with pytest.raises(Unsupported, match="standard_gamma has no derivative rule"):
        check_grad(lambda x: x * np.random.standard_gamma(x), X, jac=None)


def random_numbers(x: Any) -> Any:
    rng = np.random.default_rng(3)
    return (
        rng.normal(x[0], x)
        + rng.uniform(x[0], 3 * x)
        + rng.exponential(x, size=(2, 3))
        + rng.lognormal(x[0], 0.3)
        + rng.laplace(scale=x[1])
    )


def legacy_random_numbers(x: Any) -> Any:
    np.random.seed(3)
    return np.random.normal(loc=x, size=(2, 3)) + np.random.logistic(x[1], x[2]) + np.random.rand(3) * x


def random_order(x: Any) -> Any:
    rng = np.random.default_rng(3)
    y = x**2
    rng.shuffle(y)
    return y + rng.permutation(x) * rng.choice(x, 3, replace=True)


@pytest.mark.parametrize("function", [random_numbers, legacy_random_numbers, random_order])
def test_draws_move_with_their_location_and_scale(function: Callable[[Any], Any]) -> None:
    report = check_grad(function, X)
    assert report.verdict is Verdict.OK and not any(f.kind == "vmap_fallback" for f in report.findings)


def test_beta_functions_are_as_precise_as_scipys() -> None:
    a, b = np.array([1.1034, 8.0162]), np.array([10.1356, 2.797])
    assert check_grad(scipy.special.betaln, (a, b)) and check_grad(scipy.special.beta, (a, b))
    assert check_grad(scipy.stats.beta.pdf, (np.array([0.2, 0.86]), a, b))
    assert check_grad(scipy.stats.beta.logpdf, (np.array([0.2, 0.86]), a, b))


def test_iterators_of_compiled_code_are_refused_with_another_way() -> None:
    with pytest.raises(Unsupported, match=r"test_fidelity.py:\d+: np.nditer has no traced form; loop over np.ndindex"):
        check_grad(lambda x: sum(v * v for v in np.nditer(x)), X)


def test_generators_are_read_by_numpy_and_math() -> None:
    import math

    assert check_grad(lambda x: np.fromiter((v * v for v in x), float) * math.fsum(v for v in x), X)


def test_the_library_function_that_wants_plain_numbers_is_named() -> None:
    import scipy.fft

    with pytest.raises(Unsupported, match="scipy's dct wants plain numbers: .* depends on `inputs.0.`"):
        check_grad(lambda x: scipy.fft.dct(x), X)


def test_the_second_order_of_traced_code() -> None:
    import scipy.optimize

    x = np.array([1.3, 0.7, 0.8, 1.9])
    report = check_grad(scipy.optimize.rosen, x, order=2)
    assert report.verdict is Verdict.OK and report.second is not None
    assert report.second.verdict is Verdict.OK
    hessian = report.second.legs[0].analytical[:, :4]
    u = hessian[0, 0] / scipy.optimize.rosen_hess(x)[0, 0]  # the random cotangent of the one output
    assert np.allclose(hessian, u * scipy.optimize.rosen_hess(x), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: np.sum((x - x.mean()) / (x.std() + 0.5)),
        lambda x: np.array([np.sum(x) - np.cumsum(x)[-1], x @ x - np.sum(x * x)]),
        lambda x: np.linalg.inv(np.outer(x, x) + np.eye(len(x))) @ (np.outer(x, x) + np.eye(len(x))) - np.eye(len(x)),
    ],
    ids=["normalised and summed", "two ways to sum", "inverse"],
)
def test_values_that_are_rounding_alone_may_be_rounded_in_another_way(fn) -> None:
    report = check_grad(fn, np.array([0.3, -1.2, 0.7, 2.1, 0.45]), raise_exception=False)
    assert report.verdict != "mismatch"


@pytest.mark.parametrize("offset", [1e-7, -1.0])
def test_another_value_is_no_rounding(offset: float) -> None:
    def fn(x):
        other = offset if isinstance(x, np.ndarray) and type(x) is np.ndarray else 0.0
        return np.sum(x - x.mean()) + other

    with pytest.raises(Unsupported, match="tracer fidelity"):
        check_grad(fn, np.array([0.3, -1.2, 0.7, 2.1, 0.45]))

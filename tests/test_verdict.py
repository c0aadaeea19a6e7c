"""Verdicts: what follows from an estimate, its bar and what it is compared with."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigrad._comparison.context import Context
from multigrad._comparison.verdict import Rules, Status, Verdict, admit_cone_tips, admit_kinks, judge
from multigrad._differences.estimate import Estimate
from multigrad._differences.kinks import Kinks
from tests.flat import check_flat

EPS = 2.0**-52
RULES = Rules.for_eps(EPS, None, 0.0)


def status(analytical, value, bar, *, scale=1.0, rules=RULES, noise=EPS, dust=0.0, reach=0.0):
    one = np.ones((1, 1))
    context = Context(
        scale * one, scale * one, dust * one, np.array([noise]), np.array([reach]), np.zeros(1), np.full(1, np.inf)
    )
    with np.errstate(invalid="ignore"):
        said = judge(analytical * one, Estimate(value * one, bar * one), context, rules)
    return Status(said.status[0, 0]), bool(said.sharp[0, 0])


@pytest.mark.parametrize(
    ("analytical", "value", "bar", "expected", "sharp"),
    [
        (1.0, 1.0, 1e-10, Status.OK, True),
        (1.0, 1.0, 1e-4, Status.OK, False),  # resolved to 1e-3, to be looked at again
        (1.0, 1.0, 1e-2, Status.INCONCLUSIVE, False),
        (1.0, 1.0 + 2e-7, 1e-10, Status.MISMATCH, False),
        (1.0, 1.0 + 0.9e-7, 1e-10, Status.OK, True),  # within rtol
        (1.0, 1.5, 0.3, Status.INCONCLUSIVE, False),  # within two bars
        (1.0, 1.5, 0.2, Status.MISMATCH, False),
        (1.0, 1.5, np.inf, Status.INCONCLUSIVE, False),
        (1.0, -1.0, 1e-10, Status.MISMATCH, False),
        (0.0, 0.0, 1e-15, Status.OK, True),
        (0.0, 1e-3, 1e-10, Status.MISMATCH, False),
        (1e-3, 0.0, 1e-10, Status.MISMATCH, False),
        (1e-14, 2e-14, 1e-12, Status.UNRESOLVED, False),
        (np.nan, 1.0, 1e-10, Status.MISMATCH, False),
        (np.inf, 1.0, 1e-10, Status.MISMATCH, False),
        (np.nan, 1.0, np.inf, Status.INCONCLUSIVE, False),
        (np.inf, np.inf, np.inf, Status.INCONCLUSIVE, False),
    ],
)
def test_rules(analytical, value, bar, expected, sharp):
    assert status(analytical, value, bar) == (expected, sharp)


def test_dust_is_unresolved():
    assert status(1e-16, 0.0, 1e-18, noise=0.0, dust=1e-14)[0] is Status.UNRESOLVED
    assert status(1e-16, 0.0, 1e-18, noise=0.0)[0] is Status.MISMATCH


def test_absolute_tolerance_only_on_demand():
    lax = Rules.for_eps(EPS, 1e-3, 1e-2)
    assert status(1e-3, 2e-3, 1e-12)[0] is Status.MISMATCH
    assert status(1e-3, 2e-3, 1e-12, rules=lax)[0] is Status.OK


def test_noise_is_allowed_for_in_the_analytical_side_too():
    assert status(1.0, 1.0 + 1e-5, 1e-10, noise=1e-5)[0] is Status.OK
    assert status(1.0, 1.0 + 1e-5, 1e-10, noise=1e-9)[0] is Status.MISMATCH


def test_zero_is_measured_by_what_f_does():
    assert status(0.0, 0.0, 1e-12, scale=0.0)[0] is Status.INCONCLUSIVE
    assert status(0.0, 0.0, 1e-12, scale=0.0, reach=1.0)[0] is Status.OK


def test_too_small_for_doubles():
    assert status(1e-300, 1e-300, 1e-320, scale=1e-300)[0] is Status.OK
    assert status(2e-300, 1e-300, 1e-320, scale=1e-300)[0] in (Status.UNRESOLVED, Status.MISMATCH)


finite = st.floats(-1e6, 1e6)


@given(finite, finite, st.floats(0, 1e3), st.sampled_from([-60, -3, 3, 60]))
def test_statuses_do_not_depend_on_the_unit(a, e, bar, k):
    tiny = 1e-200
    a, e = (0.0 if abs(v) < tiny else v for v in (a, e))
    bar = 0.0 if bar < tiny else bar
    unit = 2.0**k
    assert status(a, e, bar) == status(a * unit, e * unit, bar * unit, scale=unit)


@given(finite, finite, st.floats(0, 1e3))
def test_never_ok_where_the_two_differ_by_more_than_bar_and_tolerance(a, e, bar):
    said, _ = status(a, e, bar, scale=max(abs(a), abs(e)))
    if abs(a - e) > bar + 1e-6 * max(abs(a), abs(e)):
        assert said is not Status.OK
    if abs(a - e) <= bar:
        assert said is not Status.MISMATCH


def kinks(kink, singular, low=0.0, high=1.0):
    one = np.ones((1, 1))
    left, right = Estimate(np.nan * one, np.inf * one), Estimate(3 * one, 1e-9 * one)
    growing = np.zeros((1, 1), bool)
    return Kinks(np.array([[kink]]), np.array([[singular]]), low * one, high * one, left, right, growing)


@pytest.mark.parametrize(
    ("kink", "singular", "a", "expected"),
    [
        (True, False, 0.5, Status.NONDIFFERENTIABLE),
        (True, False, 1.0, Status.NONDIFFERENTIABLE),
        (True, False, 1.1, Status.MISMATCH),
        (True, False, np.nan, Status.MISMATCH),
        (False, True, 1e9, Status.INCONCLUSIVE),
        (False, True, 0.0, Status.NONDIFFERENTIABLE),
        (False, True, 3.0, Status.NONDIFFERENTIABLE),
        (False, True, np.inf, Status.NONDIFFERENTIABLE),
        (False, True, np.nan, Status.MISMATCH),
        (False, False, 1e9, Status.OK),
    ],
)
def test_kinks_overrule(kink, singular, a, expected):
    assert admit_kinks(np.zeros((1, 1), np.int8), np.array([[a]]), kinks(kink, singular))[0, 0] == expected


def test_nan_at_a_tip_needs_all_inputs():
    broken, nan = np.ones((2, 1), bool), np.full((2, 1), np.nan)
    statuses = np.full((2, 1), Status.MISMATCH, np.int8)
    admit_cone_tips(statuses, nan, broken)
    assert (statuses == Status.NONDIFFERENTIABLE).all()
    for analytical, where in ((np.array([[np.nan], [1.0]]), broken), (nan, np.array([[True], [False]]))):
        statuses = np.full((2, 1), Status.MISMATCH, np.int8)
        admit_cone_tips(statuses, analytical, where)
        assert (statuses == Status.MISMATCH).all()


def test_order_of_severity():
    assert [v.severity for v in (Verdict.OK, Verdict.NONDIFFERENTIABLE, Verdict.INCONCLUSIVE, Verdict.MISMATCH)] == [
        *range(4)
    ]
    for low, high in itertools.pairwise(Status):
        assert low.verdict.severity <= high.verdict.severity


@pytest.mark.parametrize(("eps", "rtol"), [(EPS, 1e-7), (2.0**-23, 1e-4), (2.0**-7, 2.0**-4)])
def test_tolerances_by_arithmetic(eps, rtol):
    rules = Rules.for_eps(eps, None, 0.0)
    assert rules.rtol == rtol and rules.atol == 0 and rules.resolution <= 0.5
    assert Rules.for_eps(eps, 0.25, 0.0).rtol == 0.25


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda X: np.linalg.det(X.reshape(-1, 3, 3))[:, None], np.ones(9)),
        (
            lambda X: np.linalg.det(X.reshape(-1, 4, 4))[:, None],
            np.outer([0.3, 1.2, -0.7, 2.0], [1.1, 0.4, 0.9, -0.6]).ravel(),
        ),
        (lambda X: X[:, :1] * X[:, 1:2] * X[:, 2:], np.array([0.0, 0.0, 3.0])),
        (lambda X: (X[:, :1] - X[:, 1:2]) * (X[:, 2:] - 0.3), np.array([0.7, 0.7, 0.3])),
    ],
    ids=["det of ones", "det of rank 1", "product with two zeros", "differences"],
)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_stationary_point_along_every_single_input(f, x, scale):
    """Only where several inputs move does f, and shows by that what is large and what is 0."""
    J = np.zeros((1, x.size))
    assert check_flat(lambda X: scale * f(X), x, J).verdict == "ok"
    J[0, 1] = 1e-3 * scale
    assert check_flat(lambda X: scale * f(X), x, J).verdict == "mismatch"


@pytest.mark.parametrize("size", [1e-11, 3e-12, 1.6e-12, 1.1e-12])
@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_an_entry_above_1e_minus_12_of_its_row_is_no_rounding(size, factor):
    """Steep as f is along another input, this one is not beside a point where its slope is 0."""

    def f(X):
        return np.stack([7.6 * (np.sin(X[:, 0]) + size * np.sin(X[:, 1])), X[:, 1]], axis=1)

    x = np.array([1e-3, 1e-3])
    J = np.array([[7.6 * np.cos(x[0]), 7.6 * size * np.cos(x[1])], [0.0, 1.0]])
    assert check_flat(f, x, J).verdict == "ok"
    J[0, 1] *= factor
    assert check_flat(f, x, J).verdict == "mismatch"

"""Kinks, jumps and vertical tangents: at x, where a legal choice passes, and beside it, where there is no choice."""

from __future__ import annotations

import numpy as np
import pytest

from tests.flat import check_flat
from tests.shapes import coupled

RELU = (lambda X: np.maximum(X, 0), lambda X: 1.0 * (X > 0))
KINKED = {
    "relu": RELU,
    "abs": (np.abs, np.sign),
    "leaky relu": (lambda X: np.where(X > 0, X, 0.01 * X), lambda X: np.where(X > 0, 1.0, 0.01)),
    "abs + smooth": (lambda X: np.abs(X) + np.sin(3 * X), lambda X: np.sign(X) + 3 * np.cos(3 * X)),
    "steep": (lambda X: 1e6 * np.abs(X) + X, lambda X: 1e6 * np.sign(X) + 1),
    "offset": (lambda X: 100 + np.maximum(X, 0), lambda X: 1.0 * (X > 0)),
}


def beside(name, d):
    """A kinked input at distance d from its kink, and smooth ones; alone, or mixed with the others."""
    f, df = KINKED[name]
    rng = np.random.default_rng([int(-np.log10(abs(d)) * 7), d > 0])
    x = np.concatenate([[d], rng.normal(size=rng.integers(1, 6)) * 10.0 ** rng.uniform(-2, 2)])
    mixed = lambda X: np.concatenate([f(X[..., :1]), np.sin(X[..., 1:])], axis=-1)
    slopes = lambda X: np.concatenate([df(X[..., :1]), np.cos(X[..., 1:])], axis=-1)
    return x, coupled(mixed, slopes, x, rng.choice(["apart", "sum", "mixed"]), rng)


@pytest.mark.parametrize("name", KINKED)
@pytest.mark.parametrize("exponent", [-11.5, -10.2, -9.3, -8.1, -6.4, -3.2, -1.1])
@pytest.mark.parametrize("side", [-1, 1])
def test_beside_a_kink_the_slope_is_that_of_the_side(name, exponent, side):
    x, (f, J) = beside(name, side * 10.0**exponent)
    assert check_flat(f, x, J).verdict == "ok"
    wrong = J.copy()
    wrong[:, 0] = 2.5 * J[:, 0] if J[0, 0] else -0.5
    assert check_flat(f, x, wrong).verdict == "mismatch"
    # What one side has, and the mean that a large step sees, may be left open, but is not accepted.
    other = J.copy()
    other[:, 0] = J[:, 0] * KINKED[name][1](-x[0]) / KINKED[name][1](x[0]) if J[0, 0] else 1
    for claimed in (other, (J + other) / 2):
        assert check_flat(f, x, claimed).verdict in ("mismatch", "inconclusive")


@pytest.mark.parametrize("d", [1e-15, 1e-14, 1e-13, -1e-13])
def test_too_close_to_tell_from_a_kink_at_x(d):
    f, x = lambda X: RELU[0](X[:, :1]) + np.sin(X[:, 1:]), np.array([d, 0.7])
    assert check_flat(f, x, np.array([[float(d > 0), np.cos(0.7)]])).verdict in ("ok", "nondifferentiable")
    assert check_flat(f, x, np.array([[1.5, np.cos(0.7)]])).verdict == "mismatch"


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize(
    ("f", "legal", "illegal"),
    [
        (lambda d: np.maximum(d, 0), [0, 0.5, 1], [-0.01, 1.01, 2, np.nan, np.inf]),
        (np.abs, [-1, 0, 0.3, 1], [1.01, -1.5]),
        (lambda d: np.where(d > 0, d, 0.01 * d), [0.01, 1], [0, 1.1]),
        (lambda d: np.abs(d) + np.sin(d), [0, 1, 2], [-0.1, 2.1]),
        (lambda d: np.minimum((d + 1) ** 2, (d - 1) ** 2), [2, 0, -2], [2.1, -3]),
        (lambda d: 2 * np.clip(d, -1, 0), [0, 2], [2.1, -0.1]),
        (lambda d: np.where(d >= 0, 1.0, 0.0) + 3 * d, [3, 0], [np.nan]),
        (lambda d: np.sqrt(np.abs(d)), [0, np.inf], [np.nan]),
        (np.cbrt, [np.inf, 0], [np.nan]),
        (lambda d: np.maximum(np.maximum(d, 0), 0), [0, 1], [1.2]),
    ],
    ids=["relu", "abs", "leaky", "abs + sin", "parabolas", "clip", "jump", "sqrt abs", "cbrt", "relu relu"],
)
def test_at_a_kink_what_is_legal_passes(f, legal, illegal, offset):
    for a in legal:
        report = check_flat(lambda X: f(X - offset), np.array([offset]), np.array([[a]]))
        assert (report.verdict, bool(report)) == ("nondifferentiable", True), a
    for a in illegal:
        report = check_flat(lambda X: f(X - offset), np.array([offset]), np.array([[a]]))
        assert report.verdict == "mismatch", a


def test_two_kinks_that_cancel_are_none():
    f = lambda X: np.maximum(X, 0) - np.maximum(-X, 0)
    assert check_flat(f, np.zeros(1), np.ones((1, 1))).verdict == "ok"
    assert check_flat(f, np.zeros(1), np.zeros((1, 1))).verdict == "mismatch"


@pytest.mark.parametrize(
    "f",
    [
        lambda d: np.where(d < 0, d**2, 3 * d**2) + d,
        lambda d: np.where(d < 0, d**3, -5 * d**3) + d,
        lambda d: np.maximum(d, 0) ** 2 + d,
        lambda d: np.abs(d) ** 1.5 + d,
        lambda d: np.where(np.abs(d) < 1, 0.5 * d * d, np.abs(d) - 0.5) + d,
    ],
    ids=["C1", "C2", "squared hinge", "three halves", "huber"],
)
@pytest.mark.parametrize("with_slope", [True, False])
def test_pieces_that_join_smoothly(f, with_slope):
    slope, c = float(with_slope), 0.37
    g = lambda X: f(X - c) - (X - c) * (1 - slope)
    assert check_flat(g, np.array([c]), np.array([[slope]])).verdict == "ok"
    assert check_flat(g, np.array([c]), np.array([[slope + 0.01]])).verdict == "mismatch"


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("power", [1.5, 2, 3])
@pytest.mark.parametrize("c", [0.0, 0.37, -1.0, 100.0])
def test_flat_on_one_side(turn, power, c):
    """A squared hinge at its margin is 0, and so is its slope: how steep it is beside x is seen on either side."""
    f = lambda X: np.maximum(turn * (X - c), 0) ** power
    assert check_flat(f, np.array([c]), np.zeros((1, 1))).verdict == "ok"
    assert check_flat(f, np.array([c]), np.array([[0.01]])).verdict == "mismatch"


@pytest.mark.parametrize("d", [1e-10, -1e-8, 1e-6, -1e-4])
@pytest.mark.parametrize(
    ("f", "slope"), [(lambda X: X - np.floor(X), 1.0), (lambda X: np.floor(X) + 3 * X, 3.0)], ids=["saw", "steps"]
)
def test_beside_a_jump(f, slope, d):
    x = np.array([2.0 + d, 0.4])
    assert check_flat(f, x, slope * np.eye(2)).verdict == "ok"
    assert check_flat(f, x, (slope + 0.01) * np.eye(2)).verdict == "mismatch"


def test_smoothed_kink_hidden_by_the_other_terms():
    """sqrt(x^2 + s^2) next to 0 beside values whose rounding hides the bend: nothing may be made of large steps."""
    for x0, s in ((1e-15, 1e-8), (1e-14, 1e-6), (3e-12, 1e-8), (-1e-10, 1e-6)):
        f = lambda X, s=s: np.sqrt(X[:, :1] ** 2 + s * s) + np.sin(X[:, 1:])
        J = np.array([[x0 / np.hypot(x0, s), np.cos(0.7)]])
        assert check_flat(f, np.array([x0, 0.7]), J).verdict != "mismatch"


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e10])
def test_close_to_a_pole(condition):
    rng = np.random.default_rng(3)
    (U, _), (V, _) = (np.linalg.qr(rng.normal(size=(4, 4))) for _ in range(2))
    A = U @ np.diag(condition ** -np.linspace(0, 1, 4)) @ V
    f = lambda X: np.linalg.slogdet(X.reshape(-1, 4, 4))[1][:, None]
    J = np.linalg.inv(A).T.reshape(1, -1)
    assert check_flat(f, A.ravel(), J).verdict != "mismatch"
    assert not check_flat(f, A.ravel(), -J)


def x_log_x(x):
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1)), 0)


@pytest.mark.parametrize(
    ("f", "x", "legal", "untold", "wrong"),
    [
        (np.sqrt, 0.0, [0, np.inf], [5, -5], [np.nan]),
        (np.cbrt, 0.0, [0, np.inf], [7], [np.nan]),
        (np.sign, 0.0, [0], [7], [np.nan]),
        (np.floor, 1.0, [0], [1], [np.nan]),
        (lambda x: np.where(x >= 1, 2 * x + 1, x), 1.0, [2], [5, 1.5], [np.nan]),
        (x_log_x, 0.0, [-np.inf, 0], [], [np.inf, 5]),
        (lambda x: x * np.log(x), 0.0, [], [], []),
    ],
    ids=["sqrt", "cbrt", "sign", "floor", "jump between slopes", "x log x", "x log x, undefined at 0"],
)
def test_where_there_is_no_slope_not_every_number_is_a_choice(f, x, legal, untold, wrong):
    for verdict, choices in (("nondifferentiable", legal), ("inconclusive", untold), ("mismatch", wrong)):
        for choice in choices:
            assert check_flat(f, np.array([x]), np.array([[float(choice)]])).verdict == verdict, choice


def test_a_slope_that_grows_without_bound_inside_the_domain_is_not_told():
    from scipy.special import xlogy

    for choice in (-np.inf, 0.0, -30.0):
        assert check_flat(lambda x: xlogy(x, x), np.zeros(1), np.array([[choice]])).verdict == "inconclusive"


def singular(n, seed):
    """A matrix of rank n - 2: its determinant is 0, and so are all cofactors, up to the rounding of its entries."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, n - 2)) @ rng.normal(size=(n - 2, n))).ravel()


def determinant(X):
    n = int(X.shape[-1] ** 0.5)
    return np.linalg.det(X.reshape(*X.shape[:-1], n, n))[..., None]


OF_SECOND_ORDER = {
    "a product": (lambda X: ((X[..., 0] - 0.1) * (X[..., 1] - 0.3))[..., None], np.array([0.1, 0.3])),
    "expanded": (
        lambda X: (X[..., 0] * X[..., 1] - 0.3 * X[..., 0] - 0.1 * X[..., 1] + 0.03)[..., None],
        np.array([0.1, 0.3]),
    ),
    "beside terms that cancel": (
        lambda X: ((1 + X[..., 0]) * (1 + X[..., 1]) - 1 - X[..., 0] - X[..., 1])[..., None],
        np.zeros(2),
    ),
    "a sum of such": (
        lambda X: ((1 + X[..., ::2]) * (1 + X[..., 1::2]) - 1 - X[..., ::2] - X[..., 1::2]).sum(-1, keepdims=True),
        np.zeros(20),
    ),
    **{f"determinant {n} {seed}": (determinant, singular(n, seed)) for n in (3, 4, 6) for seed in range(3)},
}


@pytest.mark.parametrize("name", OF_SECOND_ORDER)
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_zero_along_every_input(name, shift):
    """Where f is 0 but for products of two steps, what rounding leaves along one input is neither slope nor kink."""
    f, x = OF_SECOND_ORDER[name]
    moved = lambda X: f(X) + shift * X[..., -1:]
    right = shift * np.eye(x.size)[-1:]
    assert check_flat(moved, x, right).verdict in ("ok", "nondifferentiable")
    for entry in (0, x.size - 1):
        wrong = right + 1e-4 * np.eye(x.size)[[entry]]
        assert check_flat(moved, x, wrong).verdict in ("mismatch", "inconclusive")
    assert check_flat(moved, x, right + 1e-4).verdict in ("mismatch", "inconclusive")


@pytest.mark.parametrize("seed", range(12))
def test_the_steps_of_rounding_are_no_kink_of_a_small_term(seed):
    """Beside values of 1 a term of 1e-11 is a staircase of few steps."""
    rng = np.random.default_rng(seed)
    x, small = rng.normal(size=6) * 10 ** rng.uniform(-2, 0.5), 10 ** rng.uniform(-12.5, -10, 5)

    def f(X):
        return np.sin(X[:, :1]) + 1 + np.tanh(X[:, 1:]) @ small[:, None]

    J = np.concatenate([np.cos(x[:1]), small / np.cosh(x[1:]) ** 2])[None]
    assert check_flat(f, x, J, seed).verdict in ("ok", "inconclusive")


# Functions that are 0 where x is, to the second order or the third; of most, the terms that cancel have their rounding.
FLAT_AT_0 = {
    "tanhshrink": lambda X: X - np.tanh(X),
    "x - atan": lambda X: X - np.arctan(X),
    "x - x / (1 + x**2)": lambda X: X - X / (1 + X**2),
    "x - sin": lambda X: X - np.sin(X),
    "1 - cos": lambda X: 1 - np.cos(X),
    "exp - 1 - x": lambda X: np.exp(X) - 1 - X,
    "3 - cos": lambda X: 3 - 1e-3 * np.cos(X),
}


@pytest.mark.parametrize("name", FLAT_AT_0)
@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("summed", [True, False])
def test_the_rounding_of_terms_that_cancel_is_no_slope(name, n, seed, summed):
    def f(X):
        values = FLAT_AT_0[name](X)
        return values.sum(axis=1, keepdims=True) if summed else values

    x = np.zeros(n)
    J = np.zeros((f(x[None]).shape[1], n))
    even = name in ("1 - cos", "3 - cos")
    assert check_flat(f, x, J, seed).verdict in (("ok",) if even else ("ok", "inconclusive"))
    for slope in (1e-3, 1e-9):
        assert check_flat(f, x, J + slope * np.eye(*J.shape), seed).verdict == "mismatch"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("constant", [1.0, 1e3, 1e5])
@pytest.mark.parametrize("power", [1.2, 4 / 3, 1.5, 1.7])
def test_beside_where_a_power_has_no_second_derivative(power, constant, seed):
    """Quotients part until the constant's rounding hides them, at steps longer than the distance to the 0."""
    rng = np.random.default_rng([seed, int(10 * power)])
    for d in 10 ** rng.uniform(-10, -5, 10):
        x = np.array([d * rng.choice([-1.0, 1.0])])
        J = power * np.sign(x[None]) * np.abs(x[None]) ** (power - 1)
        f = lambda X: np.abs(X) ** power + constant
        assert check_flat(f, x, J).verdict != "mismatch"
        assert check_flat(f, x, 3 - J).verdict != "ok"

"""Functions of every shape: right gradients pass, wrong ones do not, whatever unit, order, seed or constant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special

from multigrad._comparison.verdict import Status
from tests.flat import check_flat
from tests.shapes import coupled, white_noise

# f, its derivative, the largest abs(x)
FAMILIES = {
    "exp": (np.exp, np.exp, 50),
    "log": (lambda x: np.log(np.abs(x)), lambda x: 1 / x, 1e8),
    "sqrt": (lambda x: np.sqrt(np.abs(x)), lambda x: 0.5 * np.sign(x) / np.sqrt(np.abs(x)), 1e8),
    "inverse": (lambda x: 1 / x, lambda x: -1 / x**2, 1e8),
    "sin": (np.sin, np.cos, 1e8),
    "cube": (lambda x: x**3, lambda x: 3 * x * x, 1e8),
    "sigmoid": (special.expit, lambda x: special.expit(x) * special.expit(-x), 20),
    "softplus": (lambda x: np.logaddexp(x, 0), special.expit, 1e8),
    "erf": (special.erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), 4),
    "normal cdf": (special.ndtr, lambda x: np.exp(-x * x / 2) / np.sqrt(2 * np.pi), 6),
    "arctan": (np.arctan, lambda x: 1 / (1 + x * x), 1e8),
    "relu": (lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), 1e8),
    "cube root": (np.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2), 1e8),
    "wave": (lambda x: np.sin(1e3 * x) * x, lambda x: 1e3 * x * np.cos(1e3 * x) + np.sin(1e3 * x), 1e3),
    "offset": (lambda x: 1e6 + np.sin(x), np.cos, 1e8),
    "huber": (lambda x: np.where(np.abs(x) < 1, 0.5 * x * x, np.abs(x) - 0.5), lambda x: np.clip(x, -1, 1), 1e8),
    "three halves": (lambda x: np.abs(x) ** 1.5, lambda x: 1.5 * np.sign(x) * np.sqrt(np.abs(x)), 1e8),
    "gauss": (lambda x: np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x), 4),
}


def points(limit, rng, n=8):
    x = 10.0 ** rng.uniform(-8, 8, n) * rng.choice([-1, 1], n)
    return np.where(np.abs(x) > limit, rng.uniform(-limit, limit, n), x)


def one_entry(J, rng, times):
    """One entry times a number, among those that are not too small to be seen."""
    i, k = rng.permutation(np.argwhere(np.abs(J) > 1e-8 * np.abs(J).max(axis=1, keepdims=True)))[0]
    wrong = J.copy()
    wrong[i, k] *= times
    return wrong


def softmax(X):
    e = np.exp(X - X.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax_jacobian(x):
    s = softmax(x[None])[0]
    return np.diag(s) - np.outer(s, s)


def normalised(X):
    return (X - X.mean(axis=1, keepdims=True)) / np.sqrt(X.var(axis=1, keepdims=True) + 1e-5)


def normalised_jacobian(x):
    n, y = x.size, normalised(x[None])[0]
    return (np.eye(n) - 1 / n - np.outer(y, y) / n) / np.sqrt(x.var() + 1e-5)


def inverse_jacobian(x):
    inverse = np.linalg.inv(x.reshape(3, 3))
    return -np.einsum("ia,bj->ijab", inverse, inverse).reshape(9, 9)


COUPLED = {
    "softmax": (softmax, softmax_jacobian),
    "layer norm": (normalised, normalised_jacobian),
    "log sum exp": (lambda X: special.logsumexp(X, axis=1)[:, None], lambda x: softmax(x[None])),
    "norm": (lambda X: np.linalg.norm(X, axis=1)[:, None], lambda x: (x / np.linalg.norm(x))[None]),
    "product": (lambda X: X.prod(axis=1)[:, None], lambda x: (x.prod() / x)[None]),
    "sorted": (lambda X: np.sort(X, axis=1), lambda x: np.eye(x.size)[np.argsort(x)]),
    "largest": (lambda X: X.max(axis=1)[:, None], lambda x: np.eye(x.size)[[np.argmax(x)]]),
    "inverse": (lambda X: np.linalg.inv(X.reshape(-1, 3, 3)).reshape(-1, 9), inverse_jacobian),
    "std": (lambda X: X.std(axis=1)[:, None], lambda x: ((x - x.mean()) / (x.size * x.std()))[None]),
}


@pytest.mark.parametrize("name", COUPLED)
@pytest.mark.parametrize("scale", [1e-2, 1.0, 20.0])
def test_coupled_functions(name, scale):
    f, jacobian = COUPLED[name]
    rng = np.random.default_rng([11, len(name)])
    x = scale * rng.normal(size=9)
    J = jacobian(x)
    assert check_flat(f, x, J).verdict == "ok"
    for factor in (1e-2, 1e-4, 1e-5):
        assert check_flat(f, x, J * (1 + factor)).verdict == "mismatch", factor
    for times in (-1, 0):
        assert check_flat(f, x, one_entry(J, rng, times)).verdict == "mismatch", times
    assert check_flat(f, x, one_entry(J, rng, 1.001)).verdict != "ok"
    if len(J) == 9 and not np.allclose(J, J.T):
        assert check_flat(f, x, J.T).verdict == "mismatch"


@pytest.mark.parametrize("width", [10, 200])
def test_relu_networks(width):
    rng = np.random.default_rng(width)
    W, V, b, x = rng.normal(size=(width, 6)), rng.normal(size=(3, width)), rng.normal(size=width), rng.normal(size=6)
    f, J = lambda X: np.maximum(X @ W.T + b, 0) @ V.T, (V * (W @ x + b > 0)) @ W
    assert check_flat(f, x, J).verdict == "ok"
    assert check_flat(f, x, one_entry(J, rng, 1.0001)).verdict == "mismatch"


seeds = st.integers(0, 10**6)


def some_function(seed):
    rng = np.random.default_rng(seed)
    name = rng.choice(list(FAMILIES))
    f, df, limit = FAMILIES[name]
    x = points(min(limit, 100), rng, int(rng.integers(1, 7)))
    f, J = coupled(f, df, x, rng.choice(["apart", "sum", "mixed"]), rng)
    if J.any() and rng.random() < 0.5:
        J = one_entry(J, rng, rng.choice([-1, 0, 1.01]))
    return f, x, J


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from([-200, -20, -1, 1, 20, 200]))
def test_verdict_does_not_depend_on_the_unit_of_the_outputs(seed, k):
    f, x, J = some_function(seed)
    scaled = check_flat(lambda X: 2.0**k * f(X), x, 2.0**k * J)
    plain = check_flat(f, x, J)
    assert scaled.verdict == plain.verdict
    np.testing.assert_array_equal(scaled.legs[0].numeric, 2.0**k * plain.legs[0].numeric)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_verdict_does_not_depend_on_the_order_of_the_inputs(seed):
    f, x, J = some_function(seed)
    order = np.random.default_rng(seed).permutation(x.size)
    permuted = check_flat(lambda X: f(X[:, np.argsort(order)]), x[order], J[:, order])
    assert permuted.verdict == check_flat(f, x, J).verdict


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_verdict_does_not_depend_on_the_seed(seed):
    f, x, J = some_function(seed)
    assert check_flat(f, x, J, 1).verdict == check_flat(f, x, J, 2).verdict


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from([1.0, -1e3, 1e6]))
@example(61869, 1e6)  # quotients that part more and more, down to where rounding hides them
@example(224109, 1e6)  # the same, at a distance from the 0 of a power
def test_a_constant_more_turns_no_verdict_into_its_opposite(seed, constant):
    f, x, J = some_function(seed)
    moved, plain = check_flat(lambda X: f(X) + constant, x, J), check_flat(f, x, J)
    assert (plain.verdict, moved.verdict) != ("ok", "mismatch")
    if (plain.verdict, moved.verdict) == ("mismatch", "ok"):  # only entries that the constant's rounding hides
        wrong = plain.legs[0].status == Status.MISMATCH
        assert (np.abs(plain.legs[0].numeric[wrong]) < 1e-9 * np.maximum(1, np.abs(x)).max() * abs(constant)).all()


@pytest.mark.parametrize("size", [1e-14, 1e-11, 1e-8, 1e-6])
@pytest.mark.parametrize("seed", range(3))
def test_noise(size, seed):
    x = np.random.default_rng(seed).normal(size=3)
    f = lambda X: np.sin(X) + np.stack([white_noise(X[:, [i]], size) for i in range(3)], axis=1)[..., 0]
    assert check_flat(f, x, np.diag(np.cos(x)), seed).verdict == "ok"
    assert check_flat(f, x, 1.03 * np.diag(np.cos(x)), seed).verdict == "mismatch"


@pytest.mark.parametrize("size", [1e-3, 1e-2, 0.3, 1e3])
def test_noise_that_drowns_the_function(size):
    x = np.array([0.3, -0.7])
    f = lambda X: np.sin(X) + np.stack([white_noise(X[:, [i]], size) for i in range(2)], axis=1)[..., 0]
    for J in (np.diag(np.cos(x)), 1.001 * np.diag(np.cos(x)), np.zeros((2, 2))):
        assert check_flat(f, x, J).verdict != "ok" or J.any() and size < 1e-2
    assert check_flat(f, x, np.diag(np.cos(x))).verdict != "mismatch"


def test_single_precision_inside():
    f, x = lambda X: np.sin(X.astype(np.float32)).astype(float), np.array([0.3, -0.7, 1.2])
    assert check_flat(f, x, np.diag(np.cos(x))).verdict == "ok"
    assert check_flat(f, x, np.zeros((3, 3))).verdict == "mismatch"
    assert check_flat(f, x, 1.03 * np.diag(np.cos(x))).verdict == "mismatch"


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_large_constants(offset):
    f, x = lambda X: offset + np.sin(X), np.array([0.3, -0.7])
    assert check_flat(f, x, np.diag(np.cos(x))).verdict == "ok"
    assert check_flat(f, x, 1.01 * np.diag(np.cos(x))).verdict == "mismatch"


@pytest.mark.parametrize("offset", [1e12, 1e14])
def test_nothing_resolved_is_not_ok(offset):
    f, x = lambda X: offset + np.sin(X), np.array([0.3, -0.7])
    for factor in (1, 1.001, 2):
        assert check_flat(f, x, factor * np.diag(np.cos(x))).verdict != "ok"


@pytest.mark.parametrize("exponent", [-300, -150, -50, -12, -5, 5, 12, 50, 150, 250])
@pytest.mark.parametrize("bug", [1, 1.01, -1, 0])
def test_inputs_of_any_size(exponent, bug):
    size = 10.0**exponent
    x = size * np.array([1.3, -0.6])
    expected = "ok" if bug == 1 else "mismatch"
    J = np.diag(np.cos(x / size)) / size
    J[0, 0] *= bug
    said = check_flat(lambda X: np.sin(X / size), x, J).verdict
    # The wave has some 1e12 periods in what counts as one step at 0: too many to accuse anyone.
    assert said == expected or bug != 1 and exponent <= -12 and said == "inconclusive"
    J = 3.0 * np.eye(2)
    J[0, 0] *= bug
    assert check_flat(lambda X: 3 * X, x, J).verdict == expected


@pytest.mark.parametrize("exponent", [-200, -100, 100, 200])
def test_outputs_of_any_size(exponent):
    x, size = np.array([0.3, -0.7]), 10.0**exponent
    assert check_flat(lambda X: size * np.sin(X), x, size * np.diag(np.cos(x))).verdict == "ok"
    assert check_flat(lambda X: size * np.sin(X), x, 1.01 * size * np.diag(np.cos(x))).verdict == "mismatch"


def test_outputs_that_doubles_can_hardly_hold():
    x = np.array([0.3, -0.7])
    for factor in (1.01, -1):
        assert check_flat(lambda X: 1e-300 * np.sin(X), x, factor * 1e-300 * np.diag(np.cos(x))).verdict != "ok"


@pytest.mark.parametrize("d", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(
    ("f", "df", "edge", "inside"),
    [
        (np.log, lambda d: 1 / d, 0, 1),
        (np.sqrt, lambda d: 0.5 / np.sqrt(d), 0, 1),
        (lambda x: x**1.5, lambda d: 1.5 * np.sqrt(d), 0, 1),
        (lambda x: x**x, lambda d: d**d * (np.log(d) + 1), 0, 1),
        (lambda x: x * np.log(x), lambda d: np.log(d) + 1, 0, 1),
        (lambda x: np.sqrt(np.maximum(x, 0)), lambda d: 0.5 / np.sqrt(d), 0, 1),
        (lambda x: np.arcsin(x - 1), lambda d: 1 / np.sqrt(d * (2 - d)), 0, 1),
        (lambda x: np.log(np.log(1 + x)), lambda d: 1 / ((1 + d) * np.log1p(d)), 0, 1),
    ],
    ids=["log", "sqrt", "x**1.5", "x**x", "x log x", "cut sqrt", "arcsin", "log log"],
)
def test_beside_the_edge_of_the_domain(f, df, edge, inside, d):
    x = np.array([edge + inside * d])
    J = np.array([[df(d)]])
    right, wrong = check_flat(f, x, J), check_flat(f, x, 1.02 * J)
    assert right.verdict == "ok" or d < 1e-8 and right.verdict == "inconclusive"
    assert wrong.verdict == "mismatch" or d < 1e-8 and wrong.verdict == "inconclusive"


@pytest.mark.parametrize(("f", "a"), [(np.log1p, 1000799917193443.5), (np.arctanh, 500399958596722.0)])
def test_a_few_ulp_from_a_pole(f, a):
    """All steps are longer than the distance to the pole: what they show has no bound."""
    assert check_flat(f, np.array([-0.999999999999999]), np.array([[a]])).verdict != "mismatch"


def test_a_minimum_where_everything_is_0():
    f = lambda X: (1e5 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1 - X[:, :-1]) ** 2).sum(axis=1, keepdims=True)
    assert check_flat(f, np.ones(4), np.zeros((1, 4))).verdict == "ok"
    assert check_flat(f, np.ones(4), np.array([[0, 1e-3, 0, 0]])).verdict == "mismatch"


def test_flat_as_can_be():
    f = lambda X: np.where(X == 0, 0, np.exp(-1 / np.where(X == 0, 1, X) ** 2))
    assert check_flat(f, np.zeros(1), np.zeros((1, 1))).verdict == "ok"
    assert check_flat(f, np.zeros(1), np.full((1, 1), 1e-3)).verdict == "mismatch"
    x = np.array([0.05, -0.2])
    J = np.diag(np.exp(-1 / x**2) * 2 / x**3)
    assert check_flat(f, x, J).verdict == "ok"
    assert check_flat(f, x, 1.01 * J).verdict == "mismatch"


def test_steps_do_not_alias_with_periods():
    k = 2 * np.pi * 2.0**20
    f = lambda X: np.sin(k * X)
    assert check_flat(f, np.zeros(2), k * np.eye(2)).verdict == "ok"
    assert check_flat(f, np.zeros(2), np.zeros((2, 2))).verdict == "mismatch"


def test_saturated_entries_are_counted():
    x = np.array([0.5, 25.0])
    report = check_flat(np.tanh, x, np.diag(1 / np.cosh(x) ** 2))
    assert (report.verdict, report.count(Status.UNRESOLVED)) == ("ok", 1)

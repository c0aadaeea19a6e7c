"""Rounding dust in derivatives that should be 0, and errors that are larger than dust."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad._comparison.context import Context
from multigrad._comparison.verdict import Rules, Status, judge
from multigrad._differences.estimate import Estimate
from multigrad._run import Settings, run_check
from tests.flat import Flat, check_flat


class Dusty(Flat):
    """A backward whose zeros carry a rest of ``size``, another one for every cotangent."""

    def __init__(self, f, x, J, size):
        super().__init__(f, x, J)
        self.size = size

    def vjp(self, U):
        rest = np.where(self.J.any(axis=0), 0.0, self.size * np.sin(1e3 * U.sum(axis=1, keepdims=True)))
        return U @ self.J + rest


def angle(X):
    """The cosine of the angle to itself: 1 whatever x[1] is; and a plain output beside it."""
    one = X[:, 1] ** 2 / (X[:, 1] * X[:, 1])
    return np.stack([one, X[:, 0]], axis=1)


@pytest.mark.parametrize(("size", "verdict"), [(0.0, "ok"), (3e-16, "ok"), (1e-15, "ok"), (1e-12, "mismatch")])
def test_zeros_of_a_backward(size, verdict):
    f = Dusty(angle, np.array([0.5, 2.0]), np.array([[0.0, 0.0], [1.0, 0.0]]), size)
    assert run_check(f, Settings(modes=("reverse",))).verdict == verdict


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_dust_is_told_by_the_size_of_its_block(scale):
    def f(X):
        return scale * angle(X)

    J = scale * np.array([[0.0, 0.0], [1.0, 0.0]])
    assert run_check(Dusty(f, np.array([0.5, 2.0]), J, 1e-15 * scale), Settings(modes=("reverse",))).verdict == "ok"
    assert (
        run_check(Dusty(f, np.array([0.5, 2.0]), J, 1e-12 * scale), Settings(modes=("reverse",))).verdict == "mismatch"
    )


@pytest.mark.parametrize(("size", "verdict"), [(1e-15, "ok"), (1e-9, "mismatch")])
def test_dust_of_sparse_jacobians(size, verdict):
    x = np.linspace(0.5, 2.0, 1200)
    J = np.diag(2 * x)
    J[7, 7] = 0.0

    def f(X):
        squares = X**2
        squares[:, 7] = X[:, 7] / X[:, 7]
        return squares

    assert run_check(Dusty(f, x, J, size), Settings(modes=("reverse",))).verdict == verdict


@pytest.mark.parametrize(("claimed", "status"), [(8e-15, Status.UNRESOLVED), (8e-14, Status.MISMATCH)])
def test_a_row_that_is_dust_altogether(claimed, status):
    """The imaginary part of a real number: its row holds nothing that its dust could be measured by."""
    one = np.ones((1, 1))
    zero = np.zeros(1)
    context = Context(
        scale=claimed * one, row=claimed * one, dust=2e-14 * one, noise=zero, reach=zero, bend=zero, moved=zero + np.inf
    )
    estimate = Estimate(np.full((1, 1), 3e-17), np.full((1, 1), 2e-16))
    assert judge(np.full((1, 1), claimed), estimate, context, Rules.for_eps(2.0**-52, None, 0.0)).status == status


# Sums that are 0 but for rounding, whatever the inputs are.
NOTHING = {
    "sums in two orders": lambda X: X[:, 0] + X[:, 1] + X[:, 2] - (X[:, 2] + X[:, 1] + X[:, 0]),
    "a square and a product": lambda X: (X[:, 0] + X[:, 1]) ** 2 - X[:, 0] ** 2 - 2 * X[:, 0] * X[:, 1] - X[:, 1] ** 2,
    "an angle": lambda X: 1 - np.sin(X[:, 0]) ** 2 - np.cos(X[:, 0]) ** 2,
    "an inverse": lambda X: np.log(np.exp(X[:, 1])) - X[:, 1],
}


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("place", [0, 6, 12, 21, 24, 30])
def test_an_output_that_is_rounding(nothing, place):
    """Rounding has steps and slopes of its own, which are neither kinks nor errors of a gradient of 0.

    The terms that cancel are about as large as the derivatives beside them: there is nothing else to tell it by.
    """
    x = np.random.default_rng(place).uniform(-1.0, 1.0, size=3)

    def f(X):
        return np.stack([np.sin(X[:, 0]), nothing(X)], axis=1)

    J = np.array([[np.cos(x[0]), 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert check_flat(f, x, J).verdict == "ok"
    J[1, 1] = 1e-16
    assert check_flat(f, x, J).verdict == "ok"
    J[1, 1] = 1e-9
    assert check_flat(f, x, J).verdict in ("mismatch", "inconclusive")


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("size", [0.0, 2e-16, 1e-15])
@pytest.mark.parametrize("n", [3, 5, 12])
def test_an_output_that_is_rounding_and_nothing_beside_it(nothing, size, n):
    """It may be exactly 0 at all points nearby, or at nearly all, and show no noise."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, dust = rng.uniform(-1.5, 1.5, n), rng.uniform(-size, size, (1, n))
        for shift, verdicts in ((0.0, ("ok", "inconclusive")), (1e-9, ("mismatch", "inconclusive"))):
            assert check_flat(lambda X: nothing(X)[:, None], x, dust + shift, seed).verdict in verdicts


def softmax(X):
    p = np.exp(X - X.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def standard(X):
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


# Whatever x is, their value is 1 or 0, and all that is left of it and of the derivative is rounding.
INVARIANT = {
    "sum of a softmax": lambda X: softmax(X).sum(axis=1, keepdims=True),
    "cosine and sine": lambda X: np.sin(X) ** 2 + np.cos(X) ** 2,
    "square of a unit vector": lambda X: (X**2).sum(axis=1, keepdims=True) / (X * X).sum(axis=1, keepdims=True),
    "sum of a standardised vector": lambda X: standard(X).sum(axis=1, keepdims=True),
    "variance of a standardised vector": lambda X: standard(X).var(axis=1, keepdims=True),
    "inverse function": lambda X: (np.log(np.exp(X)) - X).sum(axis=1, keepdims=True),
}


@pytest.mark.parametrize("f", INVARIANT.values(), ids=INVARIANT)
@pytest.mark.parametrize("seed", range(4))
def test_functions_that_do_not_depend_on_x(f, seed):
    x = np.random.default_rng(seed).uniform(-1.5, 1.5, 5)
    n, m = len(x), f(x[None]).shape[1]
    dust = np.random.default_rng(seed).uniform(-2e-16, 2e-16, (m, n))
    assert run_check(Flat(f, x, dust), Settings(modes=("reverse",))).verdict == "ok"
    for error in (1e-3, 1e-9, 1e-12):
        assert run_check(Flat(f, x, dust + error), Settings(modes=("reverse",))).verdict not in (
            "ok",
            "nondifferentiable",
        )


@pytest.mark.parametrize("seed", range(4))
def test_a_product_with_the_inverse_is_not_called_wrong(seed):
    """The value is 1 and 0 to within rounding, often exactly; the derivative has the rounding of terms that cancel."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, 4) + np.array([2.0, 0.0, 0.0, 2.0])

    def f(X):
        A = X.reshape(-1, 2, 2)
        return (A @ np.linalg.inv(A)).reshape(len(X), 4)

    dust = rng.uniform(-2e-15, 2e-15, (4, 4))
    assert run_check(Flat(f, x, dust), Settings(modes=("reverse",))).verdict == "ok"
    assert run_check(Flat(f, x, dust + 1e-6), Settings(modes=("reverse",))).verdict not in ("ok", "nondifferentiable")


@pytest.mark.parametrize("scale", [1e-16, 1e-12, 1e-6])
def test_a_small_function_is_more_than_dust(scale):
    x = np.array([0.3, -0.7])
    J = scale * np.diag(np.cos(x))
    assert run_check(Flat(lambda X: scale * np.sin(X), x, J), Settings(modes=("reverse",))).verdict == "ok"
    assert run_check(Flat(lambda X: scale * np.sin(X), x, 0 * J), Settings(modes=("reverse",))).verdict == "mismatch"
    assert run_check(Flat(lambda X: scale * np.sin(X), x, 1.01 * J), Settings(modes=("reverse",))).verdict == "mismatch"


@pytest.mark.parametrize("offset", [1e13, 1e14, 1e15, 1e16, 1e18])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_what_is_lost_in_large_values_is_no_dust(offset, factor):
    x = np.array([0.3, -0.7])
    J = factor * np.cos(x)[None]
    report = run_check(
        Flat(lambda X: offset + np.sin(X).sum(axis=1, keepdims=True), x, J), Settings(modes=("reverse",))
    )
    assert report.verdict != "ok"


@pytest.mark.parametrize("name", ["sum of a softmax", "sum of a standardised vector", "inverse function"])
@pytest.mark.parametrize("seed", range(4))
def test_a_steep_claim_does_not_hide_in_rounding(name, seed):
    """Values of 1e-16 may jump about by all of their size, and still do not rise by 0.1 for each unit of x."""
    x = np.random.default_rng(seed).uniform(-1.5, 1.5, 5)
    centred = lambda X: INVARIANT[name](X) - np.round(INVARIANT[name](x[None]))
    for slope in (0.1, 30.0):
        J = slope * np.linspace(0.5, 1.0, 5)[None]
        assert run_check(Flat(centred, x, J), Settings(modes=("reverse",))).verdict == "mismatch"


class Uneven(Flat):
    """A backward that leaves another rest of ``size`` for every cotangent."""

    def __init__(self, f, x, J, size):
        super().__init__(f, x, J)
        self.size = size

    def vjp(self, U):
        return U @ self.J + self.size * np.sin(1e3 * np.abs(U).sum(axis=1, keepdims=True) + np.arange(self.x.size))


@pytest.mark.parametrize("terms", [1.0, 1e6])
@pytest.mark.parametrize("exact", [True, False])
def test_the_rounding_of_nothing_is_not_linear(terms, exact):
    """Of outputs that are 0, exactly or but for the rounding of their terms, a backward leaves that of its own terms."""

    def f(X):
        sums = terms * standard(X).sum(axis=1, keepdims=True)
        return np.repeat(np.zeros_like(sums) if exact else sums, 2, axis=1) * [1.0, -1.0]

    x = np.array([0.3, -0.7, 1.1, 0.6, -1.3])
    rounding = 1e-17 if exact else 1e-16 * terms
    assert run_check(Uneven(f, x, np.zeros((2, 5)), rounding), Settings(modes=("reverse",))).verdict != "mismatch"


@pytest.mark.parametrize("scale", [1.0, 1e-15])
def test_a_backward_that_is_not_linear_beside_outputs_that_are_nothing(scale):
    def f(X):
        return np.stack([scale * np.sin(X[:, 0]), 0 * X[:, 1]], axis=1)

    class Clipping(Flat):
        def vjp(self, U):
            return np.clip(U, -2.0, 2.0) @ self.J

    x = np.array([0.3, -0.7])
    J = np.array([[scale * np.cos(0.3), 0.0], [0.0, 0.0]])
    assert run_check(Clipping(f, x, J), Settings(modes=("reverse",))).verdict == "mismatch"


@pytest.mark.parametrize("size", [1.0, 1e-15])
@pytest.mark.parametrize("seed", range(4))
def test_what_oscillates_from_one_number_to_the_next_is_no_rounding(size, seed):
    """The sine of phases whose own rounding is more than a period looks like noise on steps of all sizes."""
    x = np.random.default_rng(seed).uniform(1e6, 1e7, 2)
    J = size * np.cos(x**3) * 3 * x**2
    report = check_flat(lambda X: size * np.sin(X**3).sum(axis=1, keepdims=True), x, J[None])
    assert report.verdict != "mismatch"


HIDDEN = {
    "a wave": (np.sin, np.cos),
    "a square": (lambda X: X**2, lambda x: 2 * x),
    "a bend": (lambda X: np.log1p(np.exp(3 * X)), lambda x: 3 / (1 + np.exp(-3 * x))),
}


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("offset", [1e12, 1e13, -1e14, 1e15])
@pytest.mark.parametrize("x", [0.7, -0.4, 2.9])
def test_large_values_do_not_say_that_a_derivative_is_0(name, offset, x):
    """They are constant but for rounding on all steps at which a slope of 1 is looked for first."""
    f, derivative = HIDDEN[name]
    right = derivative(np.array([x]))[:, None]
    for claimed in (0.0 * right, -right, 1e-17 * right):
        assert check_flat(lambda X: offset + f(X), np.array([x]), claimed).verdict in ("mismatch", "inconclusive")
    assert check_flat(lambda X: offset + f(X), np.array([x]), right).verdict in ("ok", "inconclusive")


@pytest.mark.parametrize("offset", [1e12, 1e13, -1e14, 1e15])
@pytest.mark.parametrize("x", [[0.7], [-0.4, 0.2, 5.0]])
def test_the_derivative_of_a_large_constant_is_0(offset, x):
    def constant(X):
        return np.full((len(X), 1), offset)

    def of_the_first(X):
        return np.concatenate([offset + 0 * X[:, :1], np.sin(X)], axis=1)

    x = np.array(x)
    assert check_flat(constant, x, np.zeros((1, len(x)))).verdict == "ok"
    assert check_flat(of_the_first, x, np.concatenate([np.zeros((1, len(x))), np.diag(np.cos(x))])).verdict == "ok"


@pytest.mark.parametrize("unit", [1e-15, 1e-14])
@pytest.mark.parametrize("x", [0.2, -0.3, 0.49])
@pytest.mark.parametrize("f", [np.round, lambda X: np.maximum(X - 0.5, 0), lambda X: np.floor(np.abs(X))])
def test_what_is_0_here_and_not_farther_away_is_no_rounding(unit, x, f):
    """A straight-through rule for steps of 1e-15 has a derivative as small as rounding leaves of terms of size 1."""
    for claimed, verdicts in (
        (0.0, ("ok",)),
        (unit, ("mismatch", "inconclusive")),
        (-unit, ("mismatch", "inconclusive")),
    ):
        assert check_flat(lambda X: unit * f(X), np.array([x]), [[claimed]]).verdict in verdicts


def weigh(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def attention(x):
    scores = x[:, :12].reshape(-1, 4, 3) @ x[:, 12:24].reshape(-1, 3, 4)
    return (weigh(scores) @ x[:, 24:].reshape(-1, 4, 3)).reshape(len(x), -1)


def kernel_mean(x):
    distances = (x[:, None, :6] - np.linspace(-1, 1, 3)[:, None]) ** 2
    weights = weigh(-distances / 0.02)
    return (weights * x[:, None, 6:]).sum(axis=-1)


def mixture(x):
    centres, widths = x[:, None, :4], np.exp(x[:, None, 4:])
    return np.log((np.exp(-(((np.linspace(-4, 4, 5)[:, None] - centres) / widths) ** 2) / 2) / widths).sum(axis=-1))


TAILS = {
    "attention": (attention, lambda rng: np.concatenate([4 * rng.normal(size=24), rng.normal(size=12)])),
    "kernel mean": (kernel_mean, lambda rng: rng.uniform(-1, 1, 12)),
    "mixture": (mixture, lambda rng: np.concatenate([4 * rng.normal(size=4), rng.normal(size=4) / 2 - 1])),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", TAILS)
def test_tails_of_exponentials_are_never_called_wrong(name, seed):
    """They are straight over short steps only, which move f by few roundings: those above 1e-12 of their row stay open."""
    f, draw = TAILS[name]
    x = draw(np.random.default_rng(seed))
    J = f(x + 1e-30j * np.eye(x.size)).imag.T / 1e-30
    assert check_flat(f, x, J, seed).verdict in ("ok", "inconclusive")
    rows = np.arange(len(J))
    largest = np.abs(J).argmax(axis=1)
    for factor in (0.0, -1.0, 1.001):
        wrong = J.copy()
        wrong[rows[:2], largest[:2]] *= factor
        assert check_flat(f, x, wrong, seed).verdict == "mismatch", factor


@pytest.mark.parametrize("far", [0.76, 0.77, 0.78])
@pytest.mark.parametrize("seed", range(12))
def test_a_bump_that_is_lower_than_a_few_roundings_is_not_denied(seed, far):
    """A neighbour's weight falls with its distance in colour: it is narrower than the steps at which it would show."""

    def bilateral(x):
        apart = x - x[:, :1]
        distance = np.array([0.0, far, far + 0.01]) + np.where(apart.real < 0, -apart, apart)
        return (weigh(-50 * distance**2) * x).sum(axis=1, keepdims=True)

    x = np.random.default_rng(seed).uniform(0.5, 0.6, 3)
    J = bilateral(x + 1e-30j * np.eye(3)).imag.T / 1e-30
    assert check_flat(bilateral, x, J, seed).verdict == "ok"
    for wrong in (1e-10, 1e-6, 0.1, 3.0):
        assert check_flat(bilateral, x, J + [[0, wrong, 0]], seed).verdict == "mismatch", wrong

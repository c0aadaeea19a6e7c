"""Derivatives by AD that carry more rounding than the function: they are not called wrong, and real errors are not excused."""

from typing import Any

import numpy as np
import pytest

from multigrad import check_grad

torch = pytest.importorskip("torch")
from tests.torch.scaled import Scaled


def verdict(fn: Any, x: Any, **options: Any) -> str:
    point = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    return str(check_grad(fn, point, raise_exception=False, **options).verdict)


def centred(x: Any) -> Any:
    return (x - x.mean(-1, keepdim=True)) ** 2


@pytest.mark.parametrize("x", [[-2.0, 2.0, 0.5, -0.5, 0.0, -1.5, 1.5], [0.5, 2.0, -2.0, 2.0, -1.0, 1.5]])
@pytest.mark.parametrize("fn", [centred, lambda x: torch.fft.rfft(x).abs() ** 2, lambda x: (0.1 * x - 0.05) ** 2])
def test_stationary_within_a_rounding_of_x(fn: Any, x: list[float]) -> None:
    """0.5 is the mean of the second, but not quite: f is 0 there, and its derivative is a rounding away from 0."""
    assert verdict(fn, x) == "ok"
    assert verdict(lambda x: fn(Scaled.apply(x, 1.0001)), x) == "mismatch"


CANCELLED = {
    "cosine": (lambda x: (1 - x.cos()) / x**2, 1e-3),
    "sine": (lambda x: (x - x.sin()) / x**3, 1e-3),
    "logarithm": (lambda x: (torch.log(1 + x) - x) / x**2, 3e-4),
}


@pytest.mark.parametrize("name", CANCELLED)
def test_cancellation(name: str) -> None:
    fn, small = CANCELLED[name]
    assert verdict(fn, [small, 0.7]) == "inconclusive"
    assert verdict(lambda x: fn(Scaled.apply(x, 1.05)), [small, 0.7]) == "mismatch"
    assert verdict(lambda x: fn(Scaled.apply(x, 1 + 1e-4)), [0.2, 0.7]) == "mismatch"


DROWNED = {
    "cosine": (lambda x: (1 - x.cos()) / x**2, 3e-4, 3.0),
    "exponential": (lambda x: (x.exp() - 1) / x, 1e-7, 1.2),
    "ripples": (lambda x: x**2 + 1e-11 * torch.sin(1e12 * x), 1.3, 1.0),
}


@pytest.mark.parametrize("name", DROWNED)
def test_most_of_a_derivative_may_be_rounding(name: str) -> None:
    """By how much it is off nothing can tell in advance; the mean of it around x is right."""
    fn, x, _ = DROWNED[name]
    report = check_grad(fn, torch.tensor(x, dtype=torch.float64, requires_grad=True), raise_exception=False)
    assert (report.verdict, {f.kind for f in report.findings}) == ("inconclusive", {"precision"}), str(report)


@pytest.mark.parametrize("name", ["cosine", "exponential"])
def test_nor_does_rounding_hide_a_factor_that_it_cannot_make(name: str) -> None:
    fn, x, factor = DROWNED[name]
    assert verdict(lambda x: fn(Scaled.apply(x, factor)), x) == "mismatch"


class Ramp(torch.autograd.Function):
    """A kink at 1, with the slope that it has on the other side of 1."""

    @staticmethod
    def forward(ctx: Any, x: Any, slopes: tuple[float, float]) -> Any:
        ctx.save_for_backward(x)
        ctx.slopes = slopes
        return torch.where(x < 1, slopes[0], slopes[1]) * (x - 1)

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        (x,) = ctx.saved_tensors
        return u * torch.where(x > 1, ctx.slopes[0], ctx.slopes[1]), None


@pytest.mark.parametrize("away", [1e-8, -1e-7, 2e-7, -2e-7])
@pytest.mark.parametrize("slopes", [(0.0, 1.0), (-1.0, 1.0), (1.0, 2.0)])
def test_a_kink_beside_x_is_no_rounding(away: float, slopes: tuple[float, float]) -> None:
    """The derivative jumps there as well, but once, and its mean is that of two slopes."""
    assert verdict(lambda x: Ramp.apply(x, slopes), [1.0 + away]) == "mismatch"


class Added(torch.autograd.Function):
    """The identity with a constant added to its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, error: float) -> Any:
        ctx.error = error
        return x.clone()

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        return u + ctx.error, None


SHORT = [-0.0679250380208467, -0.1310905951313286, 0.2274873758693443, -0.17124102462776292, 0.008538862755130161]


def alone(x: Any) -> Any:
    return torch.nn.functional.normalize(x[:, None], dim=1)


def weighed(x: Any) -> Any:
    """A layer norm of one number, which is 0 whatever its weight."""
    return torch.nn.functional.layer_norm(x[:1], (1,), x[1:], eps=1e-5)


@pytest.mark.parametrize(("fn", "x"), [(weighed, [-4.827, -4.827]), (weighed, [3.3, 0.7]), (alone, SHORT)])
def test_a_derivative_of_nothing_but_rounding(fn: Any, x: list[float]) -> None:
    """How large the terms are that cancel in it shows nowhere in f."""
    assert verdict(fn, x) == "ok"
    assert verdict(lambda x: fn(Added.apply(x, 1e-9)), x) == "mismatch"
    assert verdict(lambda x: Added.apply(x, 1e-13) * 0, x) == "mismatch"


SECOND = {
    "difference": (lambda x: torch.nn.functional.mse_loss(x, x.sin()), [0.003, 1.2, -0.4]),
    "smaller": (lambda x: torch.nn.functional.mse_loss(x, x.sin()), [0.001, 1.2, -0.4]),
    "sign": (lambda x: torch.nn.functional.normalize(x.sum()[None], dim=0), [0.3, -1.7, 0.2]),
    "one class": (lambda x: torch.nn.functional.cross_entropy(x[:, None], torch.zeros(3).long()), [0.3, 0.1, 0.2]),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    fn, x = SECOND[name]
    assert verdict(fn, x, order=2) in ("ok", "inconclusive")


def test_a_wrong_second_derivative_is_not_excused() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3 * 1e-6

        @staticmethod
        def backward(ctx: Any, u: Any) -> Any:
            (x,) = ctx.saved_tensors
            return u * 3e-6 * x * x.detach()

    assert verdict(Wrong.apply, [0.3, 0.7], order=2) == "mismatch"


def quantile(x: Any) -> Any:
    return np.quantile(x, 0.3)


@pytest.mark.parametrize("ties", [3, 4, 9, 13])
def test_weights_of_tied_entries(ties: int) -> None:
    """Each tied entry may have the weight of any place; along its own input it shows no slope but the last's."""
    x = np.array([*np.zeros(ties), 1.0])
    place = 0.3 * ties
    low = int(place)
    gradient = np.zeros(ties + 1)
    gradient[[low, low + 1]] = 1 - (place - low), place - low
    # In another order than that of the places.
    gradient[:ties] = np.roll(gradient[:ties], 1)
    check = {"fn": quantile, "inputs": x, "backend": "numpy", "raise_exception": False}
    assert check_grad(**check, jac=lambda x: gradient).verdict == "nondifferentiable"
    for wrong in (1.001 * gradient, 1.1 * gradient, -gradient, gradient + 0.2, np.full(ties + 1, 1 / ties)):
        if not np.isclose(wrong.sum(), 1):
            assert check_grad(**check, jac=lambda x, wrong=wrong: wrong).verdict == "mismatch"


@pytest.mark.parametrize("error", [2e-4, -2e-4, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("column", [0, 2])
def test_a_kink_is_no_excuse_for_another_input(error: float, column: int) -> None:
    """|x1| + |x4| has a kink at 0; it has nothing to do with x0, nor the slope along x2 with either."""
    x = np.array([0.7, 0.0, 0.3, 2.0, 0.0, 0.0])

    def jac(x: Any) -> Any:
        J = np.zeros((3, 6))
        J[[0, 1, 2, 0, 1, 2], np.arange(6)] = np.sign(x)
        J[1, column] += error
        return J

    report = check_grad(lambda x: np.abs(x[:3]) + np.abs(x[3:]), x, backend="numpy", jac=jac, raise_exception=False)
    assert report.verdict == "mismatch"


class Clipped(torch.autograd.Function):
    """The identity with a gradient that is cut off at some size of the cotangent."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        return u.clamp(-20.0, 20.0)


def ill_conditioned(n: int, seed: int, digits: float) -> tuple[Any, list[float]]:
    """x -> A^-1 x x^T A^-1 1, where the condition number of A has so many digits."""
    generator = torch.Generator().manual_seed(seed)
    U, V = (torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0] for _ in range(2))
    A = U @ torch.diag(torch.logspace(0, -digits, n, dtype=torch.float64)) @ V
    return lambda x: torch.linalg.inv(A + torch.outer(x, x)).sum(1), torch.randn(n, generator=generator).tolist()


@pytest.mark.parametrize("digits", [6, 9, 12])
@pytest.mark.parametrize("seed", range(8))
def test_products_that_are_rounded_otherwise_than_their_rows(seed: int, digits: int) -> None:
    fn, x = ill_conditioned(6, seed, digits)
    assert verdict(fn, x) in ("ok", "inconclusive")


@pytest.mark.parametrize("seed", range(4))
def test_a_backward_that_is_not_linear_is_no_rounding(seed: int) -> None:
    fn, x = ill_conditioned(6, seed, 3)
    assert verdict(lambda x: fn(Clipped.apply(x)), x) == "mismatch"
    assert verdict(lambda x: Clipped.apply(fn(x)), x) == "mismatch"


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_derivative_that_is_all_rounding(condition: float, n: int, seed: int) -> None:
    """That of A @ inv(A) is 0, and by AD the difference of terms as large as the square of the condition number."""
    generator = torch.Generator().manual_seed(seed)
    U, V = (torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))[0] for _ in range(2))
    sizes = torch.logspace(0, -float(np.log10(condition)), n, dtype=torch.float64)
    A = (U @ torch.diag(sizes) @ V).tolist()
    for method in ("full", "probe"):
        assert verdict(lambda A: A @ torch.linalg.inv(A), A, method=method) in ("ok", "inconclusive")
    wrong = verdict(lambda A: Scaled.apply(A, 1.01) @ torch.linalg.inv(A), A)
    assert wrong == "mismatch" if condition != 1e6 else wrong in ("mismatch", "inconclusive")

"""Functions whose factors are lost in the rounding of 1, and outputs that are rounding altogether."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import check_grad
from tests.flat import check_flat

torch = pytest.importorskip("torch")


def sloped(X: Any) -> Any:
    return X * (1 + np.tanh(X))


def slope(x: float) -> float:
    """Of ``sloped``, without cancellation."""
    e = np.exp(2 * x)
    return float(2 * e / (1 + e) + 4 * x * e / (1 + e) ** 2)


@pytest.mark.parametrize("x", [-16.03, -16.61, -17.2, -17.53, -20.1, -25.3])
def test_the_slope_of_a_plateau_accuses_nobody(x: float) -> None:
    """Between two roundings of 1 + tanh(x) the function is straight, with another slope than its own."""
    assert check_flat(sloped, np.array([x]), np.array([[slope(x)]])).verdict != "mismatch"


@pytest.mark.parametrize("x", np.linspace(-9, -4, 11).tolist())
def test_gelu_far_to_the_left(x: float) -> None:
    report = check_grad(torch.nn.functional.gelu, torch.tensor([x]).double().requires_grad_(), raise_exception=False)
    assert report.verdict != "mismatch"


@pytest.mark.parametrize("x", [-9.5, -6.1, -3.2])
def test_where_the_factor_still_moves_a_wrong_slope_is_seen(x: float) -> None:
    assert check_flat(sloped, np.array([x]), np.array([[slope(x) * 1.3]])).verdict == "mismatch"


@pytest.mark.parametrize("period", [1e-8, 1e-5, 1e-2])
def test_teeth_that_no_rounding_makes_excuse_nothing(period: float) -> None:
    saw = lambda X: X - period * np.floor(X / period)
    x = np.array([0.37 + 0.4 * period])
    assert check_flat(saw, x, np.array([[1.0]])).verdict == "ok"
    assert check_flat(saw, x, np.array([[1.1]])).verdict == "mismatch"


def test_an_output_that_is_rounding_hides_no_error_of_the_others() -> None:
    """Those of a padded convolution are: noise altogether, and no excuse for a backward that is not linear."""
    spectrum = torch.linspace(-1, 1, 5, dtype=torch.double)

    def convolved(x: Any) -> Any:
        return torch.fft.irfft(torch.fft.rfft(x, n=16) * torch.fft.rfft(spectrum, n=16), n=16)

    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return convolved(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (gradient,) = torch.func.vjp(convolved, *ctx.saved_tensors)[1](g)
            return torch.where(g.abs().max() > 2, gradient / 2, gradient)

    x = torch.sin(torch.arange(10, dtype=torch.double)).requires_grad_()
    report = check_grad(Clipped.apply, x, raise_exception=False)
    assert report.verdict == "mismatch"
    assert "nonlinear_backward" in {f.kind for f in report.findings}

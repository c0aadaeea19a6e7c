"""gradcheck: the classic call, with its classic answers, for every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import GradcheckError, gradcheck
from multigrad.errors import InvalidUse

torch = pytest.importorskip("torch")
jnp = pytest.importorskip("jax.numpy")


class Doubled(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0].cos()


def double(*shape: int) -> Any:
    torch.manual_seed(0)
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


def test_right_gradients_are_true() -> None:
    linear = torch.nn.Linear(5, 3).double()
    assert gradcheck(lambda x: linear(x), double(10, 5)) is True
    assert gradcheck(torch.sin, (double(3),)) is True
    assert gradcheck(lambda x: np.sin(x), np.array([1.0, 2.0])) is True


def test_wrong_gradients_raise_or_are_false() -> None:
    assert gradcheck(Doubled.apply, (double(2),), raise_exception=False) is False
    with pytest.raises(GradcheckError) as caught:
        gradcheck(Doubled.apply, (double(2),))
    text = str(caught.value)
    assert text.startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:")
    assert "analytical:" in text
    assert "d output[0] / d inputs[0][0]" in text
    assert isinstance(caught.value, RuntimeError)


def test_the_tolerances_are_those_of_allclose() -> None:
    slightly = 1 + 5e-4
    scaled = lambda x: x.detach().sin() + (x - x.detach()) * x.detach().cos() * slightly
    assert gradcheck(scaled, (double(3),), raise_exception=False, rtol=1e-3)
    assert not gradcheck(scaled, (double(3),), raise_exception=False, rtol=1e-5, atol=1e-9)


def test_float32_is_evaluated_as_it_is_and_named_as_the_likely_cause() -> None:
    torch.manual_seed(0)
    conv, x = torch.nn.Conv2d(1, 1, 1, 1), torch.randn(1, 1, 2, 2, requires_grad=True)
    with pytest.raises(GradcheckError, match=r"inputs\[0\] \(float32\) is too coarse for a step of 1e-06"):
        gradcheck(lambda x: conv(x), (x,))
    assert gradcheck(lambda x: conv(x), (x,), eps=1e-2, atol=1e-2, rtol=1e-2) is True
    with pytest.raises(GradcheckError, match="float32"):
        gradcheck(lambda x: x**2, jnp.array([1.0, 2.0], "float32"))


def test_only_inputs_that_require_grad_are_checked() -> None:
    assert gradcheck(lambda x, y: Doubled.apply(x) + y, (torch.zeros(2, dtype=torch.double), double(2))) is True
    with pytest.raises(InvalidUse, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, (torch.zeros(2, dtype=torch.double),), raise_exception=False)


def test_sparse_inputs_are_to_be_asked_for() -> None:
    x = torch.eye(2, dtype=torch.double).to_sparse().requires_grad_()
    with pytest.raises(InvalidUse, match="check_sparse_nnz"):
        gradcheck(lambda s: s.to_dense(), (x,))
    assert gradcheck(lambda s: s.to_dense(), (x,), check_sparse_nnz=True) is True


def test_what_the_function_raises_comes_through() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        gradcheck(fail, (double(2),), raise_exception=False)


def test_nothing_is_close_to_an_infinite_difference_quotient() -> None:
    x = torch.tensor([0.5], dtype=torch.double, requires_grad=True)
    assert not gradcheck(lambda x: torch.where(x > 0.5, torch.inf, 3 * x), x, raise_exception=False)


def test_the_input_that_is_too_coarse_is_the_one_named() -> None:
    coarse = torch.ones(2, requires_grad=True)
    with pytest.raises(GradcheckError, match=r"dtype of inputs\[1\] \(float32\) is"):
        gradcheck(lambda x, y: (x * y).sum(), (double(2), coarse))


@pytest.mark.parametrize("eps", [0.0, -1e-6, float("nan")])
def test_a_step_that_is_none(eps: float) -> None:
    with pytest.raises(InvalidUse, match="eps, the step"):
        gradcheck(lambda x: x**2, double(2), eps=eps)

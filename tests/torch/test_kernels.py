"""Custom backward passes for low precision: right ones pass, and an error of a percent does not."""

import numpy as np
import pytest
import torch
from torch import nn

from multigrad import check_grad

from .kernels import KERNELS

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_right(name, dtype):
    make, _ = KERNELS[name]
    fn, inputs = make(dtype, 1.0)
    report = check_grad(fn, inputs, raise_exception=False)
    assert report.verdict == "ok", str(report)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_wrong(name, dtype):
    make, factor = KERNELS[name]
    fn, inputs = make(dtype, factor)
    report = check_grad(fn, inputs, raise_exception=False)
    assert report.verdict == "mismatch", str(report)


def round_straight_through(x):
    return x + (torch.round(x * 16) / 16 - x).detach()


def fake_quantised(x):
    return torch.fake_quantize_per_tensor_affine(x.float(), 0.1, 0, -128, 127).to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("fn", [round_straight_through, fake_quantised])
def test_quantised_by_the_user_is_not_the_rounding_of_low_precision(fn, dtype):
    torch.manual_seed(0)
    assert check_grad(fn, torch.randn(6).to(dtype), raise_exception=False).verdict == "mismatch"


# ------------------------------------------------------------------------------------------------ errors as small as rounding


class FixedPoint(torch.autograd.Function):
    """Iterates until the user's own precision is reached; its derivative is that of the limit."""

    @staticmethod
    def forward(ctx, b):
        z = torch.zeros_like(b)
        for _ in range(200):
            before, z = z, 0.3 * torch.tanh(z) + b
            if (z - before).abs().max() < torch.finfo(z.dtype).eps:
                break
        ctx.save_for_backward(z)
        return z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g / (1 - 0.3 * (1 - torch.tanh(z) ** 2)) * FixedPoint.factor

    factor = 1.0


def test_an_iteration_to_the_tolerance_of_float32():
    torch.manual_seed(0)
    assert check_grad(FixedPoint.apply, torch.randn(3))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_iteration_with_a_wrong_derivative(dtype, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(FixedPoint, "factor", 1.01)
    assert check_grad(FixedPoint.apply, torch.randn(3).to(dtype), raise_exception=False).verdict == "mismatch"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_an_iteration_to_the_tolerance_of_coarser_types(dtype):
    torch.manual_seed(0)
    report = check_grad(FixedPoint.apply, torch.randn(3).to(dtype), raise_exception=False)
    assert report.verdict in ("ok", "inconclusive"), str(report)


def with_two_scales(scale):
    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * scale).sin()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (g.float() * 0.1 * (x.float() * 0.1).cos()).to(g.dtype)

    return Sine.apply


def test_a_constant_that_is_rounded_to_float32():
    assert check_grad(with_two_scales(torch.tensor(0.1)), torch.tensor([0.3, -1.0]))


def test_a_constant_that_is_rounded_to_bfloat16_cannot_be_told_from_an_error():
    fn, x = with_two_scales(torch.tensor(0.1).bfloat16()), torch.tensor([0.3, -1.0]).bfloat16()
    report = check_grad(fn, x, raise_exception=False)
    assert report.verdict == "inconclusive" and "rounded constant" in report.reason
    assert check_grad(fn, x, rtol=2e-3)
    assert check_grad(fn, x, rtol=1e-7, raise_exception=False).verdict == "mismatch"


# ------------------------------------------------------------------------------------------------ half inside NumPy


def sine_in_half(factor):
    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(np.sin(x.detach().numpy().astype(np.float16))).to(x.dtype)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos() * factor

    return Sine.apply


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "inconclusive"), (1.05, "mismatch")])
def test_float16_that_torch_cannot_see_shows_as_steps(factor, verdict):
    torch.manual_seed(0)
    report = check_grad(sine_in_half(factor), torch.randn(4).half(), raise_exception=False)
    assert report.verdict == verdict, str(report)
    (error,) = [finding for finding in report.findings if finding.kind == "precision"]
    assert "steps" in error.evidence


@pytest.mark.parametrize(
    "fn", [lambda x: torch.round(x, decimals=3), lambda x: torch.div(x, 0.0137, rounding_mode="floor")]
)
def test_steps_finer_than_low_precision_may_be_meant(fn):
    x = torch.tensor([-8.5, -1.7656, 8.4375, 3.6094, 4.9375], dtype=torch.bfloat16)
    assert check_grad(fn, x, raise_exception=False).verdict in ("ok", "inconclusive")


@pytest.mark.parametrize(("factor", "verdicts"), [(0.0, {"inconclusive", "mismatch"}), (-1.0, {"mismatch"})])
def test_a_gradient_of_steps_that_is_wrong(factor, verdicts):
    report = check_grad(sine_in_half(factor), torch.tensor([0.3, -0.7, 1.2]).half(), raise_exception=False)
    assert report.verdict in verdicts


# ------------------------------------------------------------------------------------------------ parameters


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_that_the_users_parameters_have_stay_theirs(dtype):
    make, _ = KERNELS["linear_of_a_module"]
    module, inputs = make(dtype, 1.0)
    before = {}
    for name, parameter in module.named_parameters():
        parameter.grad = before[name] = torch.ones_like(parameter)
    assert check_grad(module, inputs)
    for name, parameter in module.named_parameters():
        assert parameter.grad is before[name] and parameter.dtype is dtype and (parameter.grad == 1).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_captured_tensors_that_are_made_of_others(dtype):
    torch.manual_seed(0)
    w = 2 * torch.randn(3, dtype=dtype, requires_grad=True)
    report = check_grad(lambda x: (x * w).sin(), torch.randn(3, dtype=dtype), params="captured", raise_exception=False)
    assert report.verdict == "ok" and report.sharpness < 1e-8, str(report)


def test_parameters_of_several_dtypes_are_told_as_they_are():
    seen = []

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(3, 3).bfloat16(), nn.LayerNorm(3)

        def forward(self, x):
            seen.append((self.linear.weight.dtype, self.norm.weight.dtype))
            return self.norm(self.linear(x.bfloat16()).float())

    assert check_grad(Mixed(), torch.randn(2, 3))
    assert set(seen) == {(torch.bfloat16, torch.float32)}


def test_the_second_derivative_of_weight_norm_is_judged_as_torch_itself_judges_it():
    def normed(v, g):
        return torch._weight_norm(v, g, 0)

    v, g = torch.randn(2, 3).double().requires_grad_(), torch.rand(2, 1).double().requires_grad_()
    right = torch.autograd.gradgradcheck(normed, (v, g), raise_exception=False)
    report = check_grad(normed, (v, g), order=2, raise_exception=False)
    assert report.verdict == ("ok" if right else "mismatch")
    assert check_grad(lambda v, g: v * (g / v.norm(dim=1, keepdim=True)), (v, g), order=2)

import numpy as np
import pytest
import torch
from torch import nn

from multigrad import check_grad
from multigrad.errors import Unsupported

from .flattening import flatten, forward, numerical, real


class Square(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g

    @staticmethod
    def jvp(ctx, t):
        return 5 * t


def test_the_users_own_jvp_runs():
    f = flatten(Square.apply, real(3))
    np.testing.assert_array_equal(forward(f), 5 * np.eye(3))
    np.testing.assert_array_equal(f.jvp(np.eye(3)), 5 * np.eye(3))


def test_inputs_do_not_require_grad_inside():
    seen = []

    def fn(x, y):
        seen.append((x.requires_grad, y.requires_grad))
        return x * y

    f = flatten(fn, real(2).requires_grad_(), real(2).requires_grad_())
    seen.clear()
    f.jvp(np.ones((1, 4)))
    assert set(seen) == {(False, False)}


class NoJvp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_functions_without_forward_mode():
    attention = nn.functional.scaled_dot_product_attention
    for fn, shape in ((NoJvp.apply, (3,)), (lambda x: attention(x, x, x), (1, 1, 2, 2))):
        f = flatten(fn, real(*shape))
        with pytest.raises(Unsupported, match="no forward mode"):
            f.jvp(np.ones((1, len(f.x))))


@pytest.fixture(scope="module")
def double():
    @torch.library.custom_op("multigrad_tests::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    return double


def jvp_after_a_probe(f, rows):
    f.jvp(np.ones((1, 2)))
    f.jvp(np.ones((rows, 2)))


@pytest.mark.parametrize("rows", [1, 2])
def test_custom_operators_that_lose_tangents(double, rows):
    f = flatten(lambda x: double(x).sin(), real(2))
    with pytest.raises(Unsupported, match="multigrad_tests.double"):
        jvp_after_a_probe(f, rows)
    with pytest.raises(Unsupported, match="no reverse mode"):
        f.vjp(np.ones((1, 2)))


@pytest.mark.parametrize("rows", [1, 2])
def test_custom_operators_inside_a_torch_function(double, rows):
    """Torch functions in Python run with all function modes off, so that nothing is seen of what they call."""

    def composite(x):
        if torch.overrides.has_torch_function_unary(x):
            return torch.overrides.handle_torch_function(composite, (x,), x)
        return double(x)

    f = flatten(composite, real(2))
    with pytest.raises(Unsupported, match="multigrad_tests.double"):
        jvp_after_a_probe(f, rows)


def test_custom_operators_that_no_tangent_reaches_or_that_a_function_wraps(double):
    class Wrapped(Square):
        @staticmethod
        def forward(x):
            return double(x)

    constant = real(2, seed=3)
    f = flatten(lambda x: double(constant) * Wrapped.apply(x), real(2))
    np.testing.assert_array_equal(forward(f), np.diag(10 * constant.numpy()))


def test_exceptions_of_the_function_come_through():
    fine = [1]
    f = flatten(lambda x: x * fine[0], real(2))
    fine.clear()
    for rows in (1, 2):
        with pytest.raises(IndexError):
            f.jvp(np.ones((rows, 2)))


def test_a_function_that_differentiates_inside():
    x = real(3).requires_grad_()
    f = flatten(lambda x: torch.autograd.grad((x**3).sum(), x, create_graph=True)[0], x)
    np.testing.assert_allclose(forward(f), np.diag(6 * f.x), rtol=1e-13)


def test_captured_parameters_carry_tangents_and_keep_their_version():
    w = real(2).requires_grad_()
    lstm = nn.LSTM(2, 2, dtype=torch.float64)
    version = w._version
    f = flatten(lambda x: lstm(x * w)[0], real(1, 1, 2), params="captured")
    np.testing.assert_allclose(forward(f), numerical(f), atol=1e-10)
    assert w._version == version
    with torch.autograd.forward_ad.dual_level():
        assert torch.autograd.forward_ad.unpack_dual(w).tangent is None


def test_outputs_that_no_tangent_reaches_are_zero():
    f = flatten(lambda x: (x * 2, x.detach()), real(2))
    np.testing.assert_array_equal(forward(f), [[2, 0], [0, 2], [0, 0], [0, 0]])


@torch.library.custom_op("multigrad_tests::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


doubled.register_autograd(lambda ctx, g: 2 * g)


@torch.library.custom_op("multigrad_tests::tripled", mutates_args=())
def tripled(x: torch.Tensor) -> torch.Tensor:
    return 3 * x


@pytest.mark.parametrize("method", ["full", "probe"])
@pytest.mark.parametrize(
    ("fn", "modes", "verdict"),
    [
        (doubled, ("reverse", "forward"), "ok"),
        (doubled, ("forward",), "inconclusive"),
        (lambda x: x.sin() + doubled(x), ("reverse", "forward"), "ok"),
        (tripled, ("forward",), "inconclusive"),
    ],
)
def test_a_mode_that_is_lost_on_the_way_is_noted(fn, modes, verdict, method):
    """That an operation loses the tangents shows at the second product, when a comparison is under way."""
    report = check_grad(fn, real(9), modes=modes, method=method, raise_exception=False)
    assert report.verdict == verdict
    (note,) = [f for f in report.findings if f.kind == "mode_unavailable"]
    assert note.where == "forward"
    assert "tangents are lost" in note.evidence

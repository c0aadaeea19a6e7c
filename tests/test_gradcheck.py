"""gradcheck: the classic call, with its semantics, for every backend."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad import gradcheck
from multigrad.errors import GradcheckError, InvalidUse

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        return 2.1 * ctx.saved_tensors[0] * g


@jax.custom_vjp
def wrong(x):
    return x**2


wrong.defvjp(lambda x: (x**2, x), lambda x, g: (2.1 * x * g,))


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_right():
    assert gradcheck(lambda x: x**2, (leaf(1.0, 2.0),)) is True
    assert gradcheck(lambda x: x**2, leaf(1.0, 2.0)) is True
    assert gradcheck(lambda x: jnp.sin(x), jnp.array([1.0, 2.0])) is True
    assert gradcheck(lambda x, y: (x @ y, x * 3), (leaf(1.0, 2.0), leaf(0.5, -1.0))) is True


def test_a_linear_layer():
    torch.manual_seed(0)
    layer = torch.nn.Linear(5, 3).double()
    assert gradcheck(layer, torch.randn(4, 5, dtype=torch.double, requires_grad=True)) is True


@pytest.mark.parametrize(
    ("f", "x"), [(Wrong.apply, lambda: leaf(1.0, 2.0)), (wrong, lambda: jnp.array([1.0, 2.0]))], ids=["torch", "jax"]
)
def test_wrong(f, x):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(f, x())
    text = str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    for part in (
        "Jacobian mismatch for output 0 with respect to input 0,",
        "numerical:[[2. 0.]\n [0. 4.]]",
        "analytical:[[2.1 0. ]\n [0.  4.2]]",
        "2 of 4 entries are not close",
        "d output[1] / d inputs[0][1]: analytical 4.2, numerical 4",
    ):
        assert part in text
    assert gradcheck(f, x(), raise_exception=False) is False


def test_tolerances_are_those_of_allclose():
    """abs(a - n) <= atol + rtol * abs(n), n numerical: 4.2 beside 4."""
    x = leaf(2.0)
    assert gradcheck(Wrong.apply, x, atol=0.2 + 1e-6, rtol=0.0) is True
    assert gradcheck(Wrong.apply, x, atol=0.2 - 1e-6, rtol=0.0, raise_exception=False) is False
    assert gradcheck(Wrong.apply, x, atol=0.0, rtol=0.05 + 1e-6) is True
    assert gradcheck(Wrong.apply, x, atol=0.0, rtol=0.05 - 1e-6, raise_exception=False) is False


def test_the_step_is_absolute_and_central():
    """The difference of x**3 is 3 x^2 + eps^2."""
    cube = lambda x: x**3
    assert gradcheck(cube, leaf(1.0), eps=0.1, atol=0.01 + 1e-9, rtol=0) is True
    assert gradcheck(cube, leaf(1.0), eps=0.1, atol=0.01 - 1e-9, rtol=0, raise_exception=False) is False


def test_agrees_with_torch():
    rng = np.random.default_rng(0)
    functions = [torch.sin, lambda x: torch.softmax(x, 0), Wrong.apply, lambda x: x.abs().sqrt(), torch.relu]
    for f in functions:
        for size in (1e-4, 1.0, 100.0):
            x = leaf(*(size * rng.normal(size=3)))
            theirs = torch.autograd.gradcheck(f, (x,), raise_exception=False)
            assert gradcheck(f, (x,), raise_exception=False) is theirs, (f, size)


def test_a_kink_is_where_the_classic_call_fails():
    assert gradcheck(torch.relu, leaf(0.0), raise_exception=False) is False


def test_no_input_requires_grad():
    with pytest.raises(InvalidUse, match="at least one input tensor to require gradient") as caught:
        gradcheck(lambda x: x**2, torch.ones(2, dtype=torch.float64))
    assert isinstance(caught.value, ValueError) and caught.value.kind == "no_differentiable_input"


def test_inputs_that_do_not_require_grad_are_not_perturbed():
    assert gradcheck(lambda x, y: x * y.detach().round(), (leaf(1.0), torch.full((1,), 2.5, dtype=torch.float64)))


def test_single_precision_is_named_as_the_likely_cause():
    x = torch.linspace(0.1, 1.0, 5, requires_grad=True)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(lambda x: torch.sin(x), x)
    assert "float32 is too coarse for a step of 1e-06" in str(caught.value)
    assert "check_grad evaluates such functions in float64" in str(caught.value)
    assert gradcheck(lambda x: torch.sin(x), x, eps=1e-2, atol=1e-3) is True


def test_a_step_lost_in_the_inputs_is_named():
    with pytest.raises(GradcheckError, match="lost in the rounding"):
        gradcheck(lambda x: x**2 / 1e9, leaf(1e9))


def test_sparse_inputs_are_asked_for():
    x = torch.eye(3, dtype=torch.float64).to_sparse().requires_grad_()
    square = lambda x: (x.to_dense() ** 2).sum()
    with pytest.raises(InvalidUse, match="check_sparse_nnz") as caught:
        gradcheck(square, x)
    assert caught.value.kind == "sparse_input"
    assert gradcheck(square, x, check_sparse_nnz=True) is True


def test_nan_is_not_close():
    assert gradcheck(lambda x: torch.sqrt(x * 0), leaf(1.0), raise_exception=False) is False

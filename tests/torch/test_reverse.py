import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from multigrad import check_grad
from multigrad.errors import Defect, InvalidUse

from .flattening import flatten, imaginary, numerical, real, reverse


def with_backward(backward, forward=lambda x: x * 2):
    class Custom(torch.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            Custom.calls += 1
            ctx.save_for_backward(x.clone())
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            return backward(ctx, g)

    return Custom


def test_the_users_own_backward_runs():
    f = flatten(with_backward(lambda ctx, g: g * 7).apply, real(3))
    np.testing.assert_array_equal(reverse(f), 7 * np.eye(3))
    np.testing.assert_array_equal(f.vjp(np.eye(3)), 7 * np.eye(3))


def test_layouts_of_cotangents():
    seen = []

    def backward(ctx, g):
        seen.append((g.stride(), g.is_contiguous(), g.flatten().tolist()))
        return g * 2

    f = flatten(with_backward(backward).apply, real(2, 2))
    f.vjp(np.ones((1, 4)))  # the first tries undefined cotangents as well
    f.vjp(np.array([[3.0, 3, 3, 3]]))
    assert seen[-1] == ((0, 0), False, [3, 3, 3, 3])
    f.vjp(np.array([[1.0, 2, 3, 4]]))
    assert seen[-1] == ((4, 2), False, [1, 2, 3, 4])


@pytest.mark.parametrize("u", [[1.0, 2.0], [1.0, 1.0]], ids=["strided", "expanded"])
def test_a_backward_that_writes_to_its_cotangent(u):
    f = flatten(with_backward(lambda ctx, g: g.mul_(2)).apply, real(2))
    np.testing.assert_array_equal(f.vjp(np.array([u])), [[2 * k for k in u]])
    (finding,) = f.findings
    assert (finding.kind, finding.where) == ("mutates_cotangent", "output")


def test_a_gradient_of_the_wrong_shape():
    f = flatten(with_backward(lambda ctx, g: g.new_ones(2)).apply, real(3))
    with pytest.raises(Defect) as caught:
        f.vjp(np.ones((1, 3)))
    assert caught.value.kind == "wrong_shape"
    assert "shape [2] for its argument 0, which has shape [3]" in caught.value.finding.evidence


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda g: (2 * g, g), "2 gradients for 1 arguments"),
        (lambda g: (), "0 gradients for 1 arguments"),
        (lambda g: 2.0, "a float where a tensor or None is due"),
        (lambda g: g.numpy(), "a numpy.ndarray where a tensor"),
        (lambda g: 2 * g + 0j, "a complex gradient for a real argument"),
    ],
    ids=["more", "none", "number", "array", "complex"],
)
def test_what_is_no_gradient_of_the_arguments_is_told(returned, words):
    report = check_grad(with_backward(lambda ctx, g: returned(g)).apply, real(3), raise_exception=False)
    assert report.verdict == "inconclusive"
    (finding,) = (one for one in report.findings if one.severity == "error")
    assert finding.kind == "wrong_shape"
    assert words in finding.evidence


def test_exceptions_of_the_backward_come_through():
    def backward(ctx, g):
        raise KeyError("mine")

    f = flatten(with_backward(backward).apply, real(3))
    for rows in (1, 2):
        with pytest.raises(KeyError, match="mine"):
            f.vjp(np.ones((rows, 3)))


def test_the_graph_is_kept():
    custom = with_backward(lambda ctx, g: g * 2)
    f = flatten(custom.apply, real(3))
    f.vjp(np.eye(3)[:1])
    calls = custom.calls
    reverse(f)
    assert custom.calls == calls


def test_a_backward_that_consumes_what_it_saved():
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g * 3 * x**2
        x.data.zero_()
        return g

    f = flatten(with_backward(backward, lambda x: x**3).apply, real(3))
    for _ in range(2):
        np.testing.assert_allclose(reverse(f), np.diag(3 * f.x**2))
        np.testing.assert_allclose(f.vjp(np.eye(3)), np.diag(3 * f.x**2))


def test_a_backward_that_can_run_only_once():
    def backward(ctx, g):
        if ctx.done:
            raise RuntimeError("Trying to backward through the graph a second time")
        ctx.done = True
        return 2 * g

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.done = False
            return x * 2

    Once.backward = staticmethod(backward)
    f = flatten(Once.apply, real(3))
    np.testing.assert_array_equal(reverse(f), 2 * np.eye(3))
    np.testing.assert_array_equal(f.vjp(np.eye(3)), 2 * np.eye(3))


def forget(ctx):
    ctx.kept = None


def delete(ctx):
    del ctx.kept


@pytest.mark.parametrize("consume", [forget, delete, lambda ctx: ctx.kept.clear()], ids=["None", "del", "clear"])
def test_a_backward_that_drops_what_it_kept(consume):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = [x.clone()]
            return x**2

        @staticmethod
        def backward(ctx, g):
            g = 2 * ctx.kept[0] * g
            consume(ctx)
            return g

    assert check_grad(Square.apply, real(3)).verdict == "ok"


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    w = real(3).requires_grad_()
    w.grad = torch.full_like(w, 7)
    f = flatten(lambda x: checkpoint(lambda y: y.sin() * w, x, use_reentrant=reentrant), real(3).requires_grad_())
    np.testing.assert_allclose(reverse(f), numerical(f), atol=1e-10)
    assert w.grad.eq(7).all()


def test_complex_products_are_those_of_the_real_pairs():
    z = imaginary(2)
    f = flatten(lambda z: z * z + 3 * z.conj(), z)
    a, b = z.real.numpy(), z.imag.numpy()
    block = [np.array([[2 * x + 3, -2 * y], [2 * y, 2 * x - 3]]) for x, y in zip(a, b, strict=True)]
    jacobian = np.block([[block[0], np.zeros((2, 2))], [np.zeros((2, 2)), block[1]]])
    np.testing.assert_allclose(reverse(f), jacobian, rtol=1e-14)
    np.testing.assert_allclose(f.vjp(np.eye(4)), jacobian, rtol=1e-14)
    np.testing.assert_allclose(f.jvp(np.eye(4)).T, jacobian, rtol=1e-14)
    np.testing.assert_allclose(f.jvp(np.eye(4)[1:2])[0], jacobian[:, 1], rtol=1e-14)


def test_real_to_complex_and_back():
    x, z = real(2), imaginary(2)
    f = flatten(lambda x: torch.exp(1j * x), x)
    rows = np.array([[-np.sin(t), np.cos(t)] for t in x.numpy()])
    np.testing.assert_allclose(reverse(f), np.vstack([np.outer(r, e) for r, e in zip(rows, np.eye(2), strict=True)]))
    g = flatten(torch.abs, z)
    np.testing.assert_allclose(reverse(g)[0, :2], [z[0].real / abs(z[0]), z[0].imag / abs(z[0])])


def test_several_outputs_go_in_together():
    calls = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            calls.append((g.tolist(), h.tolist()))
            return 2 * g + 3 * h

    f = flatten(Two.apply, real(2))
    np.testing.assert_array_equal(f.vjp(np.array([[1.0, 2, 3, 4]])), [[11, 16]])
    assert calls[-1] == ([1, 2], [3, 4])


def test_unused_inputs_have_a_zero_gradient():
    f = flatten(lambda x, y: x * 2, real(2), real(1))
    np.testing.assert_array_equal(reverse(f), [[2, 0, 0], [0, 2, 0]])
    np.testing.assert_array_equal(f.vjp(np.eye(2)), [[2, 0, 0], [0, 2, 0]])


def test_low_precision_gradients_come_as_float64():
    f = flatten(lambda x: x * 2, torch.ones(2))
    product = f.vjp(np.array([[1.0, 0.5]]))
    assert product.dtype == np.float64
    np.testing.assert_array_equal(product, [[2, 1]])


def test_a_function_class_itself_is_no_function() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x**3

    with pytest.raises(InvalidUse, match=r"pass Cube\.apply"), pytest.warns(DeprecationWarning):
        check_grad(Cube, torch.ones(3, dtype=torch.float64))

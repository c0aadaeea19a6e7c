"""The derivative of the derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import GradientMismatch, InconclusiveCheck, check_grad
from multigrad.errors import InvalidUse

X = np.array([0.3, -0.7, 1.1])

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
jnp = jax.numpy


def leaf(value: Any = X) -> Any:
    return torch.tensor(value, requires_grad=True)


def custom(forward: Any, backward: Any) -> Any:
    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return forward(ctx, x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return backward(ctx, g)

    return Rule.apply


def saved(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x.sin()


RIGHT = {
    "scalar": (lambda x: (x.sin() * x.prod()).sum(), (leaf(),)),
    "linear": (lambda x: 5 * x, (leaf(),)),
    "two inputs": (lambda x, y: (x.exp() * y, y.sum()), (leaf(), leaf(X + 1))),
    "matrix": (lambda a: torch.linalg.inv(a), (leaf(np.eye(3) + X),)),
    "custom": (custom(saved, lambda ctx, g: g * ctx.saved_tensors[0].cos()), (leaf(),)),
    "complex": (lambda z: z * z.conj() * z, (leaf(X + 1j),)),
    "unused": (lambda x, y: x.cos(), (leaf(), leaf())),
    "writes to its input": (lambda x: x.mul_(2).sin(), (torch.tensor(X),)),
    "sparse": (lambda s: s.to_dense() ** 3, (torch.eye(2, dtype=torch.float64).to_sparse() * 2,)),
    "dict": (lambda d: {"y": d["a"] ** 3 * d["b"]}, ({"a": leaf(), "b": leaf(X + 2)},)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    fn, inputs = RIGHT[name]
    if name == "writes to its input":
        report = check_grad(fn, inputs, order=2, raise_exception=False)
        assert {f.kind for f in report.findings if f.severity == "error"} == {"mutates_input"}
    else:
        report = check_grad(fn, inputs, order=2)
        assert report.verdict == "ok"
    assert report.second is not None
    assert report.second.verdict in ("ok", "inconclusive")
    assert all(leg.mode in ("reverse over reverse", "forward over reverse") for leg in report.second.legs)
    assert 0 <= report.second.sharpness < 1e-5


def test_a_module_with_its_parameters() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    report = check_grad(net, leaf(), order=2)
    assert report.verdict == "ok"
    assert report.second is not None
    assert [out.path for out in report.second.outputs][1] == 'grad(params["0.weight"])'
    assert report.second.inputs[-1].path == "cotangent"
    assert all(torch.equal(p, before[name]) and p.grad is None for name, p in net.named_parameters())


def constant(ctx: Any, x: Any) -> Any:
    ctx.c = x.cos()
    return x.sin()


def intermediate(ctx: Any, x: Any) -> Any:
    e = x.exp()
    ctx.save_for_backward(e, x)
    return e * x


WRONG = {
    "a constant on ctx": custom(constant, lambda ctx, g: g * ctx.c),
    "an intermediate saved": custom(
        intermediate, lambda ctx, g: g * (ctx.saved_tensors[0] * (1 + ctx.saved_tensors[1]))
    ),
    "detached": custom(saved, lambda ctx, g: g * ctx.saved_tensors[0].detach().cos()),
    "cotangent detached": custom(saved, lambda ctx, g: g.detach() * ctx.saved_tensors[0].cos()),
    "small": custom(lambda ctx, x: 1e-6 * constant(ctx, x), lambda ctx, g: 1e-6 * g * ctx.c),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_backward_that_is_right_and_cannot_be_differentiated(name: str) -> None:
    assert check_grad(WRONG[name], leaf()).verdict == "ok"
    with pytest.raises(GradientMismatch) as caught:
        check_grad(WRONG[name], leaf(), order=2)
    report = caught.value.report
    assert report.second is not None
    assert report.second.verdict == "mismatch"
    assert report.worst[0].output.startswith("grad(inputs[0])")
    assert report.worst[0].mode == "reverse over reverse"
    assert "reverse over reverse mismatch" in str(report)


def test_once_differentiable() -> None:
    once = torch.autograd.function.once_differentiable(lambda ctx, g: g * ctx.saved_tensors[0].cos())
    with pytest.raises((GradientMismatch, InconclusiveCheck)):
        check_grad(custom(saved, once), leaf(), order=2)


def test_a_hessian_that_is_not_symmetric() -> None:
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * torch.stack([x[1] * x[2], x[0] * x[2].detach(), x[0] * x[1]])

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.prod()

    report = check_grad(custom(forward, backward), leaf(), order=2, raise_exception=False)
    assert report.verdict == "mismatch"
    assert any("the Hessian is not symmetric" in f.evidence for f in report.findings)


def _rule(backward: Any) -> Any:
    rule = jax.custom_vjp(jnp.sin)
    rule.defvjp(lambda x: (jnp.sin(x), x), backward)
    return rule


def test_jax() -> None:
    report = check_grad(lambda x, y: jnp.sum(jnp.exp(x) * y["a"]) * x, (X, {"a": X + 1}), backend="jax", order=2)
    assert report.verdict == "ok"
    assert report.second is not None
    assert report.second.agreeing == ("forward over reverse",)
    assert check_grad(lambda z: z * jnp.conj(z) * z, X + 1j, backend="jax", order=2).verdict == "ok"
    assert check_grad(_rule(lambda x, g: (g * jnp.cos(x),)), X, backend="jax", order=2).verdict == "ok"


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("order", [1, 2])
def test_jax_without_implicit_promotion(dtype: str, order: int) -> None:
    """What the user forbids their own code, the check does not do either."""
    fn = lambda x, y: {"a": jnp.exp(x) * x, "b": jnp.abs(x) * y}
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        report = check_grad(fn, (X.astype(dtype), np.abs(X.astype(dtype))), backend="jax", order=order)
    assert report.verdict == "ok"


def test_jax_wrong() -> None:
    stopped = _rule(lambda x, g: (g * jnp.cos(jax.lax.stop_gradient(x)),))
    assert check_grad(stopped, X, backend="jax").verdict == "ok"
    report = check_grad(stopped, X, backend="jax", order=2, raise_exception=False)
    assert report.verdict == "mismatch"
    assert report.worst[0].output == "grad(inputs[0])[2]"


def test_a_kink_of_the_gradient() -> None:
    report = check_grad(torch.relu, leaf(np.array([0.3, -1.0])), order=2)
    assert report.verdict == "ok"
    with pytest.warns(UserWarning):
        report = check_grad(lambda x: torch.relu(x) ** 2 + x, leaf(np.array([0.0, 1.5])), order=2)
    assert report.second is not None
    assert report.second.verdict == "nondifferentiable"


def test_misuse() -> None:
    with pytest.raises(InvalidUse) as caught:
        check_grad(np.sin, X, jac=lambda x: np.diag(np.cos(x)), order=2)
    assert caught.value.kind == "order_unavailable"
    with pytest.raises(InvalidUse) as caught:
        check_grad(torch.sin, leaf(), order=3)
    assert caught.value.kind == "bad_order"


def test_in_the_dictionary() -> None:
    as_dict = check_grad(torch.sin, leaf(), order=2).to_dict()
    assert as_dict["second"]["verdict"] == "ok"
    assert check_grad(torch.sin, leaf()).to_dict()["second"] is None

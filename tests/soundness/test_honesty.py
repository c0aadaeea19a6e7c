"""Functions that are at fault otherwise than by their gradient: each kind is named, and never passed as ok."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from multigrad import check_grad
from multigrad.findings import Finding

X = np.array([0.3, -0.7, 1.1])

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
jnp = jax.numpy


def leaf(value: Any = X) -> Any:
    return torch.tensor(value, requires_grad=True)


def rule(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            ctx.save_for_backward(*xs)
            return forward(ctx, *xs)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            return backward(ctx, *gs)

    return Rule.apply


def sine(ctx: Any, x: Any) -> Any:
    return x.sin()


def found(kind: str, fn: Any, *inputs: Any, verdict: str = "inconclusive", **options: Any) -> Finding:
    report = check_grad(fn, inputs, raise_exception=False, **options)
    assert report.verdict == verdict
    (finding,) = [f for f in report.findings if f.kind == kind]
    assert finding.evidence
    assert finding.remedy
    assert not report.reason or verdict == "inconclusive"
    return finding


def test_dropout_is_named() -> None:
    assert (
        "dropout"
        in found(
            "nondeterministic_forward", lambda x: torch.dropout(x, 0.5, True), leaf(np.linspace(0.1, 1, 40))
        ).evidence
    )


@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_other_random_numbers(draw: Callable[[], float]) -> None:
    found("nondeterministic_forward", lambda x: x * draw(), leaf())


def test_a_counter() -> None:
    tick = itertools.count()
    found("nondeterministic_forward", lambda x: x.sin() * (1 + next(tick)), leaf())
    found("nondeterministic_forward", lambda x: jnp.sin(x) * (1 + next(tick)), X, backend="jax")
    found("nondeterministic_forward", lambda x: np.sum(x) * (1 + next(tick)), X, jac=np.ones_like)


def noisy(size: float, factor: float) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        x = ctx.saved_tensors[0]
        return factor * g * x.cos() * (1 + size * torch.rand_like(x))

    return rule(sine, backward)


def test_a_noisy_backward() -> None:
    found("nondeterministic_backward", noisy(1e-4, 1.0), leaf())
    found("nondeterministic_backward", noisy(1e-4, 7.0), leaf(), verdict="mismatch")
    assert check_grad(noisy(1e-15, 1.0), leaf()).verdict == "ok"


def cached(product: Callable[[Any, Any], Any], copy: Callable[[Any], Any]) -> Callable[..., Any]:
    cache: dict[str, Any] = {}

    def fn(x: Any) -> Any:
        if "x" not in cache:
            cache["x"] = copy(x)
        return product(x, cache["x"])

    return fn


def test_a_stale_cache() -> None:
    for fn, x, options in (
        (cached(lambda x, c: x * c, lambda x: x.detach().clone()), leaf(), {}),
        (cached(lambda x, c: x * c, np.array), X, {"backend": "jax"}),
        (cached(lambda x, c: np.sum(x * c), np.array), X, {"jac": lambda x: 2 * x}),
    ):
        assert "cache" in found("mutates_state", fn, x, **options).where


def test_an_array_that_is_written_and_read() -> None:
    total = np.zeros(3)

    def fn(x: Any) -> Any:
        total.__iadd__(x)
        return np.sum(x * total)

    report = check_grad(fn, X, jac=lambda x: total.copy(), raise_exception=False)
    assert report.verdict == "inconclusive"
    assert {"mutates_state", "nondeterministic_forward"} <= {f.kind for f in report.findings}
    assert not total.any()


def test_a_scratch_array_and_a_memo_are_fine() -> None:
    scratch, memo = np.zeros(3), {}

    def fn(x: Any) -> Any:
        np.multiply(x, x, out=scratch)
        return memo.setdefault(x.tobytes(), scratch.sum())

    assert check_grad(fn, X, jac=lambda x: 2 * x).verdict == "ok"


def test_inputs_that_are_written() -> None:
    def add_one(x: Any, buffer: Any) -> Any:
        buffer += 1
        return (x * buffer).sum()

    assert found("mutates_input", add_one, leaf(), torch.zeros(3, dtype=torch.float64)).where == "inputs[1]"
    finding = found("mutates_input", add_one, X, np.array([1, 2, 3]), jac=lambda x, b: b + 1.0)
    assert finding.where == "inputs[1]"


def test_a_cotangent_that_is_written() -> None:
    found("mutates_cotangent", rule(sine, lambda ctx, g: g.mul_(ctx.saved_tensors[0].cos())), leaf())


def hooked(x: Any) -> Any:
    def hook(g: Any) -> None:
        if g is None:
            raise RuntimeError("no gradient given")

    y = x.clone()
    y.register_hook(hook)
    return y


def test_undefined_cotangents() -> None:
    assert "no gradient given" in found("undefined_grad", hooked, leaf()).evidence

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x.sin(), x.cos()

    def careless(ctx: Any, g: Any, h: Any) -> Any:
        return g * ctx.saved_tensors[0].cos() - h * ctx.saved_tensors[0].sin()

    def careful(ctx: Any, g: Any, h: Any) -> Any:
        first = 0 if g is None else g * ctx.saved_tensors[0].cos()
        second = 0 if h is None else h * ctx.saved_tensors[0].sin()
        return None if g is None and h is None else first - second

    def forgetful(ctx: Any, g: Any, h: Any) -> Any:
        return None if g is None or h is None else careless(ctx, g, h)

    assert "TypeError" in found("undefined_grad", rule(forward, careless), leaf()).evidence
    assert "do not add up" in found("undefined_grad", rule(forward, forgetful), leaf()).evidence
    assert check_grad(rule(forward, careful), leaf()).verdict == "ok"


def test_a_value_that_depends_on_whether_gradients_are_wanted() -> None:
    forward = rule(
        lambda ctx, x: x.sin() + 0.1 * ctx.needs_input_grad[0], lambda ctx, g: g * ctx.saved_tensors[0].cos()
    )
    assert found("primal_mismatch", forward, torch.tensor(X)).where == "output[0]"

    wrong = jax.custom_vjp(jnp.sin)
    wrong.defvjp(lambda x: (jnp.cos(x), x), lambda x, g: (g * jnp.cos(x),))
    found("primal_mismatch", wrong, X, backend="jax")


def test_another_shape() -> None:
    tick = itertools.count()
    found("shape_depends_on_value", lambda x: torch.cat([x] * (1 + next(tick) % 2)), leaf())
    found("shape_depends_on_value", lambda x: x[x >= 0.3], X, jac=lambda x: np.eye(3)[[0, 2]])
    found("shape_depends_on_value", lambda x: x.float() if bool((x > 0.3).any()) else x, leaf(X[:1]))


def test_values_that_are_not_finite() -> None:
    found("non_finite", torch.sqrt, leaf())
    found("non_finite", lambda x: x * float("nan"), leaf())
    found("non_finite", lambda x: jnp.sum(jnp.sqrt(x)), X, backend="jax")
    with np.errstate(invalid="ignore"):
        found("non_finite", lambda x: np.sum(np.log(x)), np.array([-1.0, 1.0]), jac=lambda x: 1 / x)


def test_an_infinite_derivative_is_no_mistake() -> None:
    with pytest.warns(UserWarning):
        assert check_grad(torch.sqrt, leaf(np.array([0.0, 1.5]))).verdict == "nondifferentiable"


def test_eigenvectors_of_free_phase() -> None:
    a = np.array([[1, 2j, 0.3], [3, 4.0, 1j], [0.2, 1, -2]])
    found("ill_defined", lambda a: torch.linalg.eigh(a + a.mH)[1], leaf(a))
    assert check_grad(lambda a: torch.linalg.eigh(a + a.mH)[1].abs(), leaf(a)).verdict == "ok"


def test_parameters_without_a_gradient() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = torch.nn.Parameter(torch.tensor(X))
            self.idle = torch.nn.Parameter(torch.tensor(X))
            self.frozen = torch.nn.Parameter(torch.tensor(X), requires_grad=False)

        def forward(self, x: Any) -> Any:
            return (self.used * x).sin() + self.frozen

    finding = found("no_gradient", Net(), leaf(), verdict="ok")
    assert 'params["idle"]' in finding.evidence
    assert "used" not in finding.evidence.replace("unused", "")


def test_the_convention_for_complex_numbers_is_stated() -> None:
    report = check_grad(lambda z: z * z, leaf(X + 1j))
    assert "dL/dre + i dL/dim" in report.convention
    assert report.convention in str(report)
    assert "dL/dre - i dL/dim" in check_grad(lambda z: z * z, X + 1j, backend="jax").convention
    assert check_grad(torch.sin, leaf()).convention == ""


def test_empty_and_single() -> None:
    assert check_grad(lambda x, y: x.sum() + (y**2).sum(), (leaf(np.zeros((0, 3))), leaf())).verdict == "ok"
    assert check_grad(lambda x: x * x, leaf(np.array(0.7)), order=2).verdict == "ok"


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_compiled_functions() -> None:
    compiled = torch.compile(lambda x: x.sin() * 2, backend="eager")
    assert check_grad(compiled, leaf()).verdict == "ok"


@pytest.mark.parametrize("distance", [1e-8, 1e-4, 1e-2])
def test_beside_the_wall_of_a_barrier(distance: float) -> None:
    """Where f is infinite on one side, the other tells."""

    def fn(x: Any) -> Any:
        return np.where(x[0] < 1.3 + distance, 3 * np.sum(x), np.inf)

    x = np.array([1.3, 2.2])
    right = check_grad(fn, x, jac=lambda x: [3.0, 3.0], raise_exception=False)
    wrong = check_grad(fn, x, jac=lambda x: [7.0, 3.0], raise_exception=False)
    assert (right.verdict, wrong.verdict) == ("ok", "mismatch")


def test_an_exception_beside_the_inputs_is_mentioned() -> None:
    def fn(x: Any) -> Any:
        if x[0] > 0.3001:
            raise ValueError("outside")
        return np.sum(x**2)

    report = check_grad(fn, X, jac=lambda x: 2 * x)
    assert report.verdict == "ok"
    (finding,) = [f for f in report.findings if f.kind == "raises_nearby"]
    assert finding.severity == "note"
    assert "ValueError: outside" in finding.evidence

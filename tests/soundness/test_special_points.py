"""Points that hide an error, and points that only look as if."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import GradientMismatch, check_grad

from .rules import BACKENDS, with_rule

CUBE = (lambda xp, x: x**3, lambda xp, g, x: (3 * g * x,))
SQUARE = (lambda xp, x: xp.sum(x**2), lambda xp, g, x: (5 * g * x,))
HIDDEN = {
    "ones": (*CUBE, np.ones(3)),
    "one": (*CUBE, np.ones(())),
    "zeros": (*SQUARE, np.zeros(4)),
    "many zeros": (*SQUARE, np.zeros(300)),
    "many outputs": (*CUBE, np.ones(100)),
    "equal": (
        lambda xp, x: xp.sum(x**2) + 0 * x[0],
        lambda xp, g, x: (2 * g * x[::1] * 0 + 2 * g * xp.mean(x),),
        np.full(3, 0.7),
    ),
    "integers": (
        lambda xp, x: xp.sum(xp.sin(np.pi * x) / np.pi),
        lambda xp, g, x: (g * xp.cos(np.pi * x) ** 3,),
        np.array([1.0, 2.0, -3.0]),
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("backend", BACKENDS)
def test_hidden(backend: str, name: str) -> None:
    pytest.importorskip(backend)
    fn, vjp, x = HIDDEN[name]
    function, inputs, options = with_rule(backend, fn, vjp, x)
    with pytest.raises(GradientMismatch) as caught:
        check_grad(function, inputs, backend=backend, **options)
    report = caught.value.report
    assert report.legs[0].verdict == "ok"
    (finding,) = [f for f in report.findings if f.kind == "special_point"]
    assert finding.where == "inputs[0]"
    assert "instead of" in finding.evidence
    assert report.worst[0].mode.endswith("nearby")
    # By path and index, however many there are.
    assert all(entry.input.startswith("inputs[0]") for entry in caught.value.report.worst)


@pytest.mark.parametrize("n", [3, 100])
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_a_hidden_backward_that_is_not_linear(backend: str, n: int) -> None:
    """All its rows are right, beside the point as well."""
    pytest.importorskip(backend)
    function, inputs, options = with_rule(
        backend, lambda xp, x: x**2, lambda xp, g, x: (2 * x * xp.clip(g, -8, 8),), np.zeros(n)
    )
    report = check_grad(function, inputs, backend=backend, raise_exception=False, **options)
    assert report.legs[0].verdict == "ok"
    assert report.verdict == "mismatch"


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_right_twin(backend: str, name: str) -> None:
    pytest.importorskip(backend)
    right: dict[str, Any] = {"equal": lambda xp, g, x: (2 * g * x,)}
    right["integers"] = lambda xp, g, x: (g * xp.cos(np.pi * x),)
    right |= dict.fromkeys(("ones", "one", "many outputs"), lambda xp, g, x: (3 * g * x**2,))
    right |= dict.fromkeys(("zeros", "many zeros"), lambda xp, g, x: (2 * g * x,))
    fn, _, x = HIDDEN[name]
    function, inputs, options = with_rule(backend, fn, right[name], x)
    report = check_grad(function, inputs, backend=backend, **options)
    assert report.verdict == "ok"
    assert [f.where for f in report.findings if f.kind == "special_point"] == ["inputs[0]"]


@pytest.mark.parametrize("x", [np.array([0.0, 0.3]), np.array([0.4, 0.7])])
def test_ordinary_points_are_checked_once(x: np.ndarray[Any, Any]) -> None:
    report = check_grad(lambda x: np.sum(np.sin(x)), x, jac=np.cos)
    assert not [f for f in report.findings if f.kind == "special_point"]


def test_a_domain_that_begins_at_the_point() -> None:
    report = check_grad(lambda x: np.sum(x + np.sqrt(x) * x**3), np.zeros(2), jac=lambda x: 1 + 3.5 * x**2.5)
    assert report.verdict == "ok"
    (finding,) = [f for f in report.findings if f.kind == "special_point"]
    assert finding.evidence.endswith("agrees")


def test_beside_the_point_the_function_may_raise() -> None:
    def fn(x: np.ndarray[Any, Any]) -> Any:
        if abs(x[0] - 1) > 1e-2:
            raise ValueError("outside")
        return np.sum(x**2)

    report = check_grad(fn, np.ones(2), jac=lambda x: 2 * x, raise_exception=False)
    assert not [f for f in report.findings if f.kind == "special_point"]


def test_numbers_for_the_point_alone() -> None:
    assert check_grad(lambda x: np.sum(x**2), np.array([1.0, 2.0]), jac=lambda x: [2.0, 4.0]).verdict == "ok"


@pytest.mark.parametrize("x", [np.ones(3), np.zeros((2, 2)), np.full(80, 2.0)])
def test_traced_functions_and_torchs_own(x: np.ndarray[Any, Any]) -> None:
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    assert check_grad(lambda x: np.exp(x) * np.sin(x), x).verdict == "ok"
    assert check_grad(lambda x: x.exp() * x.sin(), torch.tensor(x)).verdict == "ok"
    assert check_grad(lambda x: x.exp() * x.sin(), torch.tensor(x, dtype=torch.float32)).verdict == "ok"
    assert check_grad(lambda x: x.exp() * x.sin(), torch.tensor(x, dtype=torch.bfloat16)).verdict == "ok"
    assert check_grad(lambda x: jnp.exp(x) * jnp.sin(x), jnp.asarray(x)).verdict == "ok"


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_symmetric_matrices_stay_symmetric(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for fn in (torch.linalg.cholesky, torch.linalg.inv, lambda x: torch.linalg.eigvalsh(x).sum()):
        report = check_grad(fn, torch.eye(3, dtype=getattr(torch, dtype)), raise_exception=False)
        assert report.verdict == "ok"


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_large_symmetric_matrices_stay_symmetric(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.eye(9, dtype=getattr(torch, dtype))
    report = check_grad(lambda a: torch.linalg.cholesky(a).real, x)
    assert report.verdict == "ok"
    assert report.sharpness < 1e-7
    assert [f.where for f in report.findings if f.kind == "special_point"] == ["inputs[0]"]


def test_a_transposed_gradient_at_a_large_matrix_of_zeros() -> None:
    """Not every function of a matrix that happens to be symmetric is one of symmetric matrices."""
    weights = np.arange(100.0).reshape(10, 10)
    with pytest.raises(GradientMismatch):
        check_grad(lambda x: np.sum(weights * x**2), np.zeros((10, 10)), jac=lambda x: (2 * weights * x).T)


def test_detached_outputs_beside_many_others() -> None:
    torch = pytest.importorskip("torch")
    report = check_grad(lambda x: (x.exp(), 3 * x.detach().mean()), torch.zeros(70, dtype=torch.double))
    assert report.verdict == "ok"
    assert {f.kind for f in report.findings} == {"detached_output", "special_point"}


def test_a_rounded_constant_of_many_low_precision_inputs() -> None:
    torch = pytest.importorskip("torch")

    class Scale(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 0.7978845608

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 0.7978848

    for count, seed in [(5, 0), *((70, seed) for seed in range(8))]:
        x = torch.zeros(count, dtype=torch.float32, requires_grad=True)
        assert check_grad(lambda x: Scale.apply(x) + x**2, x, seed=seed).verdict == "ok"

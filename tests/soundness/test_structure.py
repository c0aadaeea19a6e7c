"""Parameters, layouts, tensor subclasses, hooks: through check_grad, end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import check_grad
from multigrad.errors import InvalidUse

torch = pytest.importorskip("torch")
from tests.torch.scaled import Scaled

X = np.array([0.3, -0.7, 1.1])


def leaf(value: Any = X) -> Any:
    return torch.tensor(value, requires_grad=True)


class Scale(torch.autograd.Function):
    """x * w, whose gradient for w is off by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, factor: float) -> Any:
        ctx.save_for_backward(x, w)
        ctx.factor = factor
        return x * w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w, ctx.factor * g * x, None


class Layer(torch.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.w = torch.nn.Parameter(torch.tensor(X + 2))

    def forward(self, x: Any) -> Any:
        return Scale.apply(x, self.w, self.factor)


def by_module(factor: float) -> tuple[Any, Any]:
    return Layer(factor), None


def by_captured_module(factor: float) -> tuple[Any, Any]:
    layer = Layer(factor)
    return lambda x: layer(x), "captured"


def by_captured_tensor(factor: float) -> tuple[Any, Any]:
    w = leaf(X + 2)
    return lambda x: Scale.apply(x, w, factor), "captured"


def by_pytree(factor: float) -> tuple[Any, Any]:
    params = {"inner": [leaf(X + 2)]}
    return lambda x: Scale.apply(x, params["inner"][0], factor), params


@pytest.mark.parametrize("make", [by_module, by_captured_module, by_captured_tensor, by_pytree])
def test_params(make: Any) -> None:
    for factor, verdict in ((1.0, "ok"), (2.0, "mismatch")):
        fn, params = make(factor)
        report = check_grad(fn, leaf(), params=params, raise_exception=False)
        assert report.verdict == verdict
        assert [one.path.partition("[")[0] for one in report.inputs] == ["inputs", "params"]
        assert all(one.input.startswith("params") for one in report.worst if one.status.name == "MISMATCH")


LAYOUTS = {
    "coo": lambda d: d.to_sparse(),
    "csr": lambda d: d.to_sparse_csr(),
    "csc": lambda d: d.to_sparse_csc(),
    "bsr": lambda d: d.to_sparse_bsr((2, 2)),
    "bsc": lambda d: d.to_sparse_bsc((2, 2)),
}
DENSE = torch.tensor(np.kron(np.diag([0.7, -1.2]), np.array([[1.0, 2.0], [0.5, -1.5]])))


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse(layout: str) -> None:
    """Stored places alone are perturbed: masked and unmasked gradients agree there."""
    sparse = LAYOUTS[layout](DENSE).requires_grad_()
    report = check_grad(lambda s: s.to_dense() ** 3, sparse)
    assert report.verdict == "ok"
    assert report.inputs[0].path == "inputs[0].values()"
    assert report.inputs[0].size == sparse.values().numel() if layout != "coo" else 8
    for masked in (True, False):
        assert check_grad(lambda s, m=masked: s.to_dense(masked_grad=m), sparse).verdict == "ok"

    report = check_grad(lambda s: Scaled.apply(s.to_dense(), 1.5) ** 3, sparse, raise_exception=False)
    assert report.verdict == "mismatch"
    assert report.worst[0].input.startswith("inputs[0].values()[")


def test_sparse_output() -> None:
    assert check_grad(lambda x: x.to_sparse() * 2, leaf(np.array([[1.5, 0.3], [0.2, -0.7]]))).verdict == "ok"


class Tagged(torch.Tensor):
    """A subclass that does no more than keep its type."""


def test_a_subclass() -> None:
    seen: list[type] = []
    types = (seen,)  # a list of its own would be put back
    assert check_grad(lambda x: (types[0].append(type(x)), x.sin())[1], leaf().as_subclass(Tagged)).verdict == "ok"
    assert Tagged in seen


class Imitation:
    """Acts as a tensor by __torch_function__ alone."""

    requires_grad = True

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*(a.tensor if isinstance(a, cls) else a for a in args), **(kwargs or {}))


def test_an_imitation_is_refused_by_name() -> None:
    with pytest.raises(InvalidUse, match="Imitation") as caught:
        check_grad(torch.sin, Imitation(leaf()), backend="torch")
    assert caught.value.kind == "unsupported_tensor"


def test_hooks() -> None:
    def doubled(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: 2 * g)
        return y.sin()

    def seen(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: None)
        return y.sin()

    assert check_grad(seen, leaf()).verdict == "ok"
    report = check_grad(doubled, leaf(), raise_exception=False)
    assert report.verdict == "mismatch"
    assert any("2 times the derivative" in f.evidence for f in report.findings)


def test_aliased_and_expanded_inputs() -> None:
    x = torch.tensor(X)
    assert check_grad(lambda a, b: a * b, (x, x)).verdict == "ok"
    assert check_grad(lambda a: a**2, torch.tensor(0.7, dtype=torch.float64).expand(3)).verdict == "ok"
    assert check_grad(lambda a: a**2, torch.rand(5, dtype=torch.float64).as_strided((3, 3), (1, 1))).verdict == "ok"
    assert check_grad(lambda a: a, x).verdict == "ok"
    assert check_grad(lambda a: a.view(3, 1), x).verdict == "ok"

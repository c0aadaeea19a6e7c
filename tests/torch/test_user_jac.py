"""A derivative that the user wrote by hand, of a function on tensors, is what is under test: not autograd's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from multigrad import check_grad
from multigrad.errors import InvalidUse

X = torch.tensor([0.7, -1.2], dtype=torch.float64)
Z = torch.tensor([1 + 2j, 0.3 - 1j], dtype=torch.complex128)
RIGHT: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "a vector": (torch.sin, (X,), lambda x: torch.diag(torch.cos(x))),
    "a scalar": (lambda x: (x**2).sum(), (X,), lambda x: 2 * x),
    "inputs that require a gradient": (lambda x: (x**2).sum(), (X.clone().requires_grad_(),), lambda x: 2 * x),
    "float32": (lambda x: (x**2).sum(), (X.float(),), lambda x: 2 * x),
    "no graph": (
        lambda x: torch.from_numpy(np.sin(x.detach().numpy())),
        (X.clone().requires_grad_(),),
        lambda x: torch.diag(torch.cos(x)),
    ),
    "a dict of two inputs": (
        lambda x, y: {"a": x * y, "b": (x + y).sum()},
        (X, X + 1),
        lambda x, y: {"a": (torch.diag(y), torch.diag(x)), "b": (torch.ones(2), torch.ones(2))},
    ),
    "holomorphic": (lambda z: z**2, (Z,), lambda z: torch.diag(2 * z)),
    "real, of complex numbers": (lambda z: (z.abs() ** 2).sum(), (Z,), lambda z: 2 * z),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_and_wrong(name: str) -> None:
    fn, inputs, jac = RIGHT[name]
    assert check_grad(fn, inputs, jac=jac).verdict == "ok"
    wrong = lambda *args: _times(1.01, jac(*args))
    assert check_grad(fn, inputs, jac=wrong, raise_exception=False).verdict == "mismatch"


def _times(factor: float, tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _times(factor, value) for key, value in tree.items()}
    return tuple(_times(factor, one) for one in tree) if isinstance(tree, tuple) else factor * tree


def test_a_wrong_shape_is_said() -> None:
    report = check_grad(torch.sin, X, jac=torch.cos, raise_exception=False)
    assert [finding.kind for finding in report.findings if finding.severity == "error"] == ["wrong_shape"]


def test_parameters_have_no_derivative_there() -> None:
    with pytest.raises(InvalidUse, match="weight"):
        check_grad(torch.nn.Linear(2, 1).double(), X, jac=lambda x: x)

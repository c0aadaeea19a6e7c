"""Calls as people make them who have not read the documentation: they work, or the message says what to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from multigrad import GradientMismatch, InconclusiveCheck, check_consistency, check_grad
from multigrad.errors import InvalidUse, UnknownBackend

torch = pytest.importorskip("torch")

X = np.array([0.5, 1.7])


def loss_of(layer: Any) -> Callable[[], Any]:
    x, y = torch.ones(5, 4), torch.tensor([0, 1, 2, 0, 1])
    return lambda: torch.nn.functional.cross_entropy(layer(x), y)


def test_parameters_alone_tell_the_backend() -> None:
    layer = torch.nn.Linear(4, 3)
    report = check_grad(loss_of(layer), (), params=layer)
    assert report.verdict == "ok"
    assert [leaf.path for leaf in report.inputs] == ['params["weight"]', 'params["bias"]']


def test_a_module_alone_tells_the_backend() -> None:
    class Sine(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(3))

        def forward(self) -> Any:
            return self.w.sin()

    assert check_grad(Sine(), ()).verdict == "ok"


def test_no_inputs_at_all() -> None:
    with pytest.raises(InvalidUse, match="inputs must contain arrays, but are empty.*backend="):
        check_grad(loss_of(torch.nn.Linear(4, 3)), (), params="captured")


def test_a_name_close_to_a_backend() -> None:
    with pytest.raises(UnknownBackend, match="did you mean 'torch'"):
        check_grad(np.sin, X, backend="pytorch")


@pytest.mark.parametrize(
    ("keyword", "value", "hint"),
    [
        ("fast_mode", True, "method='probe'"),
        ("nondet_tol", 1e-3, "always checked"),
        ("check_undefined_grad", False, "always checked"),
        ("check_batched_grad", True, "always checked"),
        ("check_forward_ad", True, "modes="),
        ("check_sparse_nnz", True, "nothing to ask for"),
        ("tol", 1e-3, "did you mean 'rtol'"),
    ],
)
def test_keywords_of_other_checkers(keyword: str, value: Any, hint: str) -> None:
    with pytest.raises(InvalidUse, match=f"{keyword}.*{hint}"):
        check_grad(torch.sin, torch.ones(2), **{keyword: value})


def test_modes_as_others_call_them() -> None:
    with pytest.raises(InvalidUse, match="JAX's 'fwd' is 'forward', 'rev' is 'reverse'"):
        check_grad(jnp.sin, jnp.ones(2), modes=("fwd", "rev"))


@pytest.mark.parametrize(
    ("options", "told"),
    [({"order": 3}, r"not 3 \(int\)"), ({"jac": X}, r"\(ndarray\)"), ({"jac": True}, r"not True \(bool\)")],
)
def test_values_are_given_with_their_type(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidUse, match=told):
        check_grad(np.sum, X, **options)


@pytest.mark.parametrize(
    ("fn", "inputs", "told"),
    [
        (torch.sin, X, r"fn\(ndarray float64 \(2,\)\).*backend 'numpy'.*told by the inputs"),
        (np.linalg.norm, torch.ones(2), r"fn\(Tensor float32 \(2,\)\).*backend 'torch'"),
        (lambda x: x, (X, 2), r"fn\(ndarray float64 \(2,\), int\)"),
    ],
)
def test_what_fn_was_called_with(fn: Callable[..., Any], inputs: Any, told: str) -> None:
    with pytest.raises((TypeError, RuntimeError)) as caught:
        check_grad(fn, inputs)
    assert re.search(told, caught.value.__notes__[0])


def test_one_array_is_not_taken_for_several_arguments() -> None:
    with pytest.raises(TypeError) as caught:
        check_grad(lambda x, y: x, X)
    assert "each item" not in caught.value.__notes__[0]


def test_inputs_of_two_frameworks() -> None:
    with pytest.raises(InvalidUse, match="inputs mix arrays of 'jax' and 'torch'"):
        check_grad(lambda x, y: x, (torch.ones(2), jnp.ones(2)))


def test_a_jac_by_one_of_two_inputs_says_how_to_hold_the_other_fixed() -> None:
    with pytest.raises(InconclusiveCheck, match="to hold an input fixed, close over it"):
        check_grad(lambda w, c: c * np.sum(w**2), (X, 0.5), jac=lambda w, c: 2 * c * w)


def test_nan_in_the_inputs_is_named() -> None:
    with pytest.raises(InconclusiveCheck, match=r"inputs\[0\]\[1\] is nan"):
        check_grad(np.sin, np.array([1.0, np.nan]), jac=lambda x: np.diag(np.cos(x)))


def test_functions_go_by_their_backends() -> None:
    with pytest.raises(UnknownBackend, match="functions are given by backend"):
        check_consistency({"old": np.sin, "new": np.sin}, (X,))


def test_the_traceback_ends_at_the_call() -> None:
    with pytest.raises(GradientMismatch) as caught:
        check_grad(np.sum, X, jac=lambda x: 2 * x)
    shown = caught.traceback.filter(caught)
    assert shown[-1].path.name == "test_newcomers.py"


def test_a_dataclass_that_is_no_pytree() -> None:
    class Weights:
        w = jnp.ones(2)

    with pytest.raises(InvalidUse, match=r"inputs\[0\] \(Weights\).*register"):
        check_grad(lambda s: s.w, Weights(), backend="jax")

"""The same functions in three frameworks: values, first and second derivatives, in float64 and float32."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from multigrad import ConsistencyReport, check_consistency
from tests.consistency.case import Case
from tests.consistency.cases import CASES

torch.set_num_threads(1)

SHARP = {"float64": 1e-6, "float32": 3e-2}


def ids(case: Case) -> str:
    return case.name


def test_there_are_enough() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_values_and_first_derivatives(case: Case, dtype: str) -> None:
    report = check_consistency(case.functions, case.arguments(dtype), raise_exception=False)
    assert_consistent(report, dtype)
    assert {cell.note for cell in report.table["numpy"].values()} >= {"none"} or "numpy" not in report.table


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", [case for case in CASES if case.smooth], ids=ids)
def test_second_derivatives(case: Case, dtype: str) -> None:
    """The gradients of a weighted sum of the outputs, as functions: their values, and their Jacobians."""
    arguments = case.arguments(dtype)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, (2, *np.shape(case.numpy(*arguments))))
    report = check_consistency(
        {"torch": torch_gradient(case, weights), "jax": jax_gradient(case, weights)}, arguments, raise_exception=False
    )
    assert_consistent(report, dtype)


def assert_consistent(report: ConsistencyReport, dtype: str) -> None:
    assert report.verdict == "ok", str(report)
    assert report.sharpness < SHARP[dtype], str(report)


def differentiated(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(i for i, x in enumerate(arguments) if not jnp.issubdtype(x.dtype, jnp.integer))


def torch_gradient(case: Case, weights: Any) -> Any:
    def total(*inputs: Any) -> Any:
        y = case.torch(*inputs)
        u = [torch.tensor(w, dtype=y.real.dtype) for w in weights]
        return (y.real * u[0]).sum() + ((y.imag * u[1]).sum() if y.is_complex() else 0)

    def gradient(*inputs: Any) -> Any:
        chosen = tuple(i for i, x in enumerate(inputs) if x.is_floating_point() or x.is_complex())
        found = torch.func.grad(total, chosen)(*inputs)
        # Torch's gradient of a real function is the conjugate of JAX's.
        return tuple(g.conj().resolve_conj() if g.is_complex() else g for g in found)

    return gradient


def jax_gradient(case: Case, weights: Any) -> Any:
    def total(*inputs: Any) -> Any:
        y = case.jax(*inputs)
        u = [jnp.asarray(w, y.real.dtype) for w in weights]
        return (y.real * u[0]).sum() + ((y.imag * u[1]).sum() if jnp.iscomplexobj(y) else 0)

    return lambda *inputs: jax.grad(total, differentiated(inputs))(*inputs)

"""The same functions in three frameworks: values, first and second derivatives, in float64 and float32."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest
import torch

from multigrad import ConsistencyReport, check_consistency
from tests.consistency.case import Case
from tests.consistency.cases import CASES

torch.set_num_threads(1)

SHARP = {"float64": 1e-6, "float32": 3e-2}


@pytest.fixture(autouse=True, scope="module")
def quick_compilation() -> Iterator[None]:
    """XLA's optimisations take longer than everything else."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def ids(case: Case) -> str:
    return case.name


def test_there_are_enough() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_values_and_derivatives(case: Case, dtype: str) -> None:
    report = check_consistency(
        case.functions, case.arguments(dtype), order=2 if case.smooth else 1, raise_exception=False
    )
    assert_consistent(report, dtype)
    assert {cell.answer for name in ("torch", "jax") for cell in report.table[name].values()} <= {"ok", None}
    assert report.table["torch"]["reverse"].answer == report.table["jax"]["reverse"].answer == "ok"
    if case.smooth:
        assert report.table["torch"]["second"].answer == report.table["jax"]["second"].answer == "ok"


def assert_consistent(report: ConsistencyReport, dtype: str) -> None:
    assert report.verdict == "ok", str(report)
    assert report.sharpness < SHARP[dtype], str(report)

"""The same functions in three frameworks: values, first and second derivatives, in float64 and float32."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest
import torch

from multigrad import ConsistencyReport, check_consistency
from tests.consistency.case import Case
from tests.consistency.cases import CASES, MODULES

torch.set_num_threads(1)

# Most NumPy functions take part as witnesses by their values, which takes less time: a derivative by tracing is JAX's.
TRACED = [module.CASES[0] for module in MODULES]
LAST_OF_MODULE = tuple(f"[{module.CASES[-1].name}]" for module in MODULES)
SHARP = {"float64": 1e-6, "float32": 3e-2}


pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.fixture(autouse=True)
def little_memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compiled code is kept until it is cleared, 25 MB for each function."""
    yield
    if request.node.name.endswith(LAST_OF_MODULE):
        jax.clear_caches()


def ids(case: Case) -> str:
    return case.name


def test_there_are_enough() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_values_and_derivatives_in_float64(case: Case) -> None:
    options = {"numpy": {"trace": case in TRACED}}
    report = check_consistency(
        case.functions, case.arguments("float64"), order=case.order, options=options, raise_exception=False
    )
    assert_consistent(report, case, "float64")
    assert report.table["numpy"]["value"].answer == "ok"
    assert report.sides["numpy"].legs
    assert all(leg.verdict == "ok" for leg in report.sides["numpy"].legs)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_values_and_derivatives_in_float32(case: Case) -> None:
    """NumPy code is evaluated in float64 whatever it is given, so that there would be nothing new to see."""
    functions = {name: function for name, function in case.functions.items() if name != "numpy"}
    report = check_consistency(functions, case.arguments("float32"), order=case.order, raise_exception=False)
    assert_consistent(report, case, "float32")


def assert_consistent(report: ConsistencyReport, case: Case, dtype: str) -> None:
    assert report.verdict == "ok", str(report)
    assert report.sharpness < SHARP[dtype], str(report)
    columns = ("value", "reverse", "second")[: 1 + case.order]
    told = {report.table[name][column].answer for name in ("torch", "jax") for column in columns}
    # Zeros of a Hessian that rounding has left 1e-17 of can't be told by differences.
    assert told <= ({"ok", "inconclusive"} if case.name == "hermitian_form" else {"ok"}), str(report)

"""The problems again, right and wrong, in the ways that are meant for larger ones: along groups of columns, by probing."""

from __future__ import annotations

from typing import Any

import pytest

from multigrad import GradReport, _run, check_grad
from multigrad.errors import GradientMismatch
from tests.bugs import Planted
from tests.derivatives import with_derivative
from tests.pairs import PAIRS, ready
from tests.problems import Problem
from tests.test_conformance import compare
from tests.test_planted_bugs import cases, names_the_place

# What is compared is the core's; one compiled framework says nothing that another does not.
BACKENDS = ("numpy", "torch", "toy")
RIGHT = [pytest.param(b, p, id=f"{b}-{p.name}") for b, p in PAIRS if b in BACKENDS]
# Inputs from 1e-8 on that a step of one scale takes out of the domain: moved all at once, no step suits them.
UNTOLD = {"log_over_decades"}
WRONG = [case for case in cases() if case.values[0] in BACKENDS]


@pytest.fixture
def grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for structure however small a function is."""
    monkeypatch.setattr(_run, "INPUTS_FROM", 1)


def arranged(backend: str, problem: Problem) -> tuple[Any, dict[str, Any]]:
    if backend == "numpy":
        return with_derivative(problem, backend, problem.blocks())
    return problem.function(backend), {}


def probe(fn: Any, problem: Problem, backend: str, options: dict[str, Any]) -> GradReport:
    inputs = problem.arguments(backend)
    return check_grad(fn, inputs, backend=backend, method="probe", raise_exception=False, **options)


@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize(("backend", "problem"), RIGHT)
def test_right_in_groups(backend: str, problem: Problem, request: pytest.FixtureRequest) -> None:
    ready(backend, request)
    fn, options = arranged(backend, problem)
    report = check_grad(fn, problem.arguments(backend), backend=backend, **options)
    assert report.verdict == "ok", str(report)
    compare(report, problem)


@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize(("backend", "problem", "planted"), WRONG)
def test_wrong_in_groups(backend: str, problem: Problem, planted: Planted, request: pytest.FixtureRequest) -> None:
    ready(backend, request)
    fn, options = with_derivative(problem, backend, planted.blocks)
    with pytest.raises(GradientMismatch) as caught:
        check_grad(fn, problem.arguments(backend), backend=backend, **options)
    names_the_place(caught.value, problem, planted)


@pytest.mark.parametrize(("backend", "problem"), RIGHT)
def test_right_by_probing(backend: str, problem: Problem, request: pytest.FixtureRequest) -> None:
    ready(backend, request)
    fn, options = arranged(backend, problem)
    report = probe(fn, problem, backend, options)
    assert report.verdict == ("inconclusive" if problem.name in UNTOLD else "ok"), str(report)


@pytest.mark.parametrize(("backend", "problem", "planted"), WRONG)
def test_wrong_by_probing(backend: str, problem: Problem, planted: Planted, request: pytest.FixtureRequest) -> None:
    ready(backend, request)
    fn, options = with_derivative(problem, backend, planted.blocks)
    report = probe(fn, problem, backend, options)
    if problem.name in UNTOLD:
        assert report.verdict in ("inconclusive", "mismatch"), str(report)
        return
    assert report.verdict == "mismatch", str(report)
    names_the_place(GradientMismatch(report), problem, planted)

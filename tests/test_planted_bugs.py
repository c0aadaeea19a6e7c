"""Every problem through every backend with a wrong derivative: it is called wrong, and the place is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from multigrad import check_grad
from multigrad.errors import GradientMismatch
from tests.bugs import BUGS, Planted
from tests.derivatives import with_derivative
from tests.pairs import PAIRS, can_be_written, place, ready
from tests.problems import Problem


def cases() -> Iterator[Any]:
    """Every bug in every problem that it changes, for every backend in which such a derivative can be written."""
    for backend, problem in PAIRS:
        for name, bug in BUGS.items():
            planted = bug(problem.blocks(), problem.name)
            if planted is not None and can_be_written(problem, backend, planted.blocks):
                yield pytest.param(backend, problem, planted, id=f"{backend}-{problem.name}-{name}")


@pytest.mark.parametrize(("backend", "problem", "planted"), list(cases()))
def test_wrong_gradient(backend: str, problem: Problem, planted: Planted, request: pytest.FixtureRequest) -> None:
    ready(backend, request)
    fn, options = with_derivative(problem, backend, planted.blocks)

    with pytest.raises(GradientMismatch) as caught:
        check_grad(fn, problem.arguments(backend), backend=backend, **options)

    assert caught.value.report.verdict == "mismatch"
    names_the_place(caught.value, problem, planted)


def names_the_place(error: GradientMismatch, problem: Problem, planted: Planted) -> None:
    """The worst entry is a wrong one, and the message says which."""
    worst = error.report.worst[0]
    assert (worst.output, worst.input) in {place(problem, *where) for where in planted.places}
    assert worst.output in str(error)
    assert worst.input in str(error)

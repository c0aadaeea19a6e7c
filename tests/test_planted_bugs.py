"""Every problem through every backend with a wrong derivative: it is called wrong, and the place is named."""

from __future__ import annotations

import pytest

from multigrad import check_grad
from multigrad.errors import GradientMismatch
from tests.bugs import BUGS, Planted
from tests.derivatives import with_derivative
from tests.pairs import PAIRS, place, ready
from tests.problems import Problem


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize(("backend", "problem"), PAIRS)
def test_wrong_gradient(backend: str, problem: Problem, bug: str, request: pytest.FixtureRequest) -> None:
    planted = BUGS[bug](problem.blocks(), problem.name)
    if planted is None:
        pytest.skip(f"{bug}: changes nothing here")
    ready(backend, request)
    try:
        fn, options = with_derivative(problem, backend, planted.blocks)
    except ValueError as error:
        pytest.skip(str(error))

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

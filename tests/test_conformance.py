"""Every problem through every backend: right gradients are called right, and both sides are what is known by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import check_grad
from tests.derivatives import with_derivative
from tests.pairs import PAIRS, named, ready
from tests.problems import Problem, tree

ULPS = 16 * np.finfo(float).eps


@pytest.mark.parametrize(("backend", "problem"), [pytest.param(b, p, id=f"{b}-{p.name}") for b, p in PAIRS])
def test_right_gradient(backend: str, problem: Problem, request: pytest.FixtureRequest) -> None:
    ready(backend, request)
    fn, options = problem.function(backend), {}
    if backend == "numpy":
        fn, options = with_derivative(problem, backend, problem.blocks())
    inputs = problem.arguments(backend)

    report = check_grad(fn, inputs, backend=backend, **options)

    assert report.verdict == "ok", str(report)
    assert bool(report)
    assert report.evaluations > 0
    compare(report, problem)
    unchanged(inputs, problem)


def compare(report: Any, problem: Problem) -> None:
    """The blocks, with their names, against the Jacobian by hand."""
    outputs, inputs = named(problem)
    expected = {
        (y.path, x.path): b
        for y, row in zip(outputs, problem.blocks(), strict=True)
        for x, b in zip(inputs, row, strict=True)
    }
    modes = {block.mode for block in report.blocks}
    assert modes
    assert sorted((b.output, b.input, b.mode) for b in report.blocks) == sorted(
        (*k, m) for k in expected for m in modes
    )
    for block in report.blocks:
        hand = expected[block.output, block.input]
        row = np.max(np.abs(hand), axis=1, keepdims=True, initial=0)
        assert block.numeric.shape == block.analytical.shape == block.bar.shape == hand.shape
        assert np.all(np.abs(block.numeric - hand) <= block.bar + ULPS * np.abs(hand)), (block.numeric, hand, block.bar)
        assert np.all(np.abs(block.analytical - hand) <= 1e-12 * row), (block.analytical, hand)


def unchanged(inputs: Any, problem: Problem) -> None:
    for now, before in zip(tree.leaves(inputs), tree.leaves(problem.inputs), strict=True):
        np.testing.assert_array_equal(now.detach() if hasattr(now, "detach") else now, before)
        assert getattr(now, "grad", None) is None

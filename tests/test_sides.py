"""At a kink the report says what slopes f has on both sides."""

from __future__ import annotations

import numpy as np
import pytest

from tests.flat import check_flat

KINKS = {
    "relu": (
        lambda X: np.maximum(X, 0.0),
        [0.0],
        [[1.0]],
        "has the slope 0 below and the slope 1 above it; any",
    ),
    "abs beside a value": (lambda X: 5 + 3 * np.abs(X - 2), [2.0], [[0.0]], "the slope -3 below and the slope 3 above"),
    "wrong": (lambda X: np.maximum(X, 0.0), [0.0], [[2.0]], "the slope 0 below and the slope 1 above"),
    "step": (np.floor, [1.0], [[0.0]], "no finite slope below and the slope 0 above"),
    "edge of the domain": (np.sqrt, [0.0], [[np.inf]], "no value below and no finite slope above it"),
    "median of equals": (lambda X: np.median(X, axis=1, keepdims=True), [1.0] * 4, [[0.25] * 4], "where several move"),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt")
@pytest.mark.parametrize("name", KINKS)
def test_the_slopes_on_both_sides_are_told(name: str) -> None:
    f, x, J, said = KINKS[name]
    report = check_flat(f, np.array(x), np.array(J))
    told = [finding.evidence for finding in report.findings if finding.kind == "kink"]
    assert len(told) == 1
    assert said in told[0]
    assert report.verdict == ("mismatch" if name == "wrong" else "nondifferentiable")


def test_nothing_is_told_where_f_is_smooth() -> None:
    for J in (np.cos(1.0), 2.0):
        report = check_flat(np.sin, np.ones(1), np.full((1, 1), J))
        assert "kink" not in {finding.kind for finding in report.findings}

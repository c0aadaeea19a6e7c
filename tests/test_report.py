"""The report: for people, and for programs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from multigrad import check_grad
from multigrad._comparison.verdict import Status
from multigrad._report.leg import Leg
from tests.flat import check_flat

RIGHT = {"jac": lambda x: 2 * x}
WRONG = {"jac": lambda x: 2 * x + np.array([0, 0.5, np.nan]), "raise_exception": False}


def square(x):
    return np.sum(x**2)


X = np.array([1.0, 2.0, 3.0])


def test_right():
    report = check_grad(square, X, **RIGHT)
    assert report and report.verdict == "ok"
    text = str(report)
    assert text.startswith("ok: the gradient is right, to ")
    assert "evaluations" in text and "seed 0" in text
    assert 0 < report.sharpness < 1e-9
    assert report.backend == "numpy" and report.evaluations > 0 and report.seconds > 0


def test_wrong():
    report = check_grad(square, X, **WRONG)
    assert not report and report.verdict == "mismatch"
    text = str(report)
    assert text.startswith("mismatch: the gradient is wrong")
    for word in ("output", "inputs[0][1]", "4.5", "inputs[0][2]", "nan", "2 wrong", "rtol = 1e-07"):
        assert word in text
    assert [(e.input, e.status) for e in report.worst[:2]] == [
        ("inputs[0][2]", Status.MISMATCH),
        ("inputs[0][1]", Status.MISMATCH),
    ]
    assert report.worst[1].error == pytest.approx(0.5)
    assert report.count(Status.MISMATCH) == 2 and report.count(Status.OK) == 1


def test_blocks_have_the_shapes_of_the_leaves():
    f = lambda a, b: {"sum": np.sum(a) + np.sum(b), "a": a**2}
    jac = lambda a, b: {"sum": (np.ones(2), np.ones((1, 3))), "a": (np.diag(2 * a), np.zeros((2, 1, 3)))}
    report = check_grad(f, (np.array([1.0, 2.0]), np.ones((1, 3))), jac=jac)
    shapes = {(b.output, b.input): b.numeric.shape for b in report.blocks}
    assert sorted(shapes.values()) == [(1, 2), (1, 3), (2, 2), (2, 3)]
    for block in report.blocks:
        assert block.verdict == "ok"
        assert block.analytical.shape == block.bar.shape == block.status.shape == block.numeric.shape
        np.testing.assert_allclose(block.numeric, block.analytical, atol=1e-9)


@pytest.mark.parametrize("options", [RIGHT, WRONG])
def test_as_a_dictionary_that_json_takes(options):
    report = check_grad(square, X, **options)
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["verdict"] == report.verdict
    assert told["counts"]["mismatch"] == report.count(Status.MISMATCH)
    assert told["worst"][0]["input"] == report.worst[0].input
    assert told["inputs"] == [{"path": "inputs[0]", "shape": [3], "dtype": "float64"}]
    assert told["modes"] == {"reverse": report.verdict}
    assert (told["seed"], told["evaluations"]) == (0, report.evaluations)


def test_at_a_kink():
    report = check_flat(np.abs, np.array([0.0, 1.0]), np.diag([0.3, 1.0]))
    assert report and "kink" in str(report) and "1 at kinks" in str(report)


def test_inconclusive_says_why():
    report = check_flat(lambda X: 1e14 + np.sin(X), np.array([0.3]), np.array([[0.9]]))
    assert not report and report.reason
    assert report.reason in str(report)


def test_unresolved_entries_are_counted():
    x = np.array([0.3, 25.0])
    report = check_flat(np.tanh, x, np.diag(1 / np.cosh(x) ** 2))
    assert "1 too small to resolve" in str(report)


def test_the_same_seed_gives_the_same_report():
    first, second = (check_flat(np.sin, X, np.diag(np.cos(X)), 5) for _ in range(2))
    np.testing.assert_array_equal(first.legs[0].numeric, second.legs[0].numeric)
    np.testing.assert_array_equal(first.legs[0].bar, second.legs[0].bar)


def test_what_is_0_has_no_relative_error():
    analytical, numeric = np.array([[0.0, 2.0]]), np.array([[1e-14, 2.0]])
    leg = Leg("reverse", analytical, numeric, np.full((1, 2), 1e-10), np.zeros((1, 2), np.int8))
    assert leg.sharpness == 5e-11

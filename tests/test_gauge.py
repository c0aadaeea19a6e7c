"""Unit vectors whose phases are arbitrary."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad._run import run_check
from multigrad.backends import Leaf
from tests.flat import Flat

BASE = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3, 2)) @ np.array([1, 1j]))[0]


class Vectors(Flat):
    """Three complex unit vectors, the columns of a matrix, that depend on two numbers."""

    def __init__(self, f, x, J):
        super().__init__(f, x, J)
        self.outputs = [Leaf("output", (3, 3), "complex128", 0)]


def pairs(z):
    return np.ascontiguousarray(z).view(np.float64).reshape(*z.shape[:-2], -1)


def matrices(X):
    """Turned about an axis by x[0], each column by a phase that goes with x[1]."""
    c, s, one, zero = np.cos(X[:, 0]), np.sin(X[:, 0]), np.ones(len(X)), np.zeros(len(X))
    rotation = np.moveaxis(np.array([[c, -s, zero], [s, c, zero], [zero, zero, one]]), -1, 0)
    return rotation @ BASE * np.exp(1j * X[:, 1, None, None] * np.array([1.0, 2.0, 3.0]))


def jacobian(x, phase=1.0, rotation=1.0):
    V = matrices(x[None])[0]
    generator = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
    return pairs(np.stack([rotation * generator @ V, phase * 1j * V * np.array([1.0, 2.0, 3.0])])).T


X = np.array([0.3, -0.7])


@pytest.mark.parametrize("layout", ["columns", "rows"])
@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        ({}, "ok"),
        ({"phase": 0.0}, "inconclusive"),
        ({"phase": 1.01}, "inconclusive"),
        ({"rotation": 1.01}, "mismatch"),
        ({"phase": 0.0, "rotation": 1.0001}, "mismatch"),
    ],
)
def test_phases(wrong, verdict, layout):
    def arranged(flat):
        z = np.ascontiguousarray(flat).view(np.complex128).reshape(-1, 3, 3)
        return pairs(z.transpose(0, 2, 1)) if layout == "rows" else flat

    f = Vectors(lambda x: arranged(pairs(matrices(x))), X, arranged(np.ascontiguousarray(jacobian(X, **wrong).T)).T)
    report = run_check(f)
    assert report.verdict == verdict
    assert ("ill_defined" in {finding.kind for finding in report.findings}) == (verdict == "inconclusive")


def test_vectors_that_are_no_unit_vectors_have_phases_of_their_own():
    f = Vectors(lambda x: 2 * pairs(matrices(x)), X, 2 * jacobian(X, phase=0.0))
    assert run_check(f).verdict == "mismatch"

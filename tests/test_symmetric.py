"""Functions of a symmetric matrix that read one triangle of it."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad._run import Settings, run_check
from multigrad.backends import Leaf
from tests.flat import Flat

K = 4
RNG = np.random.default_rng(5)
WEIGHTS = RNG.uniform(0.5, 2.0, (3, K, K))
BASE = RNG.normal(size=(K, K))
MATRIX = BASE + BASE.T


class OfMatrix(Flat):
    def __init__(self, f, x, J):
        super().__init__(f, x.ravel(), J)
        self.inputs = [Leaf("inputs[0]", (K, K), "float64", 0)]


def lower_triangle(X):
    A = np.tril(X.reshape(-1, K, K))
    return np.stack([np.sin(A * w).sum(axis=(1, 2)) for w in WEIGHTS], axis=1)


def derivative(x):
    return np.stack([np.tril(w * np.cos(x * w)) for w in WEIGHTS])


def symmetrised(J):
    return (J + J.transpose(0, 2, 1)) / 2


def check(f, x, J, **options):
    return run_check(OfMatrix(f, x, J.reshape(len(J), -1)), Settings(**options))


def test_plain_derivative_needs_no_note():
    report = check(lower_triangle, MATRIX, derivative(MATRIX))
    assert (report.verdict, report.findings) == ("ok", ())


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_gradient_of_a_symmetric_matrix(mode):
    report = check(lower_triangle, MATRIX, symmetrised(derivative(MATRIX)), modes=(mode,))
    assert report.verdict == "ok"
    assert [(f.kind, f.where) for f in report.findings] == [("symmetric_domain", "inputs[0]")]
    assert report.sharpness < 1e-7


def one_pair_dropped(J):
    J = J.copy()
    J[1, 2, 1] = J[1, 1, 2] = 0.0
    return J


@pytest.mark.parametrize(
    "bug", [lambda J: 1.0001 * J, one_pair_dropped, lambda J: 2 * J, lambda J: np.abs(J)], ids=range(4)
)
def test_wrong_gradient_of_a_symmetric_matrix(bug):
    assert check(lower_triangle, MATRIX, bug(symmetrised(derivative(MATRIX)))).verdict == "mismatch"


def test_gradient_in_the_other_triangle():
    J = derivative(MATRIX).transpose(0, 2, 1)
    assert check(lower_triangle, MATRIX, J, modes=("reverse",)).verdict == "mismatch"


def test_a_point_that_is_not_symmetric():
    x = MATRIX + np.triu(np.full((K, K), 0.1), 1)
    assert check(lower_triangle, x, symmetrised(derivative(x))).verdict == "mismatch"


def test_a_function_that_reads_both_triangles():
    def f(X):
        return np.stack([(np.sin(X) * w.ravel()).sum(axis=1) for w in WEIGHTS], axis=1)

    J = WEIGHTS * np.cos(MATRIX)
    assert check(f, MATRIX, J).verdict == "ok"
    for wrong in (symmetrised(J), J.transpose(0, 2, 1)):
        assert check(f, MATRIX, wrong).verdict == "mismatch"

"""Sparse Jacobians: the pattern is f's own, no row has two columns of a group, and what is said is what is said densely."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from multigrad import _run
from multigrad._comparison.verdict import Status
from multigrad._sparsity.colouring import colours
from multigrad._sparsity.sparse import Pattern
from multigrad._sparsity.structure import find_structure
from multigrad.backends import Array
from multigrad.batches import Batched
from tests.flat import Flat, check_flat

RNG = np.random.default_rng(5)


def banded(width: int) -> Callable[[Array], Array]:
    """Each output is of ``width`` neighbouring inputs."""
    weights = RNG.uniform(0.5, 1.5, width)
    return lambda X: np.tanh(sum(w * X[:, k : X.shape[1] - width + 1 + k] for k, w in enumerate(weights)))


def blocks(size: int) -> Callable[[Array], Array]:
    A = RNG.normal(size=(size, size))
    return lambda X: np.sin(X.reshape(len(X), -1, size) @ A).reshape(len(X), -1)


SPARSE = {
    "elementwise": (np.sin, 60),
    "long": (np.exp, 2000),
    "band of 3": (banded(3), 100),
    "band of 5, long": (banded(5), 700),
    "blocks of 4": (blocks(4), 64),
    "blocks of 7": (blocks(7), 350),
    "reversed": (lambda X: X[:, ::-1] ** 3 + X, 50),
    "every other": (lambda X: np.sqrt(np.abs(X[:, ::2])) * X[:, 1::2], 80),
    "constants among them": (lambda X: np.where(np.arange(X.shape[1]) % 3 == 0, 1.0, X * np.abs(X)), 90),
}


def jacobian(f: Callable[[Array], Array], x: Array) -> Array:
    """By complex steps where f takes them, by plain differences else."""
    h = 1e-6
    plus, minus = f(x + h * np.eye(len(x))), f(x - h * np.eye(len(x)))
    return ((plus - minus) / (2 * h)).T


def exact(f: Callable[[Array], Array], x: Array) -> Array:
    """A Jacobian good to 1e-12 from extrapolated differences, with the zeros where they are."""
    coarse, fine = (((f(x + h * np.eye(len(x))) - f(x - h * np.eye(len(x)))) / (2 * h)).T for h in (2.0**-9, 2.0**-10))
    finer = ((f(x + 2.0**-11 * np.eye(len(x))) - f(x - 2.0**-11 * np.eye(len(x)))) * 2.0**10).T
    one, two = fine + (fine - coarse) / 3, finer + (finer - fine) / 3
    return two + (two - one) / 15


def point(n: int) -> Array:
    return RNG.uniform(0.4, 1.9, n) * RNG.choice([-1, 1], n)


@pytest.mark.parametrize("name", SPARSE)
def test_the_pattern_is_that_of_f(name: str) -> None:
    f, n = SPARSE[name]
    x = point(n)
    flat = Flat(f, x, np.zeros((f(x[None]).shape[1], n)))
    found = find_structure(Batched(flat, flat.repeats.shape[1]), x, flat.inputs, np.random.default_rng(0))
    assert found is not None
    true = jacobian(f, x) != 0
    pattern = np.zeros(true.shape, bool)
    pattern[found.pattern.rows, found.pattern.columns] = True
    assert (pattern >= true).all()
    assert pattern.sum() <= 2 * true.sum()
    assert len(found.directions) <= 3 * true.sum(axis=1).max() + 1


@pytest.mark.parametrize("density", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("copies", [1, 3])
def test_no_row_has_two_columns_of_a_colour(density: float, copies: int) -> None:
    matrix = np.repeat(RNG.uniform(size=(70, 40)) < density, copies, axis=1)
    colour = colours(Pattern(matrix.shape, *np.nonzero(matrix)))
    for row in matrix:
        used = colour[row]
        assert len(set(used.tolist())) == len(used)
    assert colour.max() + 1 <= 3 * max(1, matrix.sum(axis=1).max())


@pytest.mark.parametrize("f", [lambda X: X.sum(axis=1, keepdims=True) * X, lambda X: np.cumsum(X**2, axis=1)])
def test_a_dense_function_has_no_structure(f: Callable[[Array], Array]) -> None:
    x = point(40)
    flat = Flat(f, x, np.zeros((40, 40)))
    assert find_structure(Batched(flat, 40), x, flat.inputs, np.random.default_rng(0)) is None


@pytest.fixture(params=["grouped", "dense"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether structure is made use of."""
    monkeypatch.setattr(_run, "INPUTS_FROM", 1 if request.param == "grouped" else 10**9)
    return str(request.param)


@pytest.mark.parametrize("name", SPARSE)
def test_a_right_jacobian_is_right(name: str, way: str) -> None:
    f, n = SPARSE[name]
    if way == "dense" and n > 500:
        pytest.skip("too slow one by one")
    x = point(n)
    J = exact(f, x)
    report = check_flat(f, x, J)
    assert report.verdict == "ok", str(report)
    assert report.count(Status.OK) == J.size
    leg = report.legs[0]
    assert (np.abs(leg.numeric - J) <= leg.bar + 1e-10 * np.abs(J)).all()
    assert (leg.analytical == J).all()


def plant(J: Array, bug: str) -> tuple[Array, tuple[int, int]]:
    """A wrong Jacobian and a place where it is wrong: on the pattern, off it, or an entry left out."""
    J = J.copy()
    size = np.abs(J)
    if bug == "outside the pattern":
        i, j = np.argwhere(J == 0)[RNG.integers((J == 0).sum())]
        J[i, j] = 0.01 * size.max()
    else:
        candidates = np.argwhere(size > 0.1 * size.max())
        i, j = candidates[RNG.integers(len(candidates))]
        J[i, j] *= {"inside, by 1e-5": 1 + 1e-5, "left out": 0.0, "sign": -1.0}[bug]
    return J, (int(i), int(j))


@pytest.mark.parametrize("bug", ["inside, by 1e-5", "left out", "sign", "outside the pattern"])
@pytest.mark.parametrize("name", SPARSE)
def test_a_wrong_entry_is_named(name: str, bug: str, way: str) -> None:
    f, n = SPARSE[name]
    if way == "dense" and n > 100:
        pytest.skip("too slow one by one")
    x = point(n)
    J, (i, j) = plant(exact(f, x), bug)
    report = check_flat(f, x, J)
    assert report.verdict == "mismatch"
    assert (report.worst[0].output, report.worst[0].input) == (f"output[{i}]", f"inputs[0][{j}]")
    assert report.count(Status.MISMATCH) == 1
    assert (report.legs[0].status == Status.MISMATCH).sum() == 1


def test_entries_that_the_derivative_lacks_are_seen_beside_others() -> None:
    """An entry of 1e-9 of its row mate, which a tolerance for the sum of both would hide."""

    def f(X: Array) -> Array:
        return X + 1e-9 * np.roll(X, 7, axis=1)

    report = check_flat(f, point(60), np.eye(60))
    assert report.verdict == "mismatch"
    assert report.count(Status.MISMATCH) == 60


def test_a_large_wrong_elementwise_derivative_stays_sparse() -> None:
    n = 5000
    x = point(n)

    class Elementwise(Flat):
        def vjp(self, U: Array, /) -> Array:
            return 1.05 * U * np.cos(self.x)

        def jvp(self, V: Array, /) -> Array:
            return 1.05 * V * np.cos(self.x)

    flat = Elementwise(np.sin, x, np.zeros((1, 1)))
    report = _run.run_check(flat)
    assert report.verdict == "mismatch"
    assert report.count(Status.MISMATCH) == n
    assert report.count(Status.OK) == n * n - n
    assert report.evaluations < 1000
    assert all(entry.output == entry.input.replace("inputs[0]", "output") for entry in report.worst)


@pytest.mark.parametrize("claimed", [0.0, 0.5, 1.0])
def test_kinks_in_groups(claimed: float) -> None:
    x = point(60)
    x[7] = 0.0
    J = np.diag((x > 0).astype(float))
    J[7, 7] = claimed
    report = check_flat(lambda X: np.maximum(X, 0.0), x, J)
    assert report.verdict == "nondifferentiable"
    assert report.count(Status.NONDIFFERENTIABLE) == 1
    J[7, 7] = 1.5
    assert check_flat(lambda X: np.maximum(X, 0.0), x, J).verdict == "mismatch"


# Terms of one input each, with their derivatives.
TERMS = (
    (np.sin, np.cos),
    (np.exp, np.exp),
    (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    (np.square, lambda x: 2 * x),
    (lambda x: x, np.ones_like),
    (lambda x: x**3 - x, lambda x: 3 * x**2 - 1),
    (lambda x: np.sin(5 * x), lambda x: 5 * np.cos(5 * x)),
    (lambda x: np.log1p(x**2), lambda x: 2 * x / (1 + x**2)),
)


@pytest.mark.parametrize("seed", [0, 4, 19, 21])
def test_a_band_with_entries_that_f_does_not_show(seed: int) -> None:
    """An entry of 1e-20 beside 1 is in no pattern, and in a group it adds to another that is hardly larger."""
    n, rng = 400, np.random.default_rng(seed)
    rng.integers(2, 8), rng.integers(1, 5)  # so that the seeds are those that were seen to go wrong
    chosen = rng.integers(0, len(TERMS), n)
    A = 10 ** rng.uniform(-12, 0, (n, n)) * rng.choice([-1, 1], (n, n))
    A[np.arange(n), rng.integers(0, n, n)] = rng.uniform(0.5, 2, n)
    A = np.where(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2, A, 0.0)
    scale = 10 ** rng.uniform(-6, 6, n) if rng.random() < 0.5 else np.ones(n)
    x = rng.normal(size=n) * 10 ** rng.uniform(-2, 0.5)

    def f(X: Array) -> Array:
        return np.stack([TERMS[k][0](X[:, j]) for j, k in enumerate(chosen)], axis=1) @ A.T * scale

    J = A * np.array([TERMS[k][1](x[j]) for j, k in enumerate(chosen)]) * scale[:, None]
    assert check_flat(f, x, J).verdict in ("ok", "inconclusive")
    J[7, np.argmax(np.abs(J[7]))] *= -1
    assert check_flat(f, x, J).verdict == "mismatch"

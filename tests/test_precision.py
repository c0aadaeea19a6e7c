"""What low precision explains: errors as small as its rounding, and steps in values."""

import numpy as np
import pytest

from multigrad._comparison.verdict import Status
from multigrad._run import Settings, run_check
from multigrad.backends import Leaf
from multigrad.precision import Sample, examine
from multigrad.residual import has_steps
from tests.flat import Flat

SINGLE, HALF, BFLOAT = 2.0**-23, 2.0**-10, 2.0**-7
X = np.array([0.3, -1.7, 2.2])


def checked(error, written, **options):
    """What is said of a Jacobian that is wrong by a factor, of code written for roundoff ``written``."""
    f = Flat(np.sin, X, np.diag(np.cos(X) * (1 + error)))
    f.written = written
    return run_check(f, Settings(modes=("reverse",), **options))


@pytest.mark.parametrize(
    ("written", "error", "verdict"),
    [
        (0.0, 3e-7, "mismatch"),
        (2.0**-52, 3e-7, "mismatch"),
        (SINGLE, 3e-7, "ok"),
        (SINGLE, 3e-6, "inconclusive"),
        (SINGLE, 2e-5, "mismatch"),
        (SINGLE, 1e-3, "mismatch"),
        (HALF, 3e-7, "ok"),
        (HALF, 1e-3, "inconclusive"),
        (HALF, 1e-2, "mismatch"),
        (BFLOAT, 1e-3, "inconclusive"),
        (BFLOAT, 1e-2, "mismatch"),
        (BFLOAT, -1.0, "mismatch"),
        (BFLOAT, np.nan, "mismatch"),
    ],
)
def test_errors_as_small_as_rounding(written, error, verdict):
    report = checked(error, written)
    assert report.verdict == verdict, str(report)
    assert ("rounded constant" in report.reason) == (verdict == "inconclusive")


@pytest.mark.parametrize(
    ("written", "error", "verdict"),
    [(0.0, 2e-7, "mismatch"), (SINGLE, 2e-7, "inconclusive"), (SINGLE, 5e-6, "mismatch"), (HALF, 1e-4, "inconclusive")],
)
@pytest.mark.parametrize("small", [1e-3, 1e-5])
def test_a_rounded_constant_changes_small_entries_by_a_part_of_the_largest(written, error, verdict, small):
    """A phase, say: the derivatives of sin(x1) + sin(x2) with cos(x + error), where one of them is nearly 0."""
    x = np.array([1.0, np.pi / 2 - small])
    f = Flat(lambda X: np.sin(X).sum(-1, keepdims=True), x, np.cos(x + error)[None])
    f.written = written
    assert run_check(f, Settings(modes=("reverse",))).verdict == verdict


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("loss", [0.02, 1.0])
def test_what_underflow_rounds_off_is_no_other_function(dtype, loss):
    """Below the smallest normal number rounding is no longer a fraction of the number."""
    smallest, eps = {"float32": (2.0**-126, SINGLE), "float16": (2.0**-14, HALF), "bfloat16": (2.0**-126, BFLOAT)}[
        dtype
    ]
    leaf = [Leaf("output", (2,), dtype, 0)]
    for size, alike in ((2 * eps * smallest, True), (smallest / eps, False)):
        low = [Sample(np.array([size, 0.0]), np.array([size, 0.0]))] * 4
        double = [Sample(s.value * (1 + loss), s.gradient * (1 + loss)) for s in low]
        said = examine(low, double, eps, leaf, leaf)
        assert (not said.fault and not said.findings) is (alike or loss < 20 * eps)


def test_a_tolerance_that_is_asked_for_decides():
    assert checked(1e-3, BFLOAT, rtol=1e-2).verdict == "ok"
    assert checked(3e-7, SINGLE, rtol=1e-7).verdict == "mismatch"


def test_one_entry_that_is_far_off_is_not_excused_by_others():
    J = np.diag(np.cos(X) * (1 + 1e-3))
    J[1, 1] *= 1.5
    f = Flat(np.sin, X, J)
    f.written = BFLOAT
    report = run_check(f, Settings(modes=("reverse",)))
    assert report.verdict == "mismatch" and not any(finding.kind == "precision" for finding in report.findings)


def rounded(values, eps):
    """To the nearest number of unit roundoff ``eps``."""
    unit = np.exp2(np.floor(np.log2(np.abs(values)))) * eps
    return np.round(values / unit) * unit


FUNCTIONS = {
    "sin": np.sin,
    "tanh": np.tanh,
    "exp": np.exp,
    "square": np.square,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "mean": lambda x: x.mean(-1, keepdims=True),
}


@pytest.mark.parametrize("eps", [HALF, BFLOAT])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_of_low_precision(name, eps):
    f = FUNCTIONS[name]
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=6)
        assert has_steps(lambda X: rounded(f(rounded(X, eps)), eps), x, eps, seed)
        assert has_steps(lambda X: np.cos(X) + rounded(f(rounded(X, eps)), eps), x, eps, seed)
        assert not has_steps(f, x, eps, seed)


@pytest.mark.parametrize("eps", [HALF, BFLOAT])
@pytest.mark.parametrize("seed", range(20))
def test_kinks_and_steps_of_the_users(seed, eps):
    rng = np.random.default_rng(seed)
    x, W, v = rng.normal(size=6), rng.normal(size=(6, 50)), rng.normal(size=(50, 3))
    assert not has_steps(lambda X: np.maximum(X @ W, 0) @ v, x, eps, seed)
    assert not has_steps(lambda X: np.floor(4 * X) / 4, x, eps, seed)
    assert not has_steps(lambda X: np.sin(20 * X) + np.abs(X), x, eps, seed)


def test_single_precision_is_seen_as_noise_and_not_as_steps():
    assert not has_steps(lambda X: X.astype(np.float32).astype(float), X, SINGLE, 0)


def test_the_report_says_how_large_an_error_it_has_let_pass():
    assert 2.9e-7 < checked(3e-7, SINGLE).sharpness < 3.2e-7


def test_an_approximate_derivative_is_called_so():
    f = Flat(np.sin, X, np.diag(np.cos(X) * (1 + np.array([3e-6, -2e-6, 1e-6]))))
    report = run_check(f, Settings(modes=("reverse",)))
    (diagnosis,) = [finding.evidence for finding in report.findings if finding.kind == "diagnosis"]
    assert report.verdict == "mismatch" and "approximate" in diagnosis and "atol=" in diagnosis
    accepted = float(diagnosis.rpartition("atol=")[2])
    assert run_check(f, Settings(modes=("reverse",), atol=accepted)).verdict == "ok"


@pytest.mark.parametrize("written", [0.0, SINGLE])
def test_an_illegal_choice_at_a_kink_is_no_rounding(written):
    """It may differ from the mean of the slopes by less than the bar that the two of them make."""
    f = Flat(lambda x: np.abs(x) + np.where(x > 0, x, 0), np.zeros(1), np.array([[2.5]]))
    f.written = written
    assert run_check(f, Settings(modes=("reverse",))).verdict == "mismatch"


@pytest.mark.parametrize("eps", [SINGLE, HALF, BFLOAT])
@pytest.mark.parametrize("error", [0.5, -2.0])
def test_a_rounding_of_coarse_arithmetic_excuses_no_slope(eps, error):
    """Where f turns, a derivative may be what a rounding of x makes of its curvature; in half precision that is much."""
    x = np.array([0.3, 0.7, -1.2, 2.1])
    f = Flat(lambda X: np.round(np.sin(X) * X / eps) * eps, x, np.diag((np.cos(x) * x + np.sin(x)) * (1 + error)))
    f.eps = f.written = eps
    report = run_check(f, Settings(modes=("reverse",)))
    assert not report
    assert not report.count(Status.UNRESOLVED)

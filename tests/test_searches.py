"""Functions that search: far from the inputs, where there is nothing to find, they never return."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multigrad import check_grad
from multigrad._belongings import Belongings
from multigrad._differences.plateaus import distances
from tests.flat import Flat

FEW = 10_000


def newton(a, tolerance=1e-12):
    """The square root: for a < 0 Newton's steps go round for ever."""
    root, steps = max(float(a), 1.0), 0
    while abs(root * root - a) > tolerance * a:
        root, steps = (root + a / root) / 2, steps + 1
        assert steps < FEW, "there is no such root"
    return root


def newton_for_ever(a):
    return jax.lax.while_loop(
        lambda root: jnp.abs(root * root - a) > 1e-12 * a, lambda root: (root + a / root) / 2, jnp.maximum(a, 1.0)
    )


class Root:
    def __call__(self, a):
        return newton(a)


@pytest.mark.parametrize("a", [0.2, 2.3, 5.0, 400.0])
@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "ok"), (2.0, "mismatch"), (1.001, "mismatch"), (0.0, "mismatch")]
)
@pytest.mark.parametrize(
    "fn",
    [newton, lambda a: newton(a), functools.partial(newton, tolerance=1e-13), Root()],
    ids=["fn", "lambda", "partial", "object"],
)
def test_roots_in_python(fn, factor, verdict, a):
    report = check_grad(fn, (a,), backend="numpy", jac=lambda a: factor / (2 * np.sqrt(a)), raise_exception=False)
    assert report.verdict == verdict
    assert "raises_nearby" not in {finding.kind for finding in report.findings}


@pytest.mark.parametrize("a", [0.2, 2.3, 400.0])
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "ok"), (2.0, "mismatch")])
def test_roots_in_jax(factor, verdict, a):
    """These can't be interrupted."""
    fn = jax.custom_vjp(newton_for_ever)
    fn.defvjp(lambda a: (fn(a), fn(a)), lambda root, g: (factor * g / (2 * root),))
    assert check_grad(fn, (a,), backend="jax", raise_exception=False).verdict == verdict


def for_loop(x):
    for k in range(3):
        if k == 1:
            continue
        x = x + sum(k * x for k in [1, 2])
    return [x for _ in range(2)]


def nested(x):
    def inner():
        y = x
        while abs(y) > 1:
            y = y / 2
        return y

    return inner()


@pytest.mark.parametrize(
    ("fn", "searches"),
    [
        (newton, True),
        (nested, True),
        (Root(), True),
        (lambda a: newton(a), True),
        (for_loop, False),
        (np.sin, False),
        (jnp.sin, False),
    ],
)
def test_what_searches(fn, searches):
    assert Belongings(fn).searches == searches


class Bounded(Flat):
    """Raises farther from x than it wants to be evaluated."""

    farthest = 2.0**-4

    def __call__(self, X):
        assert (np.abs(X - self.x) <= self.farthest * 2).all()  # the scale of x is at most twice its largest entry
        return super().__call__(X)


def test_an_adapter_says_how_far():
    from multigrad._run import run_check

    x = np.array([0.3, 1.5])
    right = np.diag(np.cos(x))
    for J, verdict in ((right, "ok"), (1.01 * right, "mismatch"), (right + 1e-3, "mismatch")):
        report = run_check(Bounded(np.sin, x, J))
        assert report.verdict == verdict
        assert not report.findings or {finding.kind for finding in report.findings} <= {"diagnosis"}


@pytest.mark.parametrize("step", [1e-9, 1e-4, 2.0**-6])
@pytest.mark.parametrize("limit", [2.0**-4, 4.0])
def test_windows_end_at_the_limit(step, limit):
    for farthest in (2.0**-7, limit):
        assert np.abs(distances(step, farthest, limit)).max() <= limit

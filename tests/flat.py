"""A flat function made of a vectorised NumPy function and a Jacobian by hand: the core without an adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from multigrad._report.report import GradReport
from multigrad._run import Settings, run_check
from multigrad.backends import Array, Leaf
from multigrad.findings import Finding


class Flat:
    """f(X) maps (b, n) to (b, m); J is the Jacobian at x that is claimed, shape (m, n)."""

    eps = 2.0**-52

    def __init__(self, f: Callable[[Array], Array], x: Array, J: Array) -> None:
        self.f, self.x, self.J = f, np.asarray(x, float), np.asarray(J, float)
        value = self.f(self.x[None])[0]
        self.inputs: Sequence[Leaf] = [Leaf("inputs[0]", self.x.shape, "float64", 0)]
        self.outputs: Sequence[Leaf] = [Leaf("output", value.shape, "float64", 0)]
        self.fixed: Sequence[str] = ()
        self.repeats = np.stack([value, self.f(self.x[None])[0]])
        self.findings: Sequence[Finding] = ()

    def __call__(self, X: Array, /) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(self.f(X), float)

    def vjp(self, U: Array, /) -> Array:
        return U @ self.J

    def jvp(self, V: Array, /) -> Array:
        return V @ self.J.T


def check_flat(f: Callable[[Array], Array], x: Array, J: Array, seed: int = 0) -> GradReport:
    with np.errstate(all="ignore"):
        return run_check(Flat(f, x, J), Settings(modes=("reverse",), seed=seed))

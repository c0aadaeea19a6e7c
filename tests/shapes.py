"""Functions of one shape or another, vectorised over rows, with the derivatives that they have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multigrad.backends import Array

Function = Callable[[Array], Array]


def white_noise(X: Array, size: float) -> Array:
    """A fixed number in [-size, size] for every value, unlike that of its neighbours; the same at every call."""
    bits = np.ascontiguousarray(X[:, :1]).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0x94D049BB133111EB)
    return size * ((bits >> np.uint64(11)).astype(float) / 2.0**52 - 1)


def coupled(f: Function, df: Function, x: Array, way: str, rng: np.random.Generator) -> tuple[Function, Array]:
    """f of every entry, and what is made of all: nothing, their sum, or four mixtures; with the Jacobian at x."""
    if way == "apart":
        return f, np.diag(df(x))
    A = np.ones((1, x.size)) if way == "sum" else rng.normal(size=(4, x.size))
    return lambda X: f(X) @ A.T, A * df(x)

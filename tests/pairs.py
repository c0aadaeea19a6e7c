"""Every problem with every backend that can take it, and the names by which reports call its entries."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad.backends import Leaf, get_backend
from multigrad.errors import BackendUnavailable
from tests.derivatives import Blocks, user_jac
from tests.problems import PROBLEMS, Problem, tree
from tests.problems.problem import differentiable

BACKENDS = ("jax", "numpy", "torch", "toy")


def can_be_written(problem: Problem, backend: str, blocks: Blocks) -> bool:
    """NumPy's derivative is the user's ``jac``, which cannot say what is not holomorphic."""
    if backend != "numpy":
        return True
    try:
        user_jac(problem, blocks)
    except ValueError:
        return False
    return True


PAIRS = [(b, p) for b in BACKENDS for p in PROBLEMS if p.takes(b) and can_be_written(p, b, p.blocks())]


def ready(backend: str, request: pytest.FixtureRequest) -> None:
    """Install the toy; skip a backend whose framework is absent."""
    if backend == "toy":
        request.getfixturevalue("toy_adapter")
    try:
        get_backend(backend)
    except BackendUnavailable as unavailable:
        pytest.skip(str(unavailable))


def place(problem: Problem, i: int, j: int, row: int, column: int) -> tuple[str, str]:
    """What a report calls an entry of block (i, j): the place in the output and that in the input."""
    outputs, inputs = named(problem)
    return outputs[i].place(row), inputs[j].place(column)


def named(problem: Problem) -> tuple[list[Leaf], list[Leaf]]:
    """The leaves of the outputs and of the checked inputs, each counted from 0."""
    outputs = [_leaf("output" + path, y) for path, y in tree.paths(problem.outputs())]
    inputs = [_leaf("inputs" + path, x) for path, x in tree.paths(problem.inputs) if differentiable(x)]
    return outputs, inputs


def _leaf(path: str, value: object) -> Leaf:
    return Leaf(path, np.shape(value), str(np.asarray(value).dtype), start=0)  # type: ignore[arg-type]

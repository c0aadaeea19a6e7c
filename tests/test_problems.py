"""The problems themselves: every hand Jacobian against two frameworks' own derivatives, every function against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.problems import PROBLEMS, Problem, tree
from tests.problems.problem import Array, differentiable, places

each = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)


def join(problem: Problem) -> tuple[Array, Array]:
    """The point and the hand Jacobian, as one vector and one matrix of reals."""
    x = [flat(leaf) for leaf in tree.leaves(problem.inputs) if differentiable(leaf)]
    return np.concatenate(x), np.block(problem.blocks())


def flat(leaf: Any) -> Array:
    a = np.ascontiguousarray(leaf).ravel()
    return a.view(np.float64) if np.iscomplexobj(a) else a


def close(actual: Any, expected: Any, rtol: float = 1e-12) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    scale = np.max(np.abs(expected), axis=-1, keepdims=True, initial=0) if expected.ndim else np.abs(expected)
    wrong = np.abs(actual - expected) > rtol * scale
    assert not wrong.any(), f"{actual}\n{expected}"


def pieces(problem: Problem, x: Any, as_complex: Any) -> Any:
    """The inputs of the problem with their differentiable leaves cut out of the flat real vector ``x``."""
    start, new = 0, []
    for leaf in tree.leaves(problem.inputs):
        if not differentiable(leaf):
            new.append(leaf)
            continue
        part = x[start : start + places(leaf)]
        start += places(leaf)
        part = as_complex(part.reshape(-1, 2)) if np.iscomplexobj(leaf) else part
        new.append(part.reshape(np.shape(leaf)))
    return tree.refill(problem.inputs, iter(new))


@each
def test_torch_agrees(problem: Problem) -> None:
    torch = pytest.importorskip("torch")
    x, expected = join(problem)

    def f(v: Any) -> Any:
        inputs = tree.map_leaves(torch.as_tensor, pieces(problem, v, torch.view_as_complex))
        outputs = tree.leaves(problem.function("torch")(*inputs))
        real = [torch.view_as_real(y.resolve_conj()) if y.is_complex() else y for y in outputs]
        return torch.cat([y.reshape(-1) for y in real])

    at = torch.tensor(x, requires_grad=True)
    y = f(at)
    close(y.detach(), np.concatenate([flat(leaf) for leaf in tree.leaves(problem.outputs())]))
    rows = [torch.autograd.grad(entry, at, retain_graph=True)[0] for entry in y]
    close(np.reshape(rows, expected.shape), expected)


@each
def test_jax_agrees(problem: Problem) -> None:
    jax = pytest.importorskip("jax")
    x, expected = join(problem)

    def f(v: Any) -> Any:
        inputs = pieces(problem, v, lambda p: p[:, 0] + 1j * p[:, 1])
        outputs = tree.leaves(problem.function("jax")(*inputs))
        stack = [jax.numpy.stack([y.real, y.imag], -1) if jax.numpy.iscomplexobj(y) else y for y in outputs]
        return jax.numpy.concatenate([y.ravel() for y in stack])

    with jax.enable_x64(True):
        close(f(x), np.concatenate([flat(y) for y in tree.leaves(problem.outputs())]))
        close(jax.jacrev(f)(jax.numpy.asarray(x)), expected)


def test_names_are_unique_and_many() -> None:
    names = [p.name for p in PROBLEMS]
    assert len(set(names)) == len(names) >= 40

"""A problem's function with a derivative of the test's choosing, put where a user of the backend would put it.

torch: an ``autograd.Function`` with its ``backward``; JAX: ``custom_vjp``; NumPy: ``jac=``; the toy: its rule.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tests.problems import Problem, tree
from tests.problems.problem import Array, differentiable

Blocks = list[list[Array]]
Function = Callable[..., Any]


def with_derivative(problem: Problem, backend: str, blocks: Blocks) -> tuple[Function, dict[str, Any]]:
    """The function whose derivative is ``blocks`` (real pairs, at the problem's point), and options for check_grad."""
    return _WAYS[backend](problem, blocks)


def user_jac(problem: Problem, blocks: Blocks) -> Any:
    """The blocks as a user's ``jac`` returns them: outputs' tree outermost, then one for each checked argument.

    Raises:
        ValueError: a complex block that is not that of a holomorphic function.
    """
    outputs = problem.outputs()
    rows = [_row(problem, y, row) for y, row in zip(tree.leaves(outputs), blocks, strict=True)]
    return tree.refill(outputs, iter(rows))


def _row(problem: Problem, y: Any, row: list[Array]) -> Any:
    blocks = iter(row)
    checked = [a for a in problem.inputs if any(differentiable(leaf) for leaf in tree.leaves(a))]
    parts = tuple(tree.map_leaves(lambda x: _entries(next(blocks), y, x), argument) for argument in checked)
    return parts if len(parts) > 1 else parts[0]


def _entries(block: Array, y: Any, x: Any) -> Array:
    """A block of real pairs as an array of shape out + in, complex where the output or the input is."""
    pairs = block.reshape(np.size(y), 1 + np.iscomplexobj(y), np.size(x), 1 + np.iscomplexobj(x)).transpose(0, 2, 1, 3)
    if pairs.shape[2:] == (1, 1):
        entries = pairs[..., 0, 0]
    elif pairs.shape[2:] == (2, 2):
        entries = pairs[..., 0, 0] + 1j * pairs[..., 1, 0]
        if not np.array_equal(entries, pairs[..., 1, 1] - 1j * pairs[..., 0, 1]):
            raise ValueError("no holomorphic function has this derivative")
    else:
        re_im = pairs.reshape(*pairs.shape[:2], 2)
        entries = re_im[..., 0] + 1j * re_im[..., 1]
    return entries.reshape(np.shape(y) + np.shape(x))


def _numpy(problem: Problem, blocks: Blocks) -> tuple[Function, dict[str, Any]]:
    jacobian = user_jac(problem, blocks)
    return problem.function("numpy"), {"jac": lambda *_: jacobian}


def _toy(problem: Problem, blocks: Blocks) -> tuple[Function, dict[str, Any]]:
    def rule(primals: Any, tangents: Any) -> list[Array]:
        v = np.concatenate([np.ravel(t) for t in tangents if t is not None])
        flat = np.block(blocks) @ v
        sizes = np.cumsum([len(row[0]) for row in blocks])[:-1]
        return list(np.split(flat, sizes))

    return import_module("multigrad_toy").WithRule(problem.function("numpy"), rule), {}


def _jax(problem: Problem, blocks: Blocks) -> tuple[Function, dict[str, Any]]:
    jax = import_module("jax")
    fn = problem.function("jax")

    def pull_back(_: Any, cotangents: Any) -> Any:
        u = [_jax_reals(jax.numpy, c) for c in tree.leaves(cotangents)]
        bars = [sum(g @ block for g, block in zip(u, column, strict=True)) for column in zip(*blocks, strict=True)]
        pulled = iter(bars)
        return tree.map_leaves(lambda x: _jax_cotangent(jax, x, pulled), problem.inputs)

    ruled = jax.custom_vjp(lambda *inputs: fn(*inputs))  # not fn itself: default arguments would count as inputs
    ruled.defvjp(lambda *inputs: (fn(*inputs), None), pull_back)
    return ruled, {}


def _jax_reals(jnp: Any, cotangent: Any) -> Any:
    """JAX pairs cotangent and tangent without a conjugate, so the real cotangent is (re, -im)."""
    c = cotangent.ravel()
    return jnp.stack([c.real, -c.imag], axis=-1).ravel() if jnp.iscomplexobj(c) else c


def _jax_cotangent(jax: Any, x: Any, pulled: Any) -> Any:
    if not differentiable(x):
        return np.zeros(np.shape(x), jax.dtypes.float0)
    bar = next(pulled)
    bar = bar[0::2] - 1j * bar[1::2] if np.iscomplexobj(x) else bar
    return bar.reshape(np.shape(x))


def _torch(problem: Problem, blocks: Blocks) -> tuple[Function, dict[str, Any]]:
    torch = import_module("torch")
    fn = problem.function("torch")
    outputs = problem.outputs()
    matrices = [[torch.tensor(block) for block in row] for row in blocks]

    class Ruled(torch.autograd.Function):  # type: ignore[name-defined, misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(*leaves: Any) -> Any:
            result = tree.leaves(fn(*tree.refill(problem.inputs, iter(leaves))))
            return tuple(y.resolve_conj().clone() for y in result)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            u = [_torch_reals(torch, c) for c in cotangents]
            columns = zip(*matrices, strict=True)
            pulled = iter([sum(g @ block for g, block in zip(u, column, strict=True)) for column in columns])
            return tuple(_torch_cotangent(torch, x, pulled) for x in tree.leaves(problem.inputs))

    return lambda *inputs: tree.refill(outputs, iter(Ruled.apply(*tree.leaves(inputs)))), {}


def _torch_reals(torch: Any, cotangent: Any) -> Any:
    c = cotangent.reshape(-1)
    return torch.view_as_real(c.resolve_conj()).reshape(-1) if c.is_complex() else c


def _torch_cotangent(torch: Any, x: Any, pulled: Any) -> Any:
    if not differentiable(x):
        return None
    bar = next(pulled)
    bar = torch.view_as_complex(bar.reshape(-1, 2)) if np.iscomplexobj(x) else bar
    return bar.reshape(np.shape(x))


_WAYS = {"numpy": _numpy, "jax": _jax, "torch": _torch, "toy": _toy}

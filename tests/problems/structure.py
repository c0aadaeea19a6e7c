"""Several inputs and outputs, dicts, 0-d and empty arrays, arguments that are not differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.problems.linear_algebra import matmul_jacobian
from tests.problems.problem import Array, Problem, draw, everywhere

_tags = frozenset({"structure"})


def _two_by_two(a: Array, b: Array) -> list[list[Array]]:
    return [matmul_jacobian(a, b), [np.cos(a) * b.T, np.sin(a).T]]


def _dense(layer: dict[str, Array], x: Array) -> list[Array]:
    """y = W x + b; leaves in the order b, w, x."""
    m = len(layer["b"])
    return [np.eye(m), np.einsum("ik,l->ikl", np.eye(m), x), layer["w"]]


def _indexed(x: Array, i: Any) -> Array:
    jacobian = x[i] * np.eye(len(x))
    jacobian[:, i] += x
    return jacobian


def _nested(tree: list[Any]) -> list[Array]:
    a, (b, c) = tree[0], tree[1]
    return [np.diag(b * c), np.diag(a * c), (a * b)[:, None]]


PROBLEMS = [
    Problem(
        "two_inputs_two_outputs",
        everywhere(lambda xp: lambda a, b: (a @ b, xp.sum(xp.sin(a) * b.T))),
        (draw(70, 2, 3), draw(71, 3, 2)),
        _two_by_two,
        _tags,
    ),
    Problem(
        "dict_input",
        everywhere(lambda xp: lambda layer, x: layer["w"] @ x + layer["b"]),
        ({"b": draw(72, 2), "w": draw(73, 2, 3)}, draw(74, 3)),
        _dense,
        _tags,
    ),
    Problem(
        "dict_output",
        everywhere(lambda xp: lambda x: {"cosine": xp.cos(x), "sine": xp.sin(x)}),
        (draw(75, 3),),
        lambda x: [[-np.diag(np.sin(x))], [np.diag(np.cos(x))]],
        _tags,
    ),
    Problem(
        "nested_input",
        everywhere(lambda xp: lambda tree: tree[0] * tree[1][0] * tree[1][1]),
        ([draw(76, 2), (draw(77, 2), np.array(0.7))],),
        _nested,
        _tags,
    ),
    Problem(
        "zero_dimensional",
        everywhere(lambda xp: lambda x, y: x**2 * y),
        (np.array(1.5), np.array(-0.4)),
        lambda x, y: [2 * x * y, x**2],
        _tags,
    ),
    Problem("empty", everywhere(lambda xp: lambda x: 2 * x), (np.zeros((0, 3)),), lambda x: np.zeros((0, 0)), _tags),
    Problem(
        "unused_input",
        everywhere(lambda xp: lambda a, b: xp.cos(a)),
        (draw(78, 3), draw(79, 2)),
        lambda a, b: [-np.diag(np.sin(a)), np.zeros((3, 2))],
        _tags,
    ),
    Problem(
        "integer_index",
        everywhere(lambda xp: lambda x, i: x[i] * x),
        (draw(80, 4), np.array(2)),
        _indexed,
        _tags,
    ),
    Problem(
        "boolean_mask",
        everywhere(lambda xp: lambda x, keep: xp.where(keep, x, x**2)),
        (draw(81, 4), np.array([True, False, True, False])),
        lambda x, keep: np.diag(np.where(keep, 1.0, 2 * x)),
        _tags,
    ),
    Problem(
        "gather",
        everywhere(lambda xp: lambda x: x[np.array([2, 0, 0, 1])]),
        (draw(82, 3),),
        lambda x: np.eye(3)[[2, 0, 0, 1]],
        _tags,
    ),
]

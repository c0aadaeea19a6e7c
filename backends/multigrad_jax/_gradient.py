"""The gradient of an evaluation as an evaluation: what a check of second order differentiates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.backends import Array, Leaf
from multigrad_jax._evaluation import Evaluation
from multigrad_jax._rules import translated
from multigrad_jax._trees import Arguments, Results, unpack


def gradient(evaluation: Evaluation, u: Array, w: Array) -> Evaluation:
    """J(x)^T (u + t w) as a function of the leaves of x and the number t; the mode must be on.

    Gradients are not JAX's but their conjugates, whose parts are the derivatives by the real and the imaginary part.

    Raises:
        Unsupported: there is no reverse mode.
    """
    at_0, change = ([part[0] for part in unpack(row[None], evaluation.results.leaves, True)] for row in (u, w))

    def function(*parts: Any) -> list[Any]:
        *point, t = parts
        with translated("reverse"):
            primals, pull = jax.vjp(evaluation.function, *point)
            cotangents = [
                jnp.asarray(a + jnp.asarray(t, b.dtype) * b, jnp.result_type(p))
                for a, b, p in zip(at_0, change, primals, strict=True)
            ]
            return [jnp.conj(g) for g in pull(cotangents)]

    leaves = evaluation.arguments.leaves
    inputs = (*evaluation.arguments.own(evaluation.arguments.x), np.zeros(()))
    arguments = Arguments.of(inputs)
    arguments = replace(arguments, leaves=_named(arguments.leaves, [*(leaf.path for leaf in leaves), "cotangent"]))
    results = Results.of(function(*inputs))
    results = replace(results, leaves=_named(results.leaves, [f"grad({leaf.path})" for leaf in leaves]))
    return Evaluation(function, arguments, results, evaluation.x64, seconds=evaluation.seconds).traced()


def _named(leaves: Sequence[Leaf], paths: Sequence[str]) -> tuple[Leaf, ...]:
    return tuple(replace(leaf, path=path) for leaf, path in zip(leaves, paths, strict=True))

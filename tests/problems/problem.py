"""A function written for every framework, a point, and its Jacobian by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from tests.problems import tree

NAMESPACES = {"numpy": "numpy", "toy": "numpy", "jax": "jax.numpy", "torch": "torch"}

# Compiled code that takes no objects, complex numbers, pytrees, and arrays of no axes or no entries.
BEYOND_DUAL_NUMBERS = frozenset(
    [
        "softplus",
        "gelu",
        "log_gamma",
        "arctan2",
        "determinant",
        "log_determinant",
        "inverse",
        "solve",
        "complex_square",
        "complex_exp_iz",
        "complex_matmul",
        "complex_modulus_square",
        "complex_modulus",
        "complex_conjugate",
        "complex_phase",
        "complex_fft",
        "dict_input",
        "dict_output",
        "nested_input",
        "zero_dimensional",
        "empty",
        "integer_index",
    ]
)

Array = np.ndarray[Any, np.dtype[Any]]
Factory = Callable[[Any], Callable[..., Any]]
"""Takes the namespace (``numpy``, ``jax.numpy``, ``torch``), gives the function: no framework is imported before use."""


@dataclass(frozen=True)
class Problem:
    """One function and what is known about it.

    Attributes:
        name: unique.
        functions: by backend; a function for the NumPy arrays of ``inputs``, or their like in the framework.
        inputs: the positional arguments; pytrees of NumPy arrays. Integers and bools are held fixed.
        jacobian: takes ``inputs``; for each output leaf and each differentiable input leaf the Jacobian in closed form,
            as a list of lists of arrays that reshape to (m, n). A complex leaf counts as (re, im) pairs.
            An array alone is the Jacobian of one output by one input; a flat list is that of one output.
        tags: "kinks" (nondifferentiable elsewhere), "complex", "structure" (pytrees, fixed arguments).
    """

    name: str
    functions: Mapping[str, Factory]
    inputs: tuple[Any, ...]
    jacobian: Callable[..., Any]
    tags: frozenset[str] = field(default_factory=frozenset)

    def takes(self, backend: str) -> bool:
        """Whether there is a function for ``backend``; the toy runs NumPy's, where dual numbers go through it."""
        return backend in self.functions or (backend == "toy" and self.name not in BEYOND_DUAL_NUMBERS)

    def function(self, backend: str) -> Callable[..., Any]:
        """The function as a user of ``backend`` would write it."""
        return self.functions.get(backend, self.functions["numpy"])(import_module(NAMESPACES[backend]))

    def arguments(self, backend: str) -> tuple[Any, ...]:
        """Fresh inputs for ``backend``."""
        convert = _to_torch if backend == "torch" else np.copy
        converted: tuple[Any, ...] = tree.map_leaves(convert, self.inputs)
        return converted

    def outputs(self) -> Any:
        """The value of the NumPy function at the point."""
        return self.function("numpy")(*self.arguments("numpy"))

    def blocks(self) -> list[list[Array]]:
        """The hand Jacobian by output and input leaf, each of shape (m_leaf, n_leaf) in real pairs."""
        outputs = tree.leaves(self.outputs())
        inputs = [leaf for leaf in tree.leaves(self.inputs) if differentiable(leaf)]
        rows = self.jacobian(*self.inputs)
        if not isinstance(rows, list):
            rows = [[rows]]
        elif not isinstance(rows[0], list):
            rows = [rows]
        assert len(rows) == len(outputs) and all(len(row) == len(inputs) for row in rows), self.name
        return [
            [np.asarray(block, float).reshape(places(y), places(x)) for x, block in zip(inputs, row, strict=True)]
            for y, row in zip(outputs, rows, strict=True)
        ]


def differentiable(leaf: Any) -> bool:
    """Whether a leaf is one of those that are checked."""
    return np.asarray(leaf).dtype.kind in "fc"


def places(leaf: Any) -> int:
    """The number of reals in a leaf."""
    a = np.asarray(leaf)
    return a.size * (2 if np.iscomplexobj(a) else 1)


def at(module: str, name: str) -> Factory:
    """A function that lives elsewhere than in the framework's main namespace."""
    return lambda _: getattr(import_module(module), name)


def everywhere(factory: Factory) -> dict[str, Factory]:
    """The same source for NumPy, JAX and PyTorch."""
    return {"numpy": factory, "jax": factory, "torch": factory}


def draw(seed: int, *shape: int, low: float = -1.5, high: float = 1.5) -> Array:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def _to_torch(leaf: Any) -> Any:
    torch = import_module("torch")
    tensor = torch.tensor(np.asarray(leaf))
    return tensor.requires_grad_() if differentiable(leaf) else tensor

"""One function, as users of each framework would write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A function in three frameworks.

    Attributes:
        name: unique.
        inputs: the positional arguments, NumPy arrays in float64 or complex128; integers are held fixed.
        smooth: whether the gradient is a function worth comparing too; False where it is constant, or the derivative
            of an integer-valued choice.
    """

    name: str
    torch: Function
    jax: Function
    numpy: Function
    inputs: tuple[Any, ...]
    smooth: bool = True

    @property
    def order(self) -> int:
        """How often it can be differentiated to any effect."""
        return 2 if self.smooth else 1

    @property
    def functions(self) -> dict[str, Function]:
        return {"torch": self.torch, "jax": jax.jit(self.jax), "numpy": self.numpy}

    def arguments(self, dtype: str) -> tuple[Any, ...]:
        """The inputs in ``float64`` or ``float32``, complex ones in the complex type of that precision."""
        kinds = {"f": dtype, "c": {"float64": "complex128", "float32": "complex64"}[dtype]}
        return tuple(
            np.asarray(x).astype(kinds.get(np.asarray(x).dtype.kind, np.asarray(x).dtype)) for x in self.inputs
        )


def draw(seed: int, *shape: int, low: float = -1.5, high: float = 1.5) -> Any:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def draw_complex(seed: int, *shape: int) -> Any:
    """The same, complex."""
    return draw(seed, *shape) + 1j * draw(seed + 1000, *shape)

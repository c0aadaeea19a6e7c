"""f at several rows: compiled and vmapped where that pays, else row by row."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import jax
import numpy as np

from multigrad.backends import Array
from multigrad.errors import Unsupported, first_line
from multigrad_jax._blocks import block_rows, compiling_pays, in_blocks
from multigrad_jax._evaluation import Evaluation
from multigrad_jax._trees import pack, unpack


class Rows:
    """Evaluates the function at rows: (b, n) -> (b, m). One row is the plain call.

    Attributes:
        expected: how many rows are known to come.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self._at = evaluation
        self.expected = 0
        self._rows = 0  # asked for so far

    def __call__(self, X: Array) -> Array:
        """Evaluate it.

        Raises:
            Unsupported: several rows of a function that JAX can't trace.
        """
        at = self._at
        with at.mode():
            if len(X) == 1:
                return at.plain(X[0])[None]
            if at.work is None:
                raise Unsupported(f"JAX can't trace this function: {first_line(at.untraceable)}") from at.untraceable
            self._rows += len(X)
            m = sum(leaf.size for leaf in at.results.leaves)
            if compiling_pays(max(self._rows, self.expected), at.work):
                return in_blocks(self._block, X, block_rows(at.work, X.shape[1], m), filler=at.arguments.x)
            return np.stack([at.plain(row) for row in X]) if len(X) else np.zeros((0, m))

    @cached_property
    def _block(self) -> Callable[[Array], Array]:
        block = jax.jit(jax.vmap(self._at.function))
        return lambda X: pack(block(*unpack(X, self._at.arguments.leaves)))

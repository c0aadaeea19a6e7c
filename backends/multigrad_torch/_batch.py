"""Several rows at once, by vmap."""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import Tensor

from multigrad.backends import Array
from multigrad_torch._autograd.vmap import vmap
from multigrad_torch._data.outputs import pack
from multigrad_torch._program import Program


class Batch:
    """Evaluates the function at several rows; raises whatever vmap raises where it cannot."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._randomness = "error"
        self._whole = False

    def __call__(self, X: Array) -> Array:
        """(b, n) -> (b, m).

        Leaves that are the same in all rows go in once, which is faster; a function that refuses (it writes one
        leaf into another, say) gets all of them row by row.
        """
        varying = [self._whole or bool((X[:, s.slice] != X[0, s.slice]).any()) for s in self._program.slots]
        if all(varying) or not any(varying):
            return self._evaluate(X, [True] * len(varying))
        with suppress(Exception):
            return self._evaluate(X, varying)
        values = self._evaluate(X, [True] * len(varying))
        self._whole = True
        return values

    def _evaluate(self, X: Array, varying: list[bool]) -> Array:
        try:
            return self._vmapped(X, varying)
        except RuntimeError as error:
            if self._randomness == "same" or "random" not in str(error):
                raise
        self._randomness = "same"
        return self._vmapped(X, varying)

    def _vmapped(self, X: Array, varying: list[bool]) -> Array:
        program = self._program
        pairs = zip(program.slots, varying, strict=True)
        tensors = [slot.values(X if batched else X[0]) for slot, batched in pairs]
        with program.state, torch.no_grad():
            return pack(vmap(self._call, tensors, varying, self._randomness), (len(X),))

    def _call(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        program = self._program
        arguments, others = program.split(tensors)
        refuse_unbatchable(program)
        with program.params.replaced(others):
            return tuple(program.outputs.take(program.call(program.arrange(arguments))))


def refuse_unbatchable(program: Program) -> None:
    """Raise where vmap would not see what is exchanged, or cannot make it."""
    if not program.params.batchable:
        raise RuntimeError("a checked parameter is held by more than its module: rows are evaluated one by one")
    for slot in program.slots:
        if slot.sparse or slot.subclass:
            raise RuntimeError(f"{slot.leaf.path} is sparse or a subclass of Tensor: rows are evaluated one by one")

"""Forward mode: dual numbers through the user's function at the point."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from multigrad.backends import Array
from multigrad.errors import Unsupported, first_line
from multigrad_torch._autograd.decompositions import load_decompositions
from multigrad_torch._autograd.dropped import Dropped, Hidden, scripted_modules
from multigrad_torch._autograd.dual import dual, tangent_of
from multigrad_torch._autograd.vmap import vmap
from multigrad_torch._batch import refuse_unbatchable
from multigrad_torch._data.outputs import pack
from multigrad_torch._program import Program

_NO_FORWARD_MODE = ("forward AD", "forward mode AD", "implement the jvp", "forward-mode", "jvp is not implemented")


class Forward:
    """Products J v at the point."""

    def __init__(self, program: Program, x: Array, eps: float) -> None:
        self._program = program
        self._x = x
        self._eps = eps
        self._inner_grad = False
        self._calls = 0
        self._watched = False
        self._dropped: list[str] = []
        self._compared = not program.params.slots

    def __call__(self, V: Array) -> Array:
        """(k, n) -> (k, m).

        The first single product is a probe, for which nobody watches whether tangents are lost: if they are, it is
        not what reverse mode says, and those that follow raise.

        Raises:
            Unsupported: some operation in the function has no forward mode.
        """
        if any(slot.sparse for slot in self._program.slots):
            raise Unsupported("no forward mode: torch has none for sparse inputs")
        self._calls += 1
        if not self._watched and (self._calls > 1 or len(V) > 1 or len(self._x) == 1):
            self._watched = True
            self._watch(V[0])
        if self._dropped:
            raise Unsupported(f"no forward mode: tangents are lost in {self._dropped[0]}")
        try:
            return self._one(V[0])[None] if len(V) == 1 else self._several(V)
        except (RuntimeError, NotImplementedError) as error:
            if any(text in str(error) for text in _NO_FORWARD_MODE):
                raise Unsupported(f"no forward mode: {first_line(error)}") from error
            raise

    def _watch(self, v: Array) -> None:
        with suppress(Exception), Dropped() as watch:
            self._one(v)
        with suppress(Exception), Hidden() as below, scripted_modules() as scripted:
            self._one(v)
        operators = [*watch.operators, *(name for name in below.operators if name not in watch.seen)]
        self._dropped = [*(f"the custom operator {name}" for name in operators), *scripted]

    def _one(self, v: Array) -> Array:
        try:
            return self._run(v)
        except RuntimeError as error:
            # The function differentiates inside; forward over reverse needs inputs that require a gradient.
            if self._inner_grad or "does not require grad" not in str(error):
                raise
        self._inner_grad = True
        return self._run(v)

    def _run(self, v: Array) -> Array:
        program = self._program
        load_decompositions()
        with program.state, torch.enable_grad(), forward_ad.dual_level():
            arguments, others = program.split(program.values(self._x))
            along, other_tangents = program.split(program.values(v))
            pairs = zip(program.arguments, arguments, along, strict=True)
            duals = [dual(s.hand(p).requires_grad_(self._inner_grad), s.hand(t)) for s, p, t in pairs]
            with program.params.along(others, other_tangents):
                outputs = program.outputs.take(program.call(program.arrange(duals)))
                return pack([tangent_of(output) for output in outputs])

    def _several(self, V: Array) -> Array:
        program = self._program
        refuse_unbatchable(program)
        primals, tangents = tuple(program.values(self._x)), program.values(V)

        def function(*tensors: Tensor) -> tuple[Tensor, ...]:
            arguments, others = program.split(tensors)
            with program.params.replaced(others):
                return tuple(program.outputs.take(program.call(program.arrange(arguments))))

        def along(*tangents: Tensor) -> tuple[Tensor, ...]:
            return tuple(torch.func.jvp(function, primals, tangents)[1])

        with program.state, torch.enable_grad():
            products = pack(vmap(along, tangents, randomness="same"), (len(V),))
        self._compare(V[0], products[0])
        return products

    def _compare(self, v: Array, product: Array) -> None:
        """Once: a parameter that something else holds a reference to is not exchanged under vmap, and not noticed."""
        if self._compared:
            return
        scale = float(np.max(np.abs(product), initial=0.0, where=np.isfinite(product)))
        if not np.allclose(self._one(v), product, rtol=0.0, atol=1e3 * self._eps * scale, equal_nan=True):
            raise RuntimeError("vmap over tangents does not reach all uses of a parameter: rows are done one by one")
        self._compared = True

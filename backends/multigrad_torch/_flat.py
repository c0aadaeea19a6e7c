"""The flat function of a function on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multigrad._findings import Finding
from multigrad.backends import Array, Leaf, Options
from multigrad_torch._batch import Batch
from multigrad_torch._forward import Forward
from multigrad_torch._program import Program
from multigrad_torch._regime import settle
from multigrad_torch._repeats import again, repeats
from multigrad_torch._reverse import Reverse


class TorchFunction:
    """A function or module seen as f: R^n -> R^m; see ``multigrad.backends.FlatFunction``.

    Args:
        fn: what takes ``inputs``; an ``nn.Module`` has its parameters checked too.
        inputs: the positional arguments, each a nest of tensors and other things.
        options: ``params`` names what else is checked.

    Raises:
        InvalidUse: ``no_differentiable_input``, ``no_output``, ``unsupported_tensor`` or ``bad_params``.
    """

    def __init__(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> None:
        program = Program(fn, inputs, options)
        slots = program.slots
        self.x: Array = np.concatenate([slot.numbers(slot.tensor) for slot in slots])
        self.inputs: Sequence[Leaf] = tuple(slot.leaf for slot in slots)
        self.fixed: Sequence[str] = tuple(str(one) for one in program.fixed)
        self.repeats: Array = repeats(program, self.x)
        self.outputs: Sequence[Leaf] = program.outputs.leaves
        self.findings: Sequence[Finding] = program.findings
        self._program = program
        self.eps = settle(program, self.x, options.seed)
        if program.promoted:
            self.repeats = again(program, self.x, self.repeats)
        self._batch = Batch(program)
        self._reverse = Reverse(program, self.x)
        self._forward = Forward(program, self.x, self.eps)
        self._tried_undefined = not any(leaf.attached for leaf in self.outputs)

    def __call__(self, X: Array, /) -> Array:
        if len(X) != 1:
            return self._batch(X)
        with self._program.state:
            return self._program.plain(X[0])[None]

    def vjp(self, U: Array, /) -> Array:
        product = self._reverse(U)
        if len(U) == 1 and not self._tried_undefined:
            self._tried_undefined = True
            self._reverse.try_undefined(U[0])
        return product

    def jvp(self, V: Array, /) -> Array:
        return self._forward(V)

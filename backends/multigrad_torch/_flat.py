"""The flat function of a function on tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multigrad.backends import Array, Leaf, Options
from multigrad.errors import Unsupported
from multigrad.findings import Finding
from multigrad.precision import DOUBLE
from multigrad_torch._batch import Batch
from multigrad_torch._data.dtypes import roundoff
from multigrad_torch._data.leaves import flat_numbers
from multigrad_torch._forward import Forward
from multigrad_torch._gradient import Gradient
from multigrad_torch._program import Program
from multigrad_torch._regime import is_double, settle, unsettle
from multigrad_torch._repeats import again, repeats
from multigrad_torch._reverse import Reverse
from multigrad_torch._user_jac import user_jacobian


class TorchFunction:
    """A function or module seen as f: R^n -> R^m; see ``multigrad.backends.FlatFunction``.

    Args:
        fn: what takes ``inputs``; an ``nn.Module`` has its parameters checked too.
        inputs: the positional arguments, each a nest of tensors and other things.
        options: ``params`` names what else is checked; ``jac`` is the derivative under test, if it is not autograd's.

    Raises:
        InvalidUse: ``no_differentiable_input``, ``no_output``, ``unsupported_tensor`` or ``bad_params``.
    """

    repeats: Array
    _vjp: Callable[[Array], Array]
    _jvp: Callable[[Array], Array]

    convention = "torch's gradient is dL/dre + i dL/dim (the conjugate of JAX's)"

    def __init__(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> None:
        program = Program(fn, inputs, options)
        self._jac = options.jac
        self.x: Array = np.concatenate([slot.numbers(slot.tensor) for slot in program.slots])
        self._adopt(program)
        self.as_written: Array = self.repeats[0]
        self.eps = self.written = DOUBLE
        self._seed, settled = options.seed, is_double(program)
        if options.native:
            self.eps, settled = roundoff(slot.given for slot in program.slots), True
        if not settled:
            self._settle()
        self._differentiate()

    def _settle(self) -> bool:
        program = self._program
        self.eps, self.written = settle(program, self.x, self._seed)
        if program.promoted:
            self.repeats = again(program, self.x, self.repeats)
        return program.promoted or self.eps > DOUBLE

    def reexamine(self) -> bool:
        """Look for low precision inside a function that shows none outside.

        Returns:
            Whether it is evaluated in another way from now on.
        """
        if self.written > DOUBLE:
            before, self.eps = self.eps, unsettle(self._program, self.x, self._seed, self.eps, self.written)
            inside = self.eps > before
        else:
            inside = self._settle()
        if inside:
            self._differentiate()
        return inside

    def _adopt(self, program: Program) -> None:
        self._program = program
        self._batch = Batch(program)
        self.inputs: Sequence[Leaf] = tuple(slot.leaf for slot in program.slots)
        self.fixed: Sequence[str] = tuple(str(one) for one in program.fixed)
        self.repeats, self._graph = repeats(program, self.x)
        if self._jac is not None:
            program.outputs.attach_all()
        self.outputs: Sequence[Leaf] = program.outputs.leaves
        self.findings: Sequence[Finding] = program.findings

    def _differentiate(self) -> None:
        if self._jac is not None:
            users = user_jacobian(self._program, self.x, self._jac)
            self._vjp, self._jvp, self._tried_undefined = users.vjp, users.jvp, True
            return
        self._reverse = Reverse(self._program, self.x, None if self._program.promoted else self._graph)
        self._vjp, self._jvp = self._reverse, Forward(self._program, self.x, self.eps)
        self._tried_undefined = not any(leaf.attached for leaf in self.outputs)

    def at(self, x: Array, /) -> TorchFunction:
        """The same function at another point."""
        other = copy.copy(self)
        other.x = x = np.concatenate(
            [flat_numbers(part) for part in self._program.values(x)]
        )  # as the dtypes can hold it
        value = other(x[None])
        other.repeats, other._graph = np.concatenate([value, other(x[None])]), None
        other._differentiate()
        return other

    def gradient(self, u: Array, w: Array, /) -> TorchFunction:
        """The flat function of (x, t) that J(x)^T (u + t w) is, differentiable again."""
        if self._jac is not None:
            raise Unsupported("the user's jac gives numbers: it can't be differentiated again")
        program = Gradient(self._program, u, w)
        derived = copy.copy(self)
        derived.x = np.append(self.x, 0.0)
        derived._adopt(program)
        derived.outputs = program.named(derived.outputs)
        derived._differentiate()
        return derived

    def __call__(self, X: Array, /) -> Array:
        if len(X) != 1:
            return self._batch(X)
        with self._program.state:
            return self._program.plain(X[0])[None]

    def vjp(self, U: Array, /) -> Array:
        product = self._vjp(U)
        if len(U) == 1 and not self._tried_undefined:
            self._tried_undefined = True
            self._reverse.try_undefined(U[0])
        return product

    def jvp(self, V: Array, /) -> Array:
        return self._jvp(V)

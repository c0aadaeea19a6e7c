"""A JAX function seen as f: R^n -> R^m in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad._findings import Finding
from multigrad._user_jac import UserJacobian
from multigrad.backends import Array, Leaf
from multigrad.errors import Unsupported
from multigrad_jax._autodiff import Autodiff
from multigrad_jax._blocks import block_rows, compiling_pays, in_blocks
from multigrad_jax._trees import Arguments, Results, epsilon, pack, pack_one, unpack
from multigrad_jax._work import Work, work_of


class JaxFunction:
    """The flat function of a JAX function; see ``multigrad.backends.FlatFunction``.

    One row is the eager call; several rows are one compiled, vmapped block where that pays. All is done in JAX's 64-bit
    mode, which ends with each call, unless every input has lower precision and the user's own mode is 32-bit.

    Args:
        fn: the user's function.
        inputs: its arguments.
        jac: the user's own derivative, if that is what is under test; then there is no forward mode.
    """

    def __init__(self, fn: Callable[..., Any], inputs: tuple[Any, ...], jac: Callable[..., Any] | None) -> None:
        self._fn = fn
        self._arguments = Arguments.of(inputs)
        self.x = self._arguments.x
        self.inputs: Sequence[Leaf] = self._arguments.leaves
        self.fixed: Sequence[str] = self._arguments.fixed
        self._wide = jnp.result_type(float).itemsize == 8 or any(
            leaf.dtype in ("float64", "complex128") for leaf in self.inputs
        )
        self._rows = 0  # asked for so far
        with self._precision():
            first = fn(*self._arguments.fill(self._arguments.own(self.x)))
            self._results = Results.of(first)
            self.repeats = np.stack([self._flat(first), self._plain(self.x)])
            self._work, self._untraceable = self._trace()
        self.outputs: Sequence[Leaf] = self._results.leaves
        self.eps = max(epsilon(leaf.dtype) for leaf in (*self.inputs, *self.outputs))
        self._findings = list(self._work.findings if self._work else ())
        self.findings: Sequence[Finding] = self._findings
        self._derivative = self._user_jac(jac) if jac else self._autodiff()

    def __call__(self, X: Array, /) -> Array:
        with self._precision():
            if len(X) == 1:
                return self._plain(X[0])[None]
            if self._work is None:
                raise Unsupported(
                    f"JAX can't trace this function: {_first_line(self._untraceable)}"
                ) from self._untraceable
            self._rows += len(X)
            if compiling_pays(self._rows, self._work):
                size = block_rows(self._work, self.x.size, self.repeats.shape[1])
                return in_blocks(self._block, X, size, filler=self.x)
            return np.stack([self._plain(row) for row in X]) if len(X) else np.zeros((0, self.repeats.shape[1]))

    def vjp(self, U: Array, /) -> Array:
        with self._precision():
            return self._derivative.vjp(U)

    def jvp(self, V: Array, /) -> Array:
        with self._precision():
            return self._derivative.jvp(V)

    def _precision(self) -> AbstractContextManager[None]:
        context: AbstractContextManager[None] = jax.enable_x64(self._wide)
        return context

    def _plain(self, row: Array) -> Array:
        return self._flat(self._fn(*self._arguments.fill(self._arguments.own(row))))

    def _flat(self, out: Any) -> Array:
        return pack_one(self._results.pick(out))

    def _leafwise(self, *parts: Any) -> list[Any]:
        return self._results.pick(self._fn(*self._arguments.fill(parts)))

    @cached_property
    def _block(self) -> Callable[[Array], Array]:
        block = jax.jit(jax.vmap(self._leafwise))
        return lambda X: pack(block(*unpack(X, self.inputs)))

    def _trace(self) -> tuple[Work | None, Exception | None]:
        """Trace the function once, if it can be traced; what it returns untraced depends on no input."""
        detached: set[int] = set()

        def watched(*parts: Any) -> list[Any]:
            out = self._leafwise(*parts)
            detached.update(k for k, value in enumerate(out) if isinstance(value, (float, complex)))
            return out

        try:
            work = work_of(watched, self._arguments.own(self.x))
        except Exception as error:  # noqa: BLE001, of any type: it is the user's code that meets a tracer
            return None, error
        self._results = self._results.detach(detached)
        return work, None

    def _autodiff(self) -> Autodiff:
        return Autodiff(self._leafwise, self._arguments, self._results, self.repeats[0], self._work, self._findings)

    def _user_jac(self, jac: Callable[..., Any]) -> UserJacobian:
        def call() -> Any:
            return jac(*self._arguments.fill(self._arguments.own(self.x)))

        places = self._arguments.fill(self.inputs), self._results.template
        return UserJacobian(call, *places, self._findings, imaginary=-1)


def _first_line(error: Exception | None) -> str:
    return str(error).partition("\n")[0]

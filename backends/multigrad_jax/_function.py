"""A JAX function seen as f: R^n -> R^m in float64."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.backends import BESIDE, FARTHEST, Array, Leaf
from multigrad.errors import Unsupported
from multigrad.findings import Finding
from multigrad.user_jac import UserJacobian
from multigrad_jax._autodiff import Autodiff
from multigrad_jax._evaluation import Evaluation
from multigrad_jax._gradient import gradient
from multigrad_jax._regime import Settled, as_it_is, is_double, miscompiled, settle, unsettle
from multigrad_jax._rows import Rows
from multigrad_jax._trees import Arguments, Results, pack_one


class JaxFunction:
    """The flat function of a JAX function; see ``multigrad.backends.FlatFunction``.

    One row is the eager call; several rows are one compiled, vmapped block where that pays. All is done in float64,
    in JAX's 64-bit mode, which ends with each call; what can't be is done as the user runs it.

    Args:
        fn: the user's function.
        inputs: its arguments.
        jac: the user's own derivative, if that is what is under test; then there is no forward mode.
        seed: of the points at which low precision and float64 are compared.
        native: whether to leave low precision as it is.
    """

    convention = "jax.grad is dL/dre - i dL/dim (the conjugate of torch's)"

    def __init__(
        self,
        fn: Callable[..., Any],
        inputs: tuple[Any, ...],
        jac: Callable[..., Any] | None,
        seed: int = 0,
        native: bool = False,
    ) -> None:
        arguments = Arguments.of(inputs)
        self.x = arguments.x
        self.inputs: Sequence[Leaf] = arguments.leaves
        self.fixed: Sequence[str] = arguments.fixed
        written, self.repeats = _as_written(fn, arguments)
        self.as_written = self.repeats[0]
        self.outputs: Sequence[Leaf] = written.results.leaves
        self._jac, self._seed = jac, seed
        self._findings = [*(written.work.findings if written.work else ())]
        self.findings: Sequence[Finding] = self._findings
        self._adopt(as_it_is(written) if native or is_double(written) else settle(written, seed), written)
        self._before = len(self._findings)

    def _adopt(self, settled: Settled, before: Evaluation) -> None:
        self._at, (self.eps, self.written), noticed = settled
        if self._at is not before:
            self.repeats = _again(self._at, self.repeats)
        self._findings += noticed
        self._rows = Rows(self._at)
        self._derivative = self._derive()

    def reexamine(self) -> bool:
        """Look for what a compiler makes of the function, and for low precision that is left inside.

        Returns:
            Whether it is evaluated or judged in another way from now on.
        """
        eager = self._at.eager()
        if eager is not None and (noticed := miscompiled(self._at, eager, self._seed)):
            del self._findings[self._before :]  # it is the compiler that they are of
            self._adopt((eager, (self.eps, self.written), noticed), self._at)
            return True
        if self.eps >= self.written:
            return False
        noticed = unsettle(self._at, self._seed, self.written)
        self._findings += noticed
        self.eps = self.written if noticed else self.eps
        return bool(noticed)

    def leave(self) -> None:
        """Let JAX forget what it has traced in another mode than the user's, where that would fail in it: see ``_fresh``."""
        work = self._at.work
        if (work is None or work.captures) and self._at.x64 != _is_x64():
            jax.clear_caches()  # type: ignore[no-untyped-call]

    @property
    def farthest(self) -> float:
        """How far from x it may be evaluated: a search for a root may go on for ever where there is none."""
        work = self._at.work
        return BESIDE if work and work.searches else FARTHEST

    def __call__(self, X: Array, /) -> Array:
        return self._rows(X)

    def expect(self, rows: int) -> None:
        """Compile at the next call if that pays for so many rows, instead of when as many have been evaluated."""
        self._rows.expected = rows

    def vjp(self, U: Array, /) -> Array:
        with self._at.mode():
            return self._derivative.vjp(U)

    def jvp(self, V: Array, /) -> Array:
        with self._at.mode():
            return self._derivative.jvp(V)

    def at(self, x: Array, /) -> JaxFunction:
        """The same function at another point."""
        other = copy.copy(self)
        with self._at.mode():
            other._at = self._at.at(x)
            other.x = x = other._at.arguments.x  # as the dtypes can hold it
        other.repeats = other._twice()
        if isinstance(self._derivative, Autodiff):
            other._derivative = self._derivative.at(other._at.arguments, other.repeats[0])
        else:
            other._derivative = other._derive()
        return other

    def _twice(self) -> Array:
        """The values of two calls, shape (2, m): compiled, where that pays."""
        X = np.stack([self.x, self.x])
        return self(X) if self._at.work else np.concatenate([self(row[None]) for row in X])

    def gradient(self, u: Array, w: Array, /) -> JaxFunction:
        """The flat function of (x, t) that J(x)^T (u + t w) is, differentiable again."""
        if self._jac:
            raise Unsupported("the user's jac gives numbers: it can't be differentiated again")
        derived = copy.copy(self)
        derived.x = np.append(self.x, 0.0)
        with self._at.mode():
            derived._at = gradient(self._at, u, w)
            derived.repeats = np.stack([derived._at.plain(derived.x) for _ in range(2)])
        derived.inputs, derived.outputs = derived._at.arguments.leaves, derived._at.results.leaves
        derived._rows = Rows(derived._at)
        derived._findings = derived.findings = []
        derived._derivative = derived._derive()
        return derived

    def _derive(self) -> Autodiff | UserJacobian:
        return self._user_jac(self._jac) if self._jac else self._at.autodiff(self.repeats[0], self._findings)

    def _user_jac(self, jac: Callable[..., Any]) -> UserJacobian:
        arguments = self._at.arguments

        def call() -> Any:
            return jac(*arguments.fill(arguments.own(self.x)))

        places = arguments.fill(self.inputs), self._at.results.template
        return UserJacobian(call, *places, self._findings, imaginary=-1)


def _as_written(fn: Callable[..., Any], arguments: Arguments) -> tuple[Evaluation, Array]:
    """The evaluation that is the user's own call, and the values of two of these, shape (2, m).

    It is done in the user's mode, or in 64-bit mode where an input has 64 bits.
    """
    double = any(leaf.dtype in ("float64", "complex128") for leaf in arguments.leaves)
    x64 = double or _is_x64()
    with jax.enable_x64(x64):
        first = _fresh(partial(fn, *arguments.fill(arguments.own(arguments.x))))
        results = Results.of(first)
        evaluation = Evaluation(lambda *parts: results.pick(fn(*arguments.fill(parts))), arguments, results, x64)
        start = perf_counter()
        repeats = np.stack([pack_one(results.pick(first)), evaluation.plain(arguments.x)])
        return replace(evaluation, seconds=perf_counter() - start).traced(), repeats


def _is_x64() -> bool:
    return jnp.result_type(float).itemsize == 8


def _fresh(call: Callable[[], Any]) -> Any:
    """The value of a call, whatever mode JAX was in before.

    JAX 0.10 keeps NumPy arrays that a traced function closes over in the width of the mode that traced it, and hands
    them to programs that the other mode has traced or compiled, which refuse them.
    """
    try:
        return call()
    except (jax.errors.JaxRuntimeError, ValueError, TypeError, AssertionError):
        pass  # the exception holds what is to be forgotten
    jax.clear_caches()  # type: ignore[no-untyped-call]
    gc.collect()
    return call()


def _again(evaluation: Evaluation, before: Array) -> Array:
    """The values in float64 where those in low precision were ``before``, shape (2, m): apart by as much."""
    with evaluation.mode():
        value = evaluation.plain(evaluation.arguments.x)
    same = np.array_equal(before[0], before[1], equal_nan=True)
    return np.stack([value, value if same else value + (before[1] - before[0])])

"""A JAX function in one arithmetic: its leaves, what it returns, and how much work a call is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import jax

from multigrad.backends import Array
from multigrad.findings import Finding
from multigrad_jax._autodiff import Autodiff
from multigrad_jax._promote import Traced
from multigrad_jax._trees import Arguments, Results, pack_one
from multigrad_jax._wide import wide_name
from multigrad_jax._work import Work, work_of

Leafwise = Callable[..., list[Any]]


@dataclass(frozen=True)
class Evaluation:
    """The function as it is evaluated.

    Attributes:
        function: from checked input leaves to the list of checked output leaves.
        arguments: the inputs; their leaves have the dtypes that parts are made in.
        results: the outputs, likewise.
        x64: whether JAX's 64-bit mode is on.
        work: the size of a call; None for a function that can be run on concrete values alone.
        untraceable: why it can be run on those alone.
        seconds: what a call takes that is not the first.
    """

    function: Leafwise
    arguments: Arguments
    results: Results
    x64: bool
    work: Work | None = None
    untraceable: Exception | None = None
    seconds: float = 0.0

    def mode(self) -> AbstractContextManager[None]:
        """The mode that all calls need."""
        context: AbstractContextManager[None] = jax.enable_x64(self.x64)
        return context

    def plain(self, row: Array) -> Array:
        """One call as the user would make it: (n,) -> (m,)."""
        return pack_one(self.function(*self.arguments.own(row)))

    def autodiff(self, plain: Array, findings: list[Finding]) -> Autodiff:
        """JAX's derivatives at the point, where ``plain`` is the value."""
        return Autodiff(self.function, self.arguments, self.results, plain, self.work, findings)

    def at(self, row: Array) -> Evaluation:
        """The same at another point."""
        with self.mode():
            return replace(self, arguments=self.arguments.at(row))

    def eager(self) -> Evaluation | None:
        """The same, operation by operation; None if it is not compiled as a whole."""
        function = self.function
        if not isinstance(function, Traced) or not function.compiled:
            return None
        return replace(self, function=replace(function, compiled=False))

    def traced(self) -> Evaluation:
        """Trace it once, if it can be traced; what it returns untraced depends on no input."""
        detached: set[int] = set()

        def watched(*parts: Any) -> list[Any]:
            out = self.function(*parts)
            detached.update(k for k, value in enumerate(out) if isinstance(value, (float, complex)))
            return out

        try:
            work = work_of(watched, self.arguments.own(self.arguments.x), self.seconds)
        except Exception as error:  # noqa: BLE001, of any type: it is the user's code that meets a tracer
            return replace(self, work=None, untraceable=error)
        return replace(self, work=work, untraceable=None, results=self.results.detach(detached))

    def widened(self, function: Leafwise) -> Evaluation:
        """The evaluation by ``function`` of float64 leaves, in 64-bit mode."""
        arguments, results = self.arguments.retyped(wide_name), self.results.retyped(wide_name)
        wide = Evaluation(function, arguments, results, True, seconds=self.seconds)
        with wide.mode():
            return wide.traced()

"""A NumPy function seen as f: R^n -> R^m in float64."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.errors import InvalidUse
from multigrad.findings import Finding
from multigrad.tree import walk
from multigrad_numpy._arguments import Arguments
from multigrad_numpy._results import Results
from multigrad_numpy._rows import Rows

if TYPE_CHECKING:
    from multigrad_numpy._derivative import TracedDerivative


class Derivative(Protocol):
    """Where the derivative under test comes from."""

    def vjp(self, U: Array, /) -> Array: ...

    def jvp(self, V: Array, /) -> Array: ...


Opinion = Callable[["NumpyFunction", Array, Array, Any], list[Finding]]


class NumpyFunction:
    """The flat function of a NumPy function; see ``multigrad.backends.FlatFunction``.

    The user's code gets fresh float64 copies in every call, and what it returns is copied at once, so it may work in
    place, reuse its buffers, or return its own input.

    Args:
        fn: the user's function.
        inputs: its arguments.
        derive: makes the derivative under test of this function.
        opinion: what is asked about a mismatch.

    Attributes:
        arguments: the inputs taken apart.
        results: the outputs taken apart.
        noticed: the findings; whoever has one to report appends it.
    """

    # A batched operation costs more in Python than an array that leaves the L2 cache.
    doubles = 2**18
    convention = "jac is dF/dz for C to C, dL/dre + i dL/dim for C to R"

    def __init__(
        self,
        fn: Callable[..., Any],
        inputs: tuple[Any, ...],
        derive: Callable[[NumpyFunction], Derivative],
        opinion: Opinion | None = None,
    ) -> None:
        self._fn = fn
        self._opinion = opinion
        self.arguments = Arguments.of(inputs)
        self.x = self.arguments.x
        self.inputs: Sequence[Leaf] = self.arguments.checked
        self.fixed: Sequence[str] = self.arguments.fixed
        self.noticed: list[Finding] = []
        self.findings: Sequence[Finding] = self.noticed
        first = self.call_with_copies(fn, "fn")
        self.results = Results.of(first)
        # fn may return one buffer every time: the first value is taken before the second call.
        values = [self.results.pick(first)]
        values.append(self.results.pick(self.call_with_copies(fn, "fn")))
        self.repeats = np.stack(values)
        self.outputs: Sequence[Leaf] = self.results.leaves
        self._rows = Rows(fn, self.arguments, self.results)
        self.eps = self.results.eps
        inexact = (leaf.dtype for leaf in self.inputs if np.issubdtype(leaf.dtype, np.inexact))
        self.written = max([self.eps, *(float(np.finfo(dtype).eps) for dtype in inexact)])
        self._derive = derive
        self._derivative = derive(self)

    def __call__(self, X: Array, /) -> Array:
        if len(X) != 1:
            return self._rows(X)
        return self.results.pick(self._fn(*self.arguments.fill(X[0])))[None]

    def vjp(self, U: Array, /) -> Array:
        return self._derivative.vjp(U)

    def jvp(self, V: Array, /) -> Array:
        return self._derivative.jvp(V)

    @cached_property
    def trace(self) -> TracedDerivative:
        """The derivative by tracing ``fn``, whatever the derivative under test is; its ``values`` are the trace's own.

        Raises:
            Unsupported: ``fn`` can't be traced.
        """
        from multigrad_numpy._derivative import TracedDerivative  # JAX is imported when a trace is needed

        return TracedDerivative(self._fn, self)

    def second_opinion(self, analytical: Array, numeric: Array, wrong: Any) -> list[Finding]:
        """Notes on a mismatch; the Jacobians and the mask of the entries in question have shape (m, n).

        Raises:
            Unsupported: the derivative under test is that of a trace, and the trace is at fault.
        """
        return self._opinion(self, analytical, numeric, wrong) if self._opinion is not None else []

    def gradient(self, u: Array, w: Array, /) -> FlatFunction:
        """The flat function of (x, t) that J(x)^T (u + t w) is, differentiable again.

        Raises:
            InvalidUse: ``order_unavailable``; the derivative under test is the user's own.
        """
        if self._derivative is not self.__dict__.get("trace"):
            raise InvalidUse(
                "order_unavailable",
                "the user's jac gives numbers, which can't be differentiated again: leave jac away, or check jac as "
                "another function with its own jac",
            )
        from multigrad_numpy._gradient import TracedGradient

        return TracedGradient(self, u, w)

    def at(self, x: Array, /) -> NumpyFunction:
        """The same function at another point."""
        other = copy.copy(self)
        other.__dict__.pop("trace", None)  # it belongs to its point
        other.x = x
        value = other(x[None])
        other.repeats = np.concatenate([value, other(x[None])])
        other._derivative = self._derive(other)
        return other

    def call_with_copies(self, function: Callable[..., Any], name: str) -> Any:
        """Call ``function`` with copies of the arguments at the point, and report if it changes them."""
        arguments = self.arguments.fill(self.x)
        out = function(*arguments)
        now, before = (dict(walk(tree, "inputs")) for tree in (arguments, self.arguments.fill(self.x)))
        for path in before | now:
            if not _same(before.get(path), now.get(path)):
                self._report_mutation(name, path, before.get(path), now.get(path))
        return out

    def _report_mutation(self, name: str, path: str, before: Any, now: Any) -> None:
        found = Finding(
            "mutates_input",
            f"{name} changes {path} in place, {_first_change(before, now)}",
            where=path,
            remedy="work on a copy, x = x.copy(); an output buffer belongs into a closure, not among the inputs",
        )
        if found not in self.noticed:
            self.noticed.append(found)


def _same(before: Any, now: Any) -> bool:
    if isinstance(before, np.ndarray) and isinstance(now, np.ndarray):
        return before.shape == now.shape and before.tobytes() == now.tobytes()
    return type(before) is type(now)


def _first_change(before: Any, now: Any) -> str:
    if not isinstance(before, np.ndarray) or not isinstance(now, np.ndarray) or before.shape != now.shape:
        return "an item of a container"
    changed = np.argwhere(before != now)
    index = tuple(int(i) for i in changed[0]) if len(changed) else (0,) * before.ndim
    return f"[{', '.join(map(str, index))}] from {before[index]} to {now[index]}"

"""Remote evaluation: the rows of f, spread over the workers of an executor.

What travels is what the user has passed, pickled once (by cloudpickle, where a plain pickle will not do); every worker
makes the flat function of it anew and keeps it. A block that a worker fails to bring back, for whatever reason, is
evaluated here: none is lost, and what the user's function raises is raised as ever.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from multigrad.backends import Array, FlatFunction, Options, get_backend
from multigrad.errors import InvalidUse
from multigrad.findings import Finding

# Rows that are worth a message, and how many blocks there are for each worker, so that none waits long for the last.
FEWEST, SHARES = 8, 2

_made = threading.local()


@dataclass(frozen=True)
class Recipe:
    """What a flat function is made of.

    Attributes:
        backend: the adapter's name.
        fn: the user's function.
        arguments: its arguments.
        options: what else the adapter was told.
    """

    backend: str
    fn: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: Options

    def make(self) -> FlatFunction:
        """Make the flat function."""
        return get_backend(self.backend).flatten(self.fn, self.arguments, self.options)


def evaluate(recipe: bytes, X: Array) -> Array:
    """Evaluate rows in a worker, which keeps the last function that it made."""
    if getattr(_made, "recipe", None) != recipe:
        _made.function, _made.recipe = pickle.loads(recipe).make(), recipe
    function: FlatFunction = _made.function
    return function(X)


class Remote:
    """A flat function whose rows are evaluated by the workers of an executor; all else of it is done here.

    Attributes:
        workers: how many blocks are under way at once.
    """

    def __init__(self, f: FlatFunction, recipe: Recipe, executor: Executor) -> None:
        """Evaluate ``f``, made of ``recipe``.

        Raises:
            InvalidUse: the function can't be sent anywhere.
        """
        self._f = f
        self._recipe = _pickled(recipe)
        self._executor = executor
        self._notes: list[Finding] = []
        self._changed = False
        self.workers = int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        self.x, self.inputs, self.outputs, self.fixed = f.x, f.inputs, f.outputs, f.fixed
        self.eps, self.repeats = f.eps, f.repeats

    def __getattr__(self, name: str) -> Any:
        return getattr(self._f, name)

    @property
    def findings(self) -> Sequence[Finding]:
        """What the function has noticed here, and which blocks were not brought back."""
        return [*self._f.findings, *self._notes]

    def __call__(self, X: Array, /) -> Array:
        """Evaluate the rows of X: (b, n) -> (b, m)."""
        if len(X) < 2 * FEWEST or self._changed:
            return self._f(X)
        blocks = np.array_split(X, min(len(X) // FEWEST, SHARES * self.workers))
        futures = [self._submit(block) for block in blocks]
        return np.concatenate([self._result(future, block) for future, block in zip(futures, blocks, strict=True)])

    def reexamine(self) -> bool:
        """Let the adapter look again at what kind of function it is; what the workers have is no longer it then."""
        again = getattr(self._f, "reexamine", None)
        self._changed = self._changed or (again is not None and bool(again()))
        return self._changed

    def vjp(self, U: Array, /) -> Array:
        """Reverse mode, here."""
        return self._f.vjp(U)

    def jvp(self, V: Array, /) -> Array:
        """Forward mode, here."""
        return self._f.jvp(V)

    def _submit(self, block: Array) -> Future[Array] | None:
        try:
            return self._executor.submit(evaluate, self._recipe, block)
        except Exception as error:  # noqa: BLE001 - a pool that has lost a worker refuses work, each in its own way
            self._lost(error)
            return None

    def _result(self, future: Future[Array] | None, block: Array) -> Array:
        if future is not None:
            try:
                return future.result()
            except Exception as error:  # noqa: BLE001 - of the pool or of the user's function, which is called again
                values = self._f(block)
                self._lost(error)
                return values
        return self._f(block)

    def _lost(self, error: Exception) -> None:
        if not self._notes:
            evidence = (
                f"blocks that the executor did not bring back were evaluated here: {type(error).__name__}: {error}"
            )
            self._notes.append(Finding("executor", evidence))


def _pickled(recipe: Recipe) -> bytes:
    reasons = []
    for dumps in _picklers():
        try:
            made = dumps(recipe)
            pickle.loads(made)
        except Exception as error:  # noqa: BLE001 - picklers raise anything
            reasons.append(f"{type(error).__name__}: {error}")
        else:
            return made
    raise InvalidUse(
        "unpicklable",
        f"the function can't be sent to the workers of an executor: {'; '.join(reasons)}. "
        "pip install 'multigrad-check[distributed]' for lambdas and closures; or leave the executor away",
    )


def _picklers() -> Iterator[Callable[[Any], bytes]]:
    yield pickle.dumps
    try:
        import cloudpickle
    except ModuleNotFoundError:
        return
    yield cloudpickle.dumps

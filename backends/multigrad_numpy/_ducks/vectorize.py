"""``np.vectorize`` for duck arrays: a Python loop that keeps what the user's function returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.creation import any_duck
from multigrad_numpy._ducks.duck import DuckArray


class Vectorize:
    """See ``numpy.vectorize``."""

    def __init__(
        self,
        kind: type[DuckArray],
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: Any = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self._kind, self.pyfunc = kind, pyfunc
        self._given = {"otypes": otypes, "excluded": excluded, "signature": signature}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._given["signature"] is not None or self._given["excluded"] or kwargs:
            if not any_duck((args, kwargs)):
                return self._kind.lift(np.vectorize(self.pyfunc, **self._given)(*args, **kwargs))
            return self._by_name(args, kwargs)
        arrays = np.broadcast_arrays(*(self._kind.asarray(a) for a in args))
        shape = arrays[0].shape
        results = [self.pyfunc(*(a[index] for a in arrays)) for index in np.ndindex(*shape)]
        if results and isinstance(results[0], tuple):
            return tuple(self._shaped(list(part), shape) for part in zip(*results, strict=True))
        return self._shaped(results, shape)

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        excluded = set(self._given["excluded"] or ())
        if self._given["signature"] is not None:
            from multigrad_numpy._ducks.rebind import own_code

            vectorized = np.vectorize(self.pyfunc, **self._given)
            return own_code(self._kind, vectorized._vectorize_call_with_signature)(self.pyfunc, args)  # type: ignore[attr-defined]
        loop = [i for i in range(len(args)) if i not in excluded]
        names = [n for n in kwargs if n not in excluded]

        def call(*looped: Any) -> Any:
            given = dict(zip(loop, looped, strict=False))
            named = dict(zip(names, looped[len(loop) :], strict=True))
            return self.pyfunc(*(given.get(i, a) for i, a in enumerate(args)), **{**kwargs, **named})

        return Vectorize(self._kind, call)(*(args[i] for i in loop), *(kwargs[n] for n in names))

    def _shaped(self, results: list[Any], shape: tuple[int, ...]) -> Any:
        array = self._kind.asarray(results)
        return np.reshape(array, shape) if shape else array[0]

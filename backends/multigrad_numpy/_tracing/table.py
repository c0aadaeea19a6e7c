"""The table NumPy/SciPy -> JAX: one rule per function, found by identity.

A rule is called with duck arrays, as the user's function calls NumPy. Most are a JAX function behind an adapter of
calls: ``Elementwise`` for ufuncs, ``Lifted`` for the rest. This module imports no JAX, so that a rule can be
registered before it is needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from multigrad_numpy._ducks.creation import any_duck, pack
from multigrad_numpy._ducks.duck import DuckArray, is_live, lower
from multigrad_numpy._ducks.movement import store
from multigrad_numpy._ducks.refusal import depends, refusal

Rule = Callable[..., Any]
TABLE: dict[Any, Rule] = {}


class Registered:
    """A rule that the user registered; ``calls`` counts those of all such rules."""

    calls = 0

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        Registered.calls += 1
        return self._rule(*args, **kwargs)


_IRRELEVANT = ("order", "subok", "casting", "like", "device", "signature")


def register_numpy(function: Any, jax_function: Callable[..., Any]) -> None:
    """Say which JAX function computes the same as a function of NumPy or SciPy, so that code using it can be traced.

    Args:
        function: a function, ufunc or distribution method of NumPy or SciPy, ``scipy.special.jv``.
        jax_function: called with the same arguments, arrays as JAX arrays.
    """
    rule = Elementwise(function, jax_function) if _is_ufunc(function) else Lifted(function, jax_function)
    TABLE[function] = Registered(rule)


def _is_ufunc(function: Any) -> bool:
    return isinstance(function, np.ufunc) and function.signature is None


def kind_of(tree: Any) -> type[DuckArray]:
    """The kind of the live arrays in ``tree``."""
    from multigrad_numpy._ducks.duck import ducks

    return next(type(duck) for duck in ducks(tree) if duck._memory.live)


def operand(cls: type[DuckArray], value: Any) -> Any:
    """What a JAX function gets for an array argument: a traced value, a NumPy array or a Python number."""
    if isinstance(value, (float, int, complex)) and not issubclass(type(value), (DuckArray, np.generic)):
        return value
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        raise refusal(f"a {type(value).__name__} meets a traced value", "use a plain ndarray")
    array = pack(cls, value)
    if array.dtype.char in "gG":
        raise refusal("extended precision (longdouble) meets a traced value", "use float64")
    return array.value if array._memory.live else array.ghost


@lru_cache(maxsize=4096)
def _loop(ufunc: np.ufunc, types: tuple[Any, ...]) -> tuple[Any, ...]:
    return ufunc.resolve_dtypes((*types, *(None,) * ufunc.nout))


def _as_loop(value: Any, dtype: np.dtype[Any], is_numpys: bool) -> Any:
    """The operand in the dtype that NumPy computes in; to NumPy's own functions Python's numbers adapt by themselves."""
    if isinstance(value, (float, int, complex)) and not isinstance(value, np.generic):
        return value if is_numpys else np.asarray(value, dtype)
    return value if value.dtype == dtype else value.astype(dtype)


class Elementwise:
    """A ufunc by a JAX function.

    Where the derivative is singular, as that of the root at 0, ``singular`` tells (by NumPy's values of the operands).
    There the value is NumPy's and the derivative is set to 0: the code usually discards the entry (``np.where``), or
    its inner derivative is 0 (a standard deviation of equal numbers), and infinity times 0 would spoil the rest.
    """

    def __init__(self, ufunc: np.ufunc, jax_function: Rule, singular: Rule | None = None, inside: float = 0.5) -> None:
        self.ufunc, self.jax_function, self.singular, self.inside = ufunc, jax_function, singular, inside
        self.is_numpys = getattr(np, ufunc.__name__, None) is ufunc

    def __call__(self, *inputs: Any, out: Any = None, where: Any = True, dtype: Any = None, **ignored: Any) -> Any:
        cls = kind_of((inputs, out, where))
        values = [operand(cls, a) for a in inputs]
        types = tuple(type(v) if isinstance(v, (float, int, complex)) and not isinstance(v, (np.generic, bool))
                      else np.asarray(v).dtype if isinstance(v, bool) else np.dtype(v.dtype) for v in values)  # fmt: skip
        if dtype is not None:
            types = tuple(np.dtype(dtype) for _ in types)
            values = [np.asarray(v) if isinstance(v, (float, int, complex)) else v for v in values]
        loop = _loop(self.ufunc, types)
        values = [_as_loop(v, d, self.is_numpys) for v, d in zip(values, loop, strict=False)]
        result = self._compute(cls, values, where)
        made = cls.wrap(result, (inputs, out), loop[self.ufunc.nin :])  # type: ignore[attr-defined]
        return self._stored(out, made, where) if out is not None or where is not True else made

    def _compute(self, cls: Any, values: list[Any], where: Any) -> Any:
        bad = None
        if self.singular is not None:
            concrete = [cls.concrete(v, self.ufunc.__name__) for v in values]
            with np.errstate(all="ignore"):
                bad = self.singular(*concrete)
        if where is not True:
            off = ~np.asarray(lower(where), bool)
            bad = off if bad is None else bad | off
        if bad is None or not np.any(bad):
            return self.jax_function(*values)
        return self._masked(cls, values, bad)

    def _masked(self, cls: Any, values: list[Any], bad: Any) -> Any:
        with np.errstate(all="ignore"):
            plain = self.ufunc(*(cls.concrete(v, self.ufunc.__name__) for v in values))
        result = self.jax_function(*(cls.select(bad, self.inside, v) for v in values))
        if isinstance(plain, tuple):
            return tuple(cls.select(bad, p, r) for p, r in zip(plain, result, strict=True))
        return cls.select(bad, plain, result)

    def _stored(self, out: Any, made: Any, where: Any) -> Any:
        outs = out if isinstance(out, tuple) else (out,)
        results = made if isinstance(made, tuple) else (made,)
        stored = tuple(_store_where(o, r, where) for o, r in zip(outs, results, strict=True))
        return stored[0] if self.ufunc.nout == 1 else stored


def _store_where(out: Any, result: Any, where: Any) -> Any:
    from multigrad_numpy._ducks.writing import target

    if out is None:
        return result
    out = target(out)
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast ufunc output from {result.dtype!r} to {out.dtype!r} with casting rule 'same_kind'"
        )
    if where is True:
        out[...] = result
    else:
        mask = np.broadcast_to(np.asarray(lower(where), bool), out.shape)
        out[mask] = np.broadcast_to(result, out.shape)[mask]
    return out


class Lifted:
    """A function of NumPy by a JAX function of the same arguments."""

    def __init__(self, function: Any, jax_function: Rule) -> None:
        self.function, self.jax_function = function, jax_function

    @cached_property
    def _sorts(self) -> tuple[list[str], dict[str, str]]:
        """The sort of every parameter ("array", "sequence", "static"), by position and by name."""
        try:
            parameters = list(inspect.signature(self.jax_function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        sorts = [_sort_of(p) for p in parameters]
        if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL or not parameters:
            sorts = sorts[:1] * 64
        elif any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
            place = next(i for i, p in enumerate(parameters) if p.kind is inspect.Parameter.VAR_POSITIONAL)
            sorts = sorts[:place] + [sorts[place]] * 64
        return sorts, {p.name: _sort_of(p) for p in parameters}

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        cls = kind_of((args, kwargs))
        by_place, by_name = self._sorts
        places = by_place + ["array"] * (len(args) - len(by_place))
        values = [self._value(cls, a, sort) for a, sort in zip(args, places, strict=False)]
        named = {k: self._value(cls, v, by_name.get(k, "array" if is_live(v) else "static"))
                 for k, v in kwargs.items() if k in by_name or k not in _IRRELEVANT}  # fmt: skip
        return store(out, cls.wrap(self.jax_function(*values, **named), (args, kwargs)))  # type: ignore[attr-defined]

    def _value(self, cls: type[DuckArray], value: Any, sort: str) -> Any:
        if value is None or sort == "static" and not is_live(value):
            return lower(value)
        if sort == "static":
            name = getattr(self.function, "__name__", self.function)
            origin = frozenset().union(*(d._memory.origin for d in _live_ducks(value)))
            raise refusal(f"an argument of {name} that has no derivative is {depends(origin)}", "pass a constant there")
        if sort == "sequence" and isinstance(value, (list, tuple)):
            return [operand(cls, item) for item in value]
        if isinstance(value, (str, slice)) or callable(value) and not any_duck(value):
            return value
        return operand(cls, value)


def _live_ducks(tree: Any) -> Any:
    from multigrad_numpy._ducks.duck import ducks

    return (duck for duck in ducks(tree) if duck._memory.live)


def _sort_of(parameter: inspect.Parameter) -> str:
    text = str(parameter.annotation)
    if parameter.annotation is inspect.Parameter.empty or text == "Any":
        return "array"
    if "Sequence[" in text and ("Sequence[Array" in text or "Sequence[typing.Union" in text or "Sequence[None" in text):
        return "sequence"
    if "list[ArrayLike]" in text or text.startswith("tuple["):
        return "sequence"
    return "array" if "Array" in text or "numpy.ndarray" in text else "static"

"""An array that stands in for ndarray while a user's function runs.

``DuckArray`` is what the traced and the batched array have in common: a buffer starts *plain*, computed with by NumPy
itself, and becomes *live* when something that depends on the inputs is stored into it. Its views and their aliasing
are NumPy's own, see ``memory``. What a live array computes with is up to the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from multigrad_numpy._ducks.conversions import Conversions
from multigrad_numpy._ducks.memory import Memory, Plain, Positions, counting, shares
from multigrad_numpy._ducks.methods import Methods
from multigrad_numpy._ducks.operators import Operators
from multigrad_numpy._ducks.refusal import refusal

NUMERIC = "biufc"


def ducks(tree: Any) -> Iterator[DuckArray]:
    """The duck arrays in nested sequences, mappings and object arrays."""
    if isinstance(tree, (list, tuple, set)):
        for item in tree:
            yield from ducks(item)
    elif isinstance(tree, dict):
        yield from ducks(list(tree.values()))
    elif type(tree) is np.ndarray and tree.dtype == object:
        yield from ducks(tree.ravel().tolist())
    elif issubclass(type(tree), DuckArray):
        yield tree
    elif type(tree) is slice:
        yield from ducks((tree.start, tree.stop, tree.step))


def is_live(tree: Any) -> bool:
    """Whether something in ``tree`` depends on the function's inputs."""
    kind = type(tree)
    if issubclass(kind, DuckArray):
        return bool(tree._memory.live)
    if kind is list or kind is tuple:
        return any(map(is_live, tree))
    if kind is float or kind is int:
        return False
    return any(duck._memory.live for duck in ducks(tree))


def lower(tree: Any) -> Any:
    """``tree`` with plain duck arrays replaced by the NumPy arrays that they stand for."""
    kind = type(tree)
    if issubclass(kind, DuckArray):
        return tree.ghost if not tree._memory.live else tree
    if kind is list:
        return list(map(lower, tree))
    if kind is tuple:
        return tuple(map(lower, tree))
    if kind is dict:
        return {key: lower(value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return kind(*map(lower, tree))
    if kind is slice:
        return slice(lower(tree.start), lower(tree.stop), lower(tree.step))
    return tree


class DuckArray(Operators, Methods, Conversions):
    """See the module's docstring. Subclasses fill in what a live array is."""

    __slots__ = ("__weakref__", "_frozen", "_ghost", "_memory", "_scalar", "_seen", "_value")
    handlers: ClassVar[
        Mapping[Any, Callable[..., Any]]
    ]  # what is done alike for every kind, by identity of the function
    # Functions that call the user's: their own Python code is run, so that what the user's function returns may be live.
    calls_back: ClassVar[frozenset[Any]]

    def __init__(
        self, memory: Memory, value: Any = None, ghost: Plain | None = None, scalar: bool = False, frozen: str = ""
    ) -> None:
        self._memory = memory
        self._value = memory.value if value is None else value
        self._seen = memory.version
        self._ghost = ghost
        self._scalar = scalar
        self._frozen = frozen

    @classmethod
    def plain(cls, array: Plain) -> Self:
        """A buffer of plain numbers; takes over ``array``."""
        if array.base is not None and not array.flags.c_contiguous:
            array = array.copy(order="K")
        return cls(Memory(array, live=False), ghost=array)

    # What a kind has to say.

    @classmethod
    def call_live(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call NumPy's ``function``, some of whose arguments are live."""
        raise NotImplementedError

    @classmethod
    def call_ufunc(cls, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a ufunc or a method of it with some live argument."""
        raise NotImplementedError

    @property
    def live_shape(self) -> tuple[int, ...]:
        """The shape of a live array."""
        raise NotImplementedError

    def _gather(self, positions: Positions) -> Any:
        """The live value made of the elements at ``positions`` of this array, flattened."""
        raise NotImplementedError

    def _moved(self, function: Callable[..., Any], args: Any, kwargs: Any, result: Plain) -> Any:
        """The live value of ``function``, which only moves elements; ``result`` is what it makes of the ghost."""
        return self._gather(np.asarray(function(counting(self.shape), *args, **kwargs)))

    def _reread(self) -> Any:
        """The live value of a view, read off the memory."""
        raise NotImplementedError

    def _go_live(self, like: Any) -> None:
        """Turn the memory live, so that ``like`` can be stored."""
        raise NotImplementedError

    def _write(self, index: Any, value: Any) -> None:
        """Store ``value``, which may be live, at ``index``; the memory is live."""
        raise NotImplementedError

    def _agreed_live(self, convert: Callable[[Any], Any], call: str) -> Any:
        """``convert`` of a live value."""
        raise NotImplementedError

    def _cast(self, dtype: np.dtype[Any]) -> Any:
        """A live copy in another dtype."""
        raise NotImplementedError

    def duplicate(self) -> Self:
        """A copy with memory of its own; of a scalar, a 0-d array."""
        raise NotImplementedError

    def _complex_part(self, name: str) -> Any:
        """The live value of ``.real`` or ``.imag`` of a complex array."""
        raise NotImplementedError

    @classmethod
    def asarray(cls, value: Any) -> Any:
        """``value`` as a duck array; nested sequences of live values too."""
        if issubclass(type(value), DuckArray):
            return value
        from multigrad_numpy._ducks.creation import pack

        return pack(cls, value)

    # Value and layout.

    @property
    def value(self) -> Any:
        """What the array computes with, up to date with writes through its views."""
        if self._seen != self._memory.version:
            self._value, self._seen = self._reread(), self._memory.version
        return self._value

    @property
    def shape(self) -> tuple[int, ...]:
        return self._ghost.shape if self._ghost is not None else self.live_shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise refusal("assignment to x.shape is not traceable", "write x = x.reshape(...)")

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        dtype: np.dtype[Any] = np.dtype(self._value.dtype)
        return dtype

    @property
    def ghost(self) -> Plain:
        """NumPy's own array of this layout; while the array is plain, its very value."""
        if self._ghost is None:
            self._ghost = self._memory.ghost(self.live_shape)
        return self._ghost

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # isinstance(x, np.ndarray) and isinstance(x[0], float) have to hold
        return np.dtype(self._value.dtype).type if self._scalar else np.ndarray

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        if not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} according to {casting!r}"
            )
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        return self._cast(np.dtype(dtype)) if self._memory.live else self.lift(self.ghost.astype(dtype))

    def _part_of(self, name: str) -> Any:
        if self.dtype.kind != "c" and name == "real":
            return self
        if not self._memory.live:
            value = np.array(getattr(self.ghost, name))
            return type(self)(Memory(value, live=False), ghost=value, frozen=f"z.{name}") if self.shape else value[()]
        part = self._complex_part(name)
        return type(self)(Memory(part, live=True, origin=self._memory.origin), scalar=self._scalar, frozen=f"z.{name}")

    @property
    def real(self) -> Any:
        return self._part_of("real")

    @real.setter
    def real(self, value: Any) -> None:
        self[...] = value + 1j * self.imag if self.dtype.kind == "c" else value

    @property
    def imag(self) -> Any:
        return self._part_of("imag")

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self[...] = self.real + 1j * value

    @classmethod
    def _namespace(cls) -> ModuleType:
        from multigrad_numpy._ducks.proxies import proxy

        namespace: ModuleType = proxy(cls, np)
        return namespace

    def _fresh(self, value: Any, scalar: bool = False) -> Self:
        return type(self)(Memory(value, live=True, origin=self._memory.origin), scalar=scalar)

    def move(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Apply a function that only moves elements; a view where NumPy gives one."""
        result = function(self.ghost, *args, **kwargs)
        if not self._memory.live:
            return self.lift(result, (self,))
        if isinstance(result, (list, tuple)):
            places = function(counting(self.shape), *args, **kwargs)
            return type(result)(self._part(g, self._gather(p)) for g, p in zip(result, places, strict=True))
        return self if result is self.ghost else self._part(result, self._moved(function, args, kwargs, result))

    def _part(self, ghost: Any, value: Any) -> Any:
        """The array of ``value``: a view of this one if ``ghost`` is a view of this one's ghost."""
        if not isinstance(ghost, np.ndarray):
            return self._fresh(value, scalar=True)
        if self._scalar or not shares(ghost, self.ghost):
            return self._fresh(value)
        return type(self)(self._memory, value, ghost, frozen=self._frozen)

    def _agreed(self, convert: Callable[[Any], Any], call: str) -> Any:
        """``convert`` of the value, for what is constant but for jumps: a branch, an integer."""
        return self._agreed_live(convert, call) if self._memory.live else convert(self.ghost)

    # Indexing.

    def __getitem__(self, index: Any) -> Any:
        if is_live(index):
            return self.call_live(_getitem, (self, index), {})
        index = lower(index)
        return self.move(_getitem, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._scalar:
            raise TypeError(f"'numpy.{self.dtype}' object does not support item assignment")
        if self._frozen:
            raise refusal(f"a write through {self._frozen}", f"assign to {self._frozen} as a whole, or to the array")
        if not (self._memory.live or is_live(value) or is_live(index)):
            self.ghost[lower(index)] = lower(value)
            return
        if not self._memory.live:
            self._go_live(value if is_live(value) else index)
        self._write(index, value)

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if is_live(inputs) or (kwargs and is_live(tuple(kwargs.values()))):
            return self.call_ufunc(ufunc, method, inputs, kwargs)
        return self.call_plain(getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.call(func, args, dict(kwargs))

    @classmethod
    def call(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call NumPy's ``function`` with arguments that may be or contain duck arrays."""
        if not is_live(args) and not (kwargs and is_live(kwargs)):
            return cls.call_plain(function, args, kwargs)
        handler = cls.handlers.get(function)
        if handler is not None:
            result = handler(cls, *args, **kwargs)
            if result is not NotImplemented:
                return result
        if isinstance(function, np.ufunc):
            return cls.call_ufunc(function, "__call__", args, kwargs)
        return cls.call_live(function, args, kwargs)

    @classmethod
    def call_plain(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let NumPy compute; its results are buffers that a live value may be stored into later."""
        result = function(*lower(args), **lower(kwargs))
        return cls.lift(result, list(ducks((args, kwargs))))

    @classmethod
    def lift(cls, result: Any, sources: Sequence[DuckArray] = ()) -> Any:
        """NumPy's results as plain duck arrays; views of ``sources`` stay views of them."""
        kind = type(result)
        if kind is np.ndarray:
            if result.dtype.kind not in NUMERIC:
                return result
            for source in sources:
                if result is source.ghost:
                    return source
                if shares(result, source.ghost):
                    return cls(source._memory, result, result)
            return cls.plain(result)
        if kind is list or kind is tuple:
            return kind(cls.lift(item, sources) for item in result)
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return kind(*(cls.lift(item, sources) for item in result))
        return result


def _getitem(array: Any, index: Any) -> Any:
    return array[index]

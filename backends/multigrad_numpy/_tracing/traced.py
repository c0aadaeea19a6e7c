"""The traced array: its live values are JAX's, so that what the user's function does can be differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from multigrad_numpy._ducks.duck import DuckArray, _getitem, ducks, is_live, lower
from multigrad_numpy._ducks.memory import Memory, Plain, Positions, together
from multigrad_numpy._ducks.rebind import own_code
from multigrad_numpy._ducks.refusal import refusal
from multigrad_numpy._ducks.shared import SHARED
from multigrad_numpy._ducks.writing import at, target
from multigrad_numpy._tracing.table import TABLE

# Up to this size elements are picked by number, passed as an operand: the steps of a loop share one compiled kernel.
# Larger pieces are sliced natively, which is faster to run.
_BY_NUMBER = 1 << 12

_NATIVE: dict[Any, Callable[..., Any]] = {
    np.transpose: jnp.transpose,
    np.reshape: jnp.reshape,
    np.swapaxes: jnp.swapaxes,
    np.ravel: jnp.ravel,
    np.squeeze: jnp.squeeze,
    np.expand_dims: jnp.expand_dims,
    np.moveaxis: jnp.moveaxis,
    np.broadcast_to: jnp.broadcast_to,
}


@jax.jit
def _pick(value: Any, positions: Any) -> Any:
    return value.reshape(-1).at[positions].get(mode="promise_in_bounds")


@jax.jit
def _place(value: Any, positions: Any, new: Any) -> Any:
    flat = value.reshape(-1).at[positions].set(new, mode="promise_in_bounds", unique_indices=True)
    return flat.reshape(value.shape)


class TracedArray(DuckArray):
    """See the module's docstring."""

    __slots__ = ()
    handlers = SHARED
    calls_back = frozenset({np.apply_along_axis, np.apply_over_axes, np.piecewise})

    @property
    def live_shape(self) -> tuple[int, ...]:
        return self._value.shape  # type: ignore[no-any-return]

    @classmethod
    def of(cls, value: Any, origin: frozenset[str] = frozenset()) -> Self:
        """A live array."""
        return cls(Memory(value, live=True, origin=origin), scalar=value.ndim == 0)

    @staticmethod
    def concrete(value: Any, call: str = "this") -> Any:
        """NumPy's copy of a traced value.

        Raises:
            Unsupported: under ``jax.jit`` or ``jax.vmap`` there is none.
        """
        if not isinstance(value, jax.Array):
            return value
        try:
            return np.asarray(jax.lax.stop_gradient(value))
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError):
            raise refusal(f"{call} needs the number behind a traced value", "do not use jax.jit or jax.vmap") from None

    @staticmethod
    def select(mask: Any, yes: Any, no: Any) -> Any:
        """``no`` with ``yes`` where the mask is set, in the dtype of ``no``."""
        dtype = no.dtype if hasattr(no, "dtype") else np.asarray(no).dtype
        return jnp.where(mask, jnp.asarray(yes).astype(dtype), no)

    @classmethod
    def wrap(cls, result: Any, sources: Any, dtypes: Any = None) -> Any:
        """What a JAX function returned, as duck arrays that depend on what ``sources`` depend on."""
        if isinstance(result, (list, tuple)):
            dtypes = dtypes or (None,) * len(result)
            parts = [cls.wrap(r, sources, (d,)) for r, d in zip(result, dtypes, strict=True)]
            return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
        if not isinstance(result, jax.Array):
            return cls.lift(result)
        if result.dtype.kind not in "fc":  # masks, indices, counts: constant but for jumps
            plain = cls.concrete(result)
            return cls.lift(np.array(plain)) if plain.ndim else plain[()]
        if dtypes and dtypes[0] is not None and result.dtype != dtypes[0]:
            result = result.astype(dtypes[0])
        return cls.of(result, together(d._memory.origin for d in ducks(sources)))

    def _gather(self, positions: Positions) -> Any:
        return _pick(self.value, positions)

    def _moved(self, function: Callable[..., Any], args: Any, kwargs: Any, result: Plain) -> Any:
        if isinstance(result, np.ndarray) and result.size > _BY_NUMBER:
            if function is _getitem and not _has_arrays(args[0]):
                return self.value[args[0]]
            if (
                function in _NATIVE
                and not {"order", "copy"} & kwargs.keys()
                and not any(isinstance(a, str) for a in args)
            ):
                return _NATIVE[function](self.value, *args, **kwargs)
        return super()._moved(function, args, kwargs, result)

    def _reread(self) -> Any:
        if self._ghost is None or self._ghost is self._memory._ghost:
            return self._memory.value
        return _pick(self._memory.value, self._memory.positions(self._ghost))

    def _go_live(self, like: Any) -> None:
        memory = self._memory
        memory.value, memory.live = jnp.asarray(memory.value), True
        memory.version += 1

    def _write(self, index: Any, value: Any) -> None:
        index = lower(index)
        items = index if type(index) is tuple else (index,)
        if any(issubclass(type(i), DuckArray) for i in items):
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        places = np.asarray(self._memory.positions(self.ghost)[index])
        value = self.asarray(value)
        value = _fitting(value, places.shape, self.dtype)
        memory = self._memory
        memory.origin = memory.origin | (value._memory.origin if is_live(value) else frozenset())
        data = jnp.broadcast_to(value.value if value._memory.live else jnp.asarray(value.ghost), places.shape)
        if _has_arrays(index):
            places, data = _last_ones(places, data)
        memory.value = _place(memory.value, places, data.astype(self.dtype))
        memory.version += 1

    def _agreed_live(self, convert: Callable[[Any], Any], call: str) -> Any:
        return convert(self.concrete(self.value, call))

    def _cast(self, dtype: np.dtype[Any]) -> Any:
        if dtype.kind not in "fc":
            plain = self.concrete(self.value, f"x.astype({dtype})").astype(dtype)
            return self.lift(np.array(plain)) if self.shape else plain[()]
        if dtype.char in "gG":
            raise refusal("x.astype(longdouble)", "use float64")
        value = jnp.real(self.value) if dtype.kind == "f" else self.value
        made = self._fresh(value.astype(dtype), scalar=self._scalar)
        return made

    def duplicate(self) -> Self:
        if not self._memory.live:
            return self.plain(self.ghost.copy())
        return self._fresh(self.value)

    def _complex_part(self, name: str) -> Any:
        return jnp.real(self.value) if name == "real" else jnp.imag(self.value)

    @classmethod
    def call_live(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function is _getitem:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        rule = TABLE.get(function)
        if rule is None:
            return _own(cls, function, args, kwargs)
        try:
            return rule(*args, **kwargs)
        except (TypeError, NotImplementedError) as error:
            if _is_ours(error) or type(rule).__module__ == "builtins":
                raise
            return _own(cls, function, args, kwargs, error)

    @classmethod
    def call_ufunc(cls, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for out in kwargs["out"] if isinstance(kwargs.get("out"), tuple) else ():
            if out is not None:
                target(out)
        if method == "at":
            return at(cls, ufunc, *inputs)
        if method != "__call__":
            from multigrad_numpy._ducks.folding import FOLDING

            return FOLDING[method](cls, ufunc, *inputs, **kwargs)
        rule = TABLE.get(ufunc)
        if rule is not None:
            return rule(*inputs, **kwargs)
        if ufunc.types and all(set(t) <= set("O->") for t in ufunc.types):  # np.frompyfunc
            return cls.asarray(ufunc(*(np.asarray(a) for a in inputs)))
        raise _no_rule(ufunc)


def _has_arrays(index: Any) -> bool:
    items = index if type(index) is tuple else (index,)
    return any(isinstance(i, (np.ndarray, list, bool, np.bool_)) for i in items)


def _last_ones(places: Positions, data: Any) -> tuple[Positions, Any]:
    """Of elements stored at one place, as ``x[[0, 0]] = 1, 2`` does, the last one stays."""
    flat = places.ravel()
    unique, last = np.unique(flat[::-1], return_index=True)
    if unique.size == flat.size:
        return places, data
    return unique, data.reshape(-1)[flat.size - 1 - last]


def _fitting(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """The value to be stored, with superfluous leading axes dropped, in a dtype that the array can hold."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0] if value.ndim > 1 else np.reshape(value, ())
        value = TracedArray.asarray(value)
    np.broadcast_shapes(shape, value.shape)
    if np.broadcast_shapes(shape, value.shape) != shape:
        raise ValueError(f"could not broadcast input array from shape {value.shape} into shape {shape}")
    if value.dtype.kind == "c" and dtype.kind != "c":
        raise refusal("a complex value is stored into a real array", "make the array complex")
    return TracedArray.plain(np.asarray(value.astype(dtype))) if dtype.kind in "biu" and is_live(value) else value


def _is_ours(error: BaseException) -> bool:
    from multigrad.errors import MultigradError

    return isinstance(error, MultigradError)


def _name(function: Any) -> str:
    special = isinstance(function, np.ufunc) and function.signature is None
    module = getattr(function, "__module__", None) or ("scipy.special" if special else "")
    name = str(getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function)))
    module = "numpy" if getattr(np, name, None) is function else module
    return f"{module}.{name}" if module else str(name)


def _no_rule(function: Any) -> Exception:
    name = _name(function)
    return refusal(f"{name} has no derivative rule", f"pass jac=, or multigrad.register_numpy({name}, jax_function)")


def _own(cls: Any, function: Any, args: Any, kwargs: Any, cause: BaseException | None = None) -> Any:
    """Run a function without a rule by its own Python code."""
    try:
        code = own_code(cls, function)
    except TypeError:
        raise _no_rule(function) from cause
    return code(*args, **kwargs)

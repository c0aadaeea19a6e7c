"""Allocation and conversion: ``np.zeros_like``, ``np.array``, ``np.asarray`` and their kin, for every kind alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.duck import DuckArray, ducks, is_live, lower

COPYING = (np.array, np.copy)
CONVERSIONS = (
    np.array,
    np.asanyarray,
    np.asarray,
    np.asarray_chkfinite,
    np.ascontiguousarray,
    np.asfortranarray,
    np.require,
    np.copy,
)


def pack(cls: type[DuckArray], tree: Any) -> Any:
    """Nested sequences and object arrays that contain live values, as one array."""
    if issubclass(type(tree), DuckArray):
        return tree
    if type(tree) is np.ndarray and tree.dtype == object:
        return np.reshape(pack(cls, tree.ravel().tolist()), tree.shape) if tree.shape else pack(cls, tree.item())
    if not is_live(tree):
        return cls.plain(np.asarray(lower(tree)))
    parts = [pack(cls, item) for item in tree]
    if len({part.shape for part in parts}) > 1:
        raise ValueError("setting an array element with a sequence. The requested array has an inhomogeneous shape")
    return cls.call_live(np.stack, (parts,), {})


def _as_type(array: DuckArray, dtype: Any) -> Any:
    return array if dtype is None or np.dtype(dtype) in (array.dtype, object) else array.astype(dtype)


def _convert(function: Callable[..., Any]) -> Callable[..., Any]:
    def convert(cls: type[DuckArray], a: Any, dtype: Any = None, *args: Any, copy: Any = None, **kwargs: Any) -> Any:
        if function is np.copy:  # its second parameter is the order
            dtype = None
        array = pack(cls, a)
        result = _as_type(array, dtype)
        if result is array and (function in COPYING and copy is not False and array is a or copy or array._scalar):
            result = array.duplicate()
        missing = kwargs.get("ndmin", 0) - result.ndim
        return np.reshape(result, (1,) * missing + result.shape) if missing > 0 else result

    return convert


def _like(fill: Any) -> Callable[..., Any]:
    def allocate(cls: type[DuckArray], a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None,
                 *, device: Any = None) -> Any:  # fmt: skip
        a = cls.asarray(a)
        return cls.plain(np.full(a.shape if shape is None else shape, fill, a.dtype if dtype is None else dtype))

    return allocate


def _full_like(cls: type[DuckArray], a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
               shape: Any = None, *, device: Any = None) -> Any:  # fmt: skip
    out = _like(0)(cls, a, dtype, shape=shape)
    out[...] = fill_value
    return out


def full(cls: type[DuckArray], shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **kwargs: Any) -> Any:
    """``np.full`` with a live fill value."""
    fill_value = pack(cls, fill_value)
    out = cls.plain(np.zeros(lower(shape), fill_value.dtype if dtype is None else dtype))
    out[...] = fill_value
    return out


def _astype(cls: type[DuckArray], x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    return x.astype(dtype, copy=copy)


def _about_shape(function: Callable[..., Any]) -> Callable[..., Any]:
    def answer(cls: type[DuckArray], a: Any, *args: Any) -> Any:
        return function(cls.asarray(a).ghost, *args)

    return answer


def _einsum_path(cls: type[DuckArray], *operands: Any, **kwargs: Any) -> Any:
    stand_ins = [np.empty(o.shape) if issubclass(type(o), DuckArray) else o for o in operands]
    return np.einsum_path(*stand_ins, **kwargs)


def _about_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    def stand_in(value: Any) -> Any:
        if not issubclass(type(value), DuckArray):
            return value
        return value.dtype if function in (np.result_type, np.can_cast) else np.empty(value.shape, value.dtype)

    def answer(cls: type[DuckArray], *args: Any, **kwargs: Any) -> Any:
        if any(map(is_live, (a for a in args if not issubclass(type(a), DuckArray)))):
            args = tuple(pack(cls, a) if is_live(a) else a for a in args)
        return function(*map(stand_in, args), **kwargs)

    return answer


def _shares_memory(cls: type[DuckArray], a: Any, b: Any, max_work: Any = None) -> bool:
    if not all(issubclass(type(v), DuckArray) for v in (a, b)) or a._memory is not b._memory:
        return False
    return bool(np.shares_memory(a.ghost, b.ghost))


HANDLERS: dict[Any, Callable[..., Any]] = {function: _convert(function) for function in CONVERSIONS} | {
    np.real: lambda cls, val: cls.asarray(val).real,
    np.imag: lambda cls, val: cls.asarray(val).imag,
    np.zeros_like: _like(0),
    np.ones_like: _like(1),
    np.empty_like: _like(0),
    np.full_like: _full_like,
    np.full: full,
    np.astype: _astype,
    np.shape: _about_shape(np.shape),
    np.einsum_path: _einsum_path,
    np.ndim: _about_shape(np.ndim),
    np.size: _about_shape(np.size),
    np.iscomplexobj: _about_dtype(np.iscomplexobj),
    np.isrealobj: _about_dtype(np.isrealobj),
    np.result_type: _about_dtype(np.result_type),
    np.can_cast: _about_dtype(np.can_cast),
    np.common_type: _about_dtype(np.common_type),
    np.isscalar: lambda cls, element: not issubclass(type(element), DuckArray) or element._scalar,
    np.shares_memory: _shares_memory,
    np.may_share_memory: _shares_memory,
}


def any_duck(tree: Any) -> bool:
    """Whether there is a duck array in ``tree``."""
    return next(ducks(tree), None) is not None

"""NumPy's functions that write into their first argument, as item assignments, for every kind alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.creation import pack
from multigrad_numpy._ducks.duck import DuckArray, is_live, lower
from multigrad_numpy._ducks.memory import counting
from multigrad_numpy._ducks.methods import Flat
from multigrad_numpy._ducks.refusal import STORED, STORED_REMEDY, refusal


def target(array: Any) -> Any:
    """``array``, if live values can be stored into it."""
    if not issubclass(type(array), DuckArray):
        raise refusal(STORED, STORED_REMEDY)
    return array


def _copyto(cls: type[DuckArray], dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    dst = target(dst)
    if is_live(where):
        return NotImplemented
    if where is True:
        dst[...] = src
        return None
    mask = np.broadcast_to(np.asarray(lower(where), bool), dst.shape)
    dst[mask] = np.broadcast_to(pack(cls, src), dst.shape)[mask]
    return None


def _put(cls: type[DuckArray], a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    if is_live(ind):
        return NotImplemented
    a = target(a)
    ind = np.ravel(lower(ind))
    ind = {"raise": lambda i: i, "wrap": lambda i: i % a.size, "clip": lambda i: np.clip(i, 0, a.size - 1)}[mode](ind)
    if ind.size:
        Flat(a)[ind] = np.resize(pack(cls, v), ind.shape)
    return None


def _place(cls: type[DuckArray], arr: Any, mask: Any, vals: Any) -> Any:
    if is_live(mask):
        return NotImplemented
    arr = target(arr)
    mask = np.reshape(np.asarray(lower(mask), bool), arr.shape)
    if mask.any():
        arr[mask] = np.resize(pack(cls, vals), int(mask.sum()))
    return None


def _putmask(cls: type[DuckArray], a: Any, mask: Any, values: Any) -> Any:
    if is_live(mask):
        return NotImplemented
    a = target(a)
    mask = np.reshape(np.asarray(lower(mask), bool), a.shape)
    a[mask] = np.resize(pack(cls, values), a.shape)[mask]
    return None


def _fill_diagonal(cls: type[DuckArray], a: Any, val: Any, wrap: bool = False) -> None:
    a = target(a)
    mask = np.zeros(a.shape, bool)
    np.fill_diagonal(mask, True, wrap)
    a[mask] = np.resize(pack(cls, val), int(mask.sum()))


def _put_along_axis(cls: type[DuckArray], arr: Any, indices: Any, values: Any, axis: int | None = -1) -> Any:
    if is_live(indices):
        return NotImplemented
    arr = target(arr)
    places = np.take_along_axis(counting(arr.shape), lower(indices), axis)
    arr[np.unravel_index(places, arr.shape)] = values
    return None


def at(cls: type[DuckArray], ufunc: np.ufunc, array: Any, indices: Any, *operand: Any) -> None:
    """``ufunc.at``: unbuffered, so an index that occurs k times is treated k times."""
    array = target(array)
    places = counting(array.shape)[lower(indices)]
    operands = [np.ravel(np.broadcast_to(pack(cls, b), places.shape)) for b in operand]
    rounds = _occurrence(places.ravel())
    for turn in range(int(rounds.max(initial=-1)) + 1):
        now = rounds == turn
        where = np.unravel_index(places.ravel()[now], array.shape)
        array[where] = ufunc(array[where], *(b[now] for b in operands))


def _occurrence(places: Any) -> Any:
    """For every element, how many times its value occurred before it."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.searchsorted(ordered, ordered, side="left")
    count = np.empty(places.size, np.intp)
    count[order] = np.arange(places.size) - first
    return count


HANDLERS: dict[Any, Callable[..., Any]] = {
    np.copyto: _copyto,
    np.put: _put,
    np.place: _place,
    np.putmask: _putmask,
    np.fill_diagonal: _fill_diagonal,
    np.put_along_axis: _put_along_axis,
}
WRITERS = frozenset(HANDLERS)

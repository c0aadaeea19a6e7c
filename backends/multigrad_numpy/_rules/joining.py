"""Rules for functions that put arrays together, in the dtype that NumPy finds for them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from multigrad_numpy._ducks.movement import store
from multigrad_numpy._rules.numpy import numbers, rule_for
from multigrad_numpy._tracing.table import TABLE, Lifted, Rule
from multigrad_numpy._tracing.traced import TracedArray

_array = TracedArray.asarray


@rule_for(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arr, values = _array(arr), _array(values)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    several = np.ndim(obj) == 0 and not isinstance(obj, slice) and values.ndim == arr.ndim
    marks = np.full(values.shape[0 if arr.ndim == 1 else axis] if several else 1, -1)
    mixed = np.insert(np.arange(arr.shape[axis]), obj, marks if several else -1)
    kept, new = np.flatnonzero(mixed >= 0), np.flatnonzero(mixed < 0)
    out: Any = TracedArray.plain(
        np.zeros([len(mixed) if i == axis % arr.ndim else n for i, n in enumerate(arr.shape)], arr.dtype)
    )
    front = np.moveaxis(out, axis, 0)
    front[kept] = np.moveaxis(arr, axis, 0)
    if np.ndim(obj) == 0 and not isinstance(obj, slice):  # then the values' first axis is the axis of insertion
        values = np.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
        values = np.moveaxis(values, 0, axis) if arr.ndim > 1 else values
    else:
        order = np.argsort(np.argsort(np.atleast_1d(np.arange(arr.shape[axis] + 1)[obj]), kind="stable"), kind="stable")
        new = new[order]
    spread = np.broadcast_to(values, [len(new) if i == axis % arr.ndim else n for i, n in enumerate(arr.shape)])
    front[new] = np.moveaxis(spread, axis, 0)
    return out


@rule_for(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    arrays = [np.ravel(_array(x)) for x in xi]
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[0], places[1] = 1, 0
    open_grid = [
        np.reshape(a, [-1 if i == k else 1 for i in range(len(arrays))]) for a, k in zip(arrays, places, strict=True)
    ]
    return tuple(open_grid) if sparse else tuple(a.copy() for a in np.broadcast_arrays(*open_grid))


@rule_for(np.arange)
def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, **kwargs: Any) -> Any:
    start, stop = (0, start) if stop is None else (start, stop)
    count = len(np.arange(*(numbers(_array(v))[()] for v in (start, stop, step))))
    made = start + np.arange(count) * step
    return made if dtype is None else _array(made).astype(dtype)


@rule_for(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ends = [np.ravel(_array(e)) for e in (to_begin, to_end) if e is not None]
    inner = np.diff(np.ravel(_array(ary)))
    return np.concatenate((*ends[: to_begin is not None], inner, *ends[to_begin is not None :]))


@rule_for(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    arr, values = _array(arr), _array(values)
    if axis is None:
        arr, values, axis = np.ravel(arr), np.ravel(values), 0
    return np.concatenate((arr, values), axis=axis)


@rule_for(np.matmul)
def _matmul(x1: Any, x2: Any, /, out: Any = None, **kwargs: Any) -> Any:
    x1, x2 = _array(x1), _array(x2)
    dtype = np.result_type(x1.dtype, x2.dtype)
    return store(out, Lifted(np.matmul, jnp.matmul)(x1.astype(dtype, copy=False), x2.astype(dtype, copy=False)))


def _common(function: Any, same: Any) -> Rule:
    """Joining arrays in the dtype that NumPy finds for them, not JAX."""
    lifted = Lifted(function, same)

    def rule(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        arrays = [_array(a) for a in arrays]
        dtype = kwargs.pop("dtype", None) or np.result_type(*(a.dtype for a in arrays))
        kwargs.pop("casting", None)
        return lifted([a.astype(dtype, copy=False) for a in arrays], *args, **kwargs)

    return rule


for _f, _same in {np.concatenate: jnp.concatenate, np.stack: jnp.stack, np.hstack: jnp.hstack, np.vstack: jnp.vstack,
                  np.dstack: jnp.dstack, np.column_stack: jnp.column_stack}.items():  # fmt: skip
    TABLE[_f] = _common(_f, _same)

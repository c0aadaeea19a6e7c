"""Products of arrays and linear algebra with the rows of a batch along the first axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from multigrad_numpy._batching.batched import BatchArray, Rule
from multigrad_numpy._batching.rules import _live_first, _of, _rows, _rule, _shifted, _spread
from multigrad_numpy._ducks.duck import is_live, lower
from multigrad_numpy._ducks.movement import store


@_rule(np.matmul)
def _matmul(x: Any, y: Any, **kwargs: Any) -> Any:
    x, y = BatchArray.asarray(x), BatchArray.asarray(y)
    if not x.ndim or not y.ndim:
        raise ValueError("matmul: input operand does not have enough dimensions")
    left, right = (a.value if a._memory.live else a.ghost for a in (x, y))
    if not y._memory.live and x.ndim == 1 and y.ndim <= 2:  # one product of matrices for all rows
        return _of(np.matmul(left, right, **kwargs))
    if not x._memory.live and y.ndim == 1 and x.ndim == 2:
        return _of(np.matmul(right, left.T, **kwargs))
    depth = max(x.ndim, y.ndim, 2)
    left = _core_padded(x, left, depth, vector_axis=-2)
    right = _core_padded(y, right, depth, vector_axis=-1)
    result = np.matmul(left, right, **kwargs)
    if y.ndim == 1:
        result = result[..., 0]
    if x.ndim == 1:
        result = result[..., 0] if y.ndim == 1 else result[..., 0, :]
    return _of(result)


def _core_padded(array: Any, data: Any, depth: int, vector_axis: int) -> Any:
    """Make a vector a matrix and put loop axes between the rows and the core axes."""
    ndim = array.ndim
    if ndim == 1:
        data, ndim = np.expand_dims(data, vector_axis), 2
    return data.reshape(len(data), *(1,) * (depth - ndim), *data.shape[1:]) if is_live(array) else data


@_rule(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = BatchArray.asarray(a), BatchArray.asarray(b)
    if not a.ndim or not b.ndim:
        return store(out, np.multiply(a, b))
    if a.ndim <= 2 and b.ndim <= 2 or b.ndim == 1:
        return store(out, np.matmul(a, b))
    return store(out, np.tensordot(a, b, axes=(-1, -2 if b.ndim > 1 else -1)))


@_rule(np.inner)
def _inner(a: Any, b: Any, /) -> Any:
    a, b = BatchArray.asarray(a), BatchArray.asarray(b)
    return np.tensordot(a, b, axes=(-1, -1)) if a.ndim and b.ndim else np.multiply(a, b)


@_rule(np.vdot)
def _vdot(a: Any, b: Any, /) -> Any:
    return np.dot(np.conj(np.ravel(BatchArray.asarray(a))), np.ravel(BatchArray.asarray(b)))


@_rule(np.outer, np.linalg.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    return store(out, np.ravel(BatchArray.asarray(a))[:, None] * np.ravel(BatchArray.asarray(b))[None, :])


_LETTERS = "abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXY"  # z and Z are the rows


@_rule(np.tensordot, np.linalg.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = BatchArray.asarray(a), BatchArray.asarray(b)
    if isinstance(axes, (int, np.integer)):
        axes = (list(range(a.ndim - axes, a.ndim)), list(range(axes)))
    left, right = ([i % v.ndim for i in np.atleast_1d(ax)] for v, ax in zip((a, b), axes, strict=True))
    a_names, b_names = list(_LETTERS[: a.ndim]), list(_LETTERS[a.ndim : a.ndim + b.ndim])
    for i, j in zip(left, right, strict=True):
        b_names[j] = a_names[i]
    kept = [n for i, n in enumerate(a_names) if i not in left] + [n for j, n in enumerate(b_names) if j not in right]
    return np.einsum(f"{''.join(a_names)},{''.join(b_names)}->{''.join(kept)}", a, b)


@_rule(np.einsum)
def _einsum(subscripts: Any, *operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    if not isinstance(subscripts, str) or "." in subscripts or "Z" in subscripts or kwargs:
        return NotImplemented
    terms, arrow, result = subscripts.replace(" ", "").partition("->")
    if not arrow:
        letters = terms.replace(",", "")
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    arrays = [BatchArray.asarray(a) for a in operands]
    names = ",".join("Z" + t if is_live(a) else t for t, a in zip(terms.split(","), arrays, strict=True))
    data = [a.value if is_live(a) else a.ghost for a in arrays]
    return store(out, _of(np.einsum(f"{names}->Z{result}", *data, optimize=optimize or len(data) > 1)))


# Linear algebra: NumPy's own gufuncs take stacks of matrices.

_MATRIX = [
    np.linalg.cholesky, np.linalg.det, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.inv, np.linalg.matrix_power,
    np.linalg.pinv, np.linalg.qr, np.linalg.slogdet, np.linalg.svd, np.linalg.svdvals, np.linalg.trace,
]  # fmt: skip


def _matrix(function: Any) -> Rule:
    def rule(*args: Any, **kwargs: Any) -> Any:
        if not _live_first(args, kwargs) or args[0].ndim < 2:
            return NotImplemented
        result = function(args[0].value, *lower(args[1:]), **lower(kwargs))
        if not isinstance(result, tuple):
            return _of(result)
        return type(result)(*map(_of, result)) if hasattr(result, "_fields") else tuple(map(_of, result))

    return rule


for _f in _MATRIX:
    BatchArray.rules[_f] = _matrix(_f)


@_rule(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    a, b = BatchArray.asarray(a), BatchArray.asarray(b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        return NotImplemented
    rows = _rows((a, b))
    right = _spread(b, rows)
    result = np.linalg.solve(_spread(a, rows), right[..., None] if b.ndim == 1 else right)
    return _of(result[..., 0] if b.ndim == 1 else result)


@_rule(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is not None:
        return _of(np.linalg.norm(x.value, ord, _shifted(axis, x.ndim), keepdims))
    if ord is None and not keepdims:
        flat: Any = np.ravel(x)
        return _of(np.linalg.norm(flat.value, axis=1))
    return NotImplemented


@_rule(np.trace)
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    return store(out, np.sum(np.diagonal(a, offset, axis1, axis2), -1, dtype))

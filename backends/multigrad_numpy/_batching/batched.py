"""The batched array: NumPy's own arithmetic on many rows at once, along a hidden leading axis.

It is the user's real arithmetic, without compilation, and views and in-place writes are NumPy's own. An operation
without a rule in ``rules`` runs once per row, so every function of NumPy works; a branch on which the rows
disagree raises ``Diverged``, and then the whole function has to be run row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided

from multigrad_numpy._batching.loop import by_row, take_row
from multigrad_numpy._ducks.duck import DuckArray, _getitem, ducks, is_live, lower
from multigrad_numpy._ducks.memory import Memory, Plain, Positions, counting, shares
from multigrad_numpy._ducks.refusal import Diverged, refusal
from multigrad_numpy._ducks.shared import SHARED
from multigrad_numpy._ducks.writing import WRITERS, at, target

Rule = Callable[..., Any]


def is_basic(index: Any) -> bool:
    """Whether ``index`` is made of integers, slices, None and Ellipsis alone."""
    items = index if type(index) is tuple else (index,)
    return all(i is None or i is Ellipsis or type(i) in (int, slice) or isinstance(i, np.integer) for i in items)


class BatchArray(DuckArray):
    """See the module's docstring. A live value has shape (rows, *shape)."""

    __slots__ = ()
    handlers = SHARED
    rules: ClassVar[dict[Any, Rule]] = {}
    calls_back = frozenset({np.apply_along_axis, np.apply_over_axes})

    @property
    def live_shape(self) -> tuple[int, ...]:
        return self._value.shape[1:]  # type: ignore[no-any-return]

    @property
    def rows(self) -> int:
        """The number of rows of a live array."""
        return len(self.value)

    @property
    def ghost(self) -> Plain:
        """NumPy's own array with the layout of one row."""
        if self._ghost is None:
            row = self._value[0]
            ghost = np.empty_like(row, bool)
            if [s // row.itemsize for s in row.strides] != list(ghost.strides):
                self._value = self._memory.value = np.ascontiguousarray(self._value)
                ghost = np.empty(row.shape, bool)
            self._ghost = self._memory._ghost = ghost
        return self._ghost

    @classmethod
    def of(cls, value: Any) -> Self:
        """A live array; ``value`` has the rows along its first axis."""
        return cls(Memory(value, True), value, None, value.ndim == 1)

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int and self._memory.live and not self._scalar:  # the commonest case, without detours
            ghost, value = self.ghost[index], self.value[:, index]
            return BatchArray(self._memory, value, ghost, False, self._frozen) if value.ndim > 1 else self.of(value)
        return super().__getitem__(index)

    def _gather(self, positions: Positions) -> Any:
        return np.take(self.value.reshape(self.rows, -1), positions, axis=1)

    def _moved(self, function: Callable[..., Any], args: Any, kwargs: Any, result: Plain) -> Any:
        if function is _getitem and is_basic(args[0]):
            index = args[0] if type(args[0]) is tuple else args
            return self.value[(slice(None), *index)]
        if isinstance(result, np.ndarray) and shares(result, self.ghost):
            return _strided(self._memory.value, self._memory._ghost, result)
        return super()._moved(function, args, kwargs, result)

    def _reread(self) -> Any:
        memory = self._memory
        if self._ghost is None or self._ghost is memory._ghost:
            return memory.value
        return _strided(memory.value, memory._ghost, self._ghost)

    def _go_live(self, like: Any) -> None:
        rows = next(duck for duck in ducks(like) if duck._memory.live).value.shape[0]
        memory, plain = self._memory, self._memory.value
        flat = np.empty((rows, plain.size), plain.dtype)
        memory.value = as_strided(flat, (rows, *plain.shape), (flat.strides[0], *plain.strides))
        memory.value[...] = plain
        memory.live = True
        memory.version += 1

    def _write(self, index: Any, value: Any) -> None:
        if is_live(index):
            for row in range(self.rows):
                self.value[row, ...][take_row(index, row)] = take_row(value, row)
            return
        index, value = lower(index), self.asarray(value) if is_live(value) else lower(value)
        if is_live(value) and value.dtype.kind == "c" and self.dtype.kind != "c":
            raise refusal("a complex value is stored into a real array", "make the array complex")
        items = index if type(index) is tuple else (index,)
        if is_basic(index) or len(items) == 1:
            self._write_at((slice(None), *items), value)
        else:
            places = counting(self.shape)[index]
            flat: Any = np.ravel(self)
            if np.shares_memory(flat.value, self.value):
                flat._write_at((slice(None), places), value)
            else:
                flat._write_at((slice(None), places), value)
                self.value[...] = flat.value.reshape(self.value.shape)

    def _write_at(self, index: Any, value: Any) -> None:
        if not is_live(value):
            self.value[index] = value
            return
        room = self.value[index].ndim - 1
        data = value.value
        while data.ndim - 1 > room and data.shape[1] == 1:
            data = data[:, 0]
        self.value[index] = data.reshape(data.shape[0], *(1,) * (room + 1 - data.ndim), *data.shape[1:])

    def _agreed_live(self, convert: Callable[[Any], Any], call: str) -> Any:
        answers = [convert(row) for row in self.value]
        if any(answer != answers[0] for answer in answers[1:]):
            raise Diverged(f"{call} depends on the input and differs from row to row")
        return answers[0]

    def _cast(self, dtype: np.dtype[Any]) -> Any:
        return type(self)(Memory(self.value.astype(dtype), live=True), scalar=self._scalar)

    def duplicate(self) -> Self:
        if not self._memory.live:
            return self.plain(self.ghost.copy())
        return type(self)(Memory(self.value.copy(), live=True))

    def _complex_part(self, name: str) -> Any:
        return getattr(self.value, name).copy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Plain:
        if self._memory.live and dtype is not None and np.dtype(dtype) != object:
            raise Diverged("a conversion to a plain NumPy array has no batched form")
        return super().__array__(dtype, copy)

    def __float__(self) -> float:
        return float(self._agreed(float, "float()"))

    def __complex__(self) -> complex:
        return complex(self._agreed(complex, "complex()"))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if not kwargs and method == "__call__":
            data = _as_matrices(*inputs) if ufunc is np.matmul else _aligned_quickly(inputs)
            if data is not None and (ufunc is np.matmul or ufunc.nout == 1 and ufunc.signature is None):
                return self.of(ufunc(*data))
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    @classmethod
    def call_live(cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rule = cls.rules.get(function)
        if rule is not None:
            result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if function in WRITERS and not target(args[0])._memory.live:
            args[0]._go_live((args, kwargs))
        return by_row(cls, function, args, kwargs)

    @classmethod
    def call_ufunc(cls, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if method == "__call__":
            return (
                cls._elementwise(ufunc, inputs, kwargs) if ufunc.signature is None else cls._core(ufunc, inputs, kwargs)
            )
        if method == "at" and not is_live(inputs[1]):
            return at(cls, ufunc, *inputs)
        if method == "at" and not target(inputs[0])._memory.live:
            inputs[0]._go_live(inputs)
        rule = cls.rules.get(method)
        result = rule(ufunc, *inputs, **kwargs) if rule is not None else NotImplemented
        return by_row(cls, getattr(ufunc, method), inputs, kwargs) if result is NotImplemented else result

    @classmethod
    def _elementwise(cls, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = kwargs.pop("out", None)
        outs = () if out is None else out if isinstance(out, tuple) else (out,)
        for array in outs:
            if array is not None and not target(array)._memory.live:
                array._go_live((inputs, kwargs))
        where = (kwargs.pop("where"),) if is_live(kwargs.get("where")) else ()
        data = align(cls, (*inputs, *where, *(a for a in outs if a is not None)))
        given = dict(zip(("where",), data[len(inputs) : len(inputs) + len(where)], strict=False))
        if outs:
            given["out"] = tuple(None if a is None else a.value for a in outs)
        result = ufunc(*data[: len(inputs)], **kwargs, **given)
        if outs and all(a is not None for a in outs):
            return outs[0] if len(outs) == 1 else outs
        if type(result) is tuple:
            made = (cls.of(r) for r in result)
            return tuple(a if a is not None else m for a, m in zip(outs or (None,) * len(result), made, strict=True))
        return cls.of(result)

    @classmethod
    def _core(cls, ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A generalised ufunc: its core axes are the last ones, its loop axes are aligned like those of a ufunc."""
        out = kwargs.pop("out", None)
        rule = cls.rules.get(ufunc)
        result = rule(*inputs, **kwargs) if rule is not None else NotImplemented
        if result is NotImplemented:
            result = by_row(cls, ufunc, inputs, kwargs)
        if out is None or (type(out) is tuple and out[0] is None):
            return result
        array = target(out[0] if type(out) is tuple else out)
        array[...] = result
        return array


def _strided(value: Any, ghost: Plain, view: Plain) -> Any:
    """The view of ``value`` that relates to it, row by row, as ``view`` to ``ghost``."""
    offset = (view.__array_interface__["data"][0] - ghost.__array_interface__["data"][0]) // ghost.itemsize
    first = _index_of(offset, [s // ghost.itemsize for s in ghost.strides], ghost.shape)
    corner = value[(slice(None), *(slice(i, None) for i in first))]
    unit = value.itemsize
    return as_strided(
        corner, (len(value), *view.shape), (value.strides[0], *(s // ghost.itemsize * unit for s in view.strides))
    )


def _index_of(offset: int, strides: Sequence[int], shape: Sequence[int]) -> list[int]:
    """The index of the element at ``offset``, counted in elements, of an array with these strides."""
    index = [0] * len(shape)
    for axis in sorted(range(len(shape)), key=lambda a: -abs(strides[a])):
        if shape[axis] > 1 and strides[axis]:
            index[axis], offset = divmod(offset, strides[axis])
    return index


def _aligned_quickly(inputs: tuple[Any, ...]) -> list[Any] | None:
    """The operands as ``align`` makes them, in the commonest case: some live, the others arrays and numbers."""
    data, depths, live = [], [], False
    for item in inputs:
        kind = type(item)
        if kind is BatchArray:
            if item._memory.live:
                live = True
                value = item.value
                data.append(value)
                depths.append(1 - value.ndim)  # negative, to tell them below
                continue
            item = item._ghost
        elif kind is not float and kind is not int and (kind is not np.ndarray or item.dtype == object):
            return None
        data.append(item)
        depths.append(item.ndim if kind is BatchArray or kind is np.ndarray else 0)
    if not live:
        return None
    depth = max(map(abs, depths))
    for k, own in enumerate(depths):
        if type(inputs[k]) is BatchArray and inputs[k]._memory.live and -own < depth:
            shape = data[k].shape
            data[k] = data[k].reshape(shape[0], *(1,) * (depth + own), *shape[1:])
    return data


def _as_matrices(left: Any, right: Any) -> tuple[Any, Any] | None:
    """The factors of one product of matrices for all rows: of a constant matrix and a live vector."""
    if type(left) is not BatchArray or type(right) is not BatchArray or left._memory.live is right._memory.live:
        return None
    if left._memory.live:
        vectors, matrix = left.value, right.ghost
        return (vectors, matrix) if vectors.ndim == 2 and matrix.ndim == 2 else None
    vectors, matrix = right.value, left.ghost
    return (vectors, matrix.T) if vectors.ndim == 2 and matrix.ndim == 2 else None


def align(cls: type[BatchArray], operands: Sequence[Any]) -> list[Any]:
    """The operands' data with the rows in front, and as many axes as broadcasting needs between."""
    items = [
        a if isinstance(a, (float, int, complex, DuckArray)) else cls.asarray(a) if is_live(a) else np.asarray(a)
        for a in operands
    ]
    depth = max(a.ndim if hasattr(a, "ndim") else 0 for a in items)
    return [_padded(a, depth) if is_live(a) else lower(a) for a in items]


def _padded(array: Any, depth: int) -> Any:
    data = array.value
    missing = depth + 1 - data.ndim
    return data if missing == 0 else data.reshape(data.shape[0], *(1,) * missing, *data.shape[1:])

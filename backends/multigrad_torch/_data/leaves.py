"""The leaves of the inputs: which are checked, how each is made of numbers, and what is held fixed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array, Leaf
from multigrad.errors import InvalidUse
from multigrad_torch._data import sparse


class Slot:
    """A checked tensor of the user's and its place in the flat vector.

    Attributes:
        leaf: what the core knows of it.
        path: what it is called.
        tensor: the user's own tensor, never written to.
        given: its dtype.
        dtype: the dtype that numbers are made in: the given one, or float64 for it.
    """

    def __init__(self, path: str, tensor: Tensor, start: int) -> None:
        _refuse_exotic(path, tensor)
        self.tensor = tensor
        self.given = self.dtype = tensor.dtype
        self.sparse = tensor.layout != torch.strided
        self.subclass = type(tensor) not in (Tensor, torch.nn.Parameter)
        numbers = sparse.stored(tensor) if self.sparse else tensor
        self.path = f"{path}.values()" if self.sparse else path
        self.leaf = Leaf(self.path, tuple(numbers.shape), str(tensor.dtype).removeprefix("torch."), start)
        self.slice, self.size = self.leaf.slice, self.leaf.size
        self.strides = _own_strides(numbers)
        self._ordinary = tensor.device.type == "cpu" and numbers.is_contiguous() and numbers.numel() > 0

    @cached_property
    def places(self) -> Tensor:
        """Where the stored numbers of a sparse tensor lie in its dense form."""
        return sparse.places(self.tensor).flatten()

    @property
    def is_part(self) -> bool:
        """Whether the user's tensor is a view of a larger one, which copies of it have nothing of."""
        tensor = self.tensor
        return not self.sparse and tensor.untyped_storage().nbytes() > tensor.numel() * tensor.itemsize

    def values(self, rows: Array) -> Tensor:
        """Fresh numbers of the user's strides and device: (n,) -> shape, (b, n) -> (b,) + shape."""
        leaf, many = self.leaf, rows.shape[:-1]
        part: Any = rows[..., self.slice]
        if self._ordinary and self.dtype == torch.float64:
            return torch.from_numpy(part.reshape(many + leaf.shape).copy())
        part = np.array(part, order="C")
        part = part.view(np.complex128) if leaf.complex else part
        span = 1 + sum((k - 1) * s for k, s in zip(leaf.shape, self.strides, strict=True)) if self.size else 0
        strides = (span,) * len(many) + self.strides
        made = torch.empty_strided(many + leaf.shape, strides, dtype=self.dtype, device=self.tensor.device)
        return made.copy_(torch.from_numpy(part.reshape(many + leaf.shape)))

    def hand(self, values: Tensor) -> Tensor:
        """What the user's function takes, made of fresh numbers: a tensor of the same type and layout, no graph."""
        if self.sparse:
            return sparse.like(self.tensor, values)
        if self.subclass:
            with torch.no_grad():
                return self.tensor.detach().to(self.dtype, copy=True).copy_(values)
        return torch.nn.Parameter(values, False) if type(self.tensor) is torch.nn.Parameter else values

    def numbers(self, tensor: Tensor) -> Array:
        """The flat numbers of such a tensor, shape (size,)."""
        return flat_numbers(sparse.stored(tensor) if self.sparse else tensor)

    def changed(self, handed: Any, row: Array) -> bool:
        """Whether what was made of the flat point ``row`` is no longer that."""
        if handed.shape != self.tensor.shape or handed.layout != self.tensor.layout:
            return True
        return not np.array_equal(self.numbers(handed), row[self.slice], equal_nan=True)

    def gradient(self, tensor: Tensor | None, rows: tuple[int, ...] = ()) -> Array:
        """The flat numbers of a gradient with respect to such a tensor, of whatever layout; shape rows + (size,)."""
        if tensor is None:
            return np.zeros((*rows, self.size))
        if self.sparse:
            tensor = sparse.dense(tensor.detach()).reshape(*rows, -1)[..., self.places]
        return flat_numbers(sparse.dense(tensor), rows)


@dataclass(frozen=True)
class Fixed:
    """An input that is held fixed, and why. A fresh copy of it goes into every call."""

    path: str
    value: Any
    reason: str

    def copy(self) -> Any:
        """A tensor or array of its own; anything else is the user's object itself."""
        if isinstance(self.value, Tensor):
            return copied(self.value.detach())
        return self.value.copy() if isinstance(self.value, np.ndarray) else self.value

    def changed(self, handed: Any, _: Array) -> bool:
        """Whether a copy is no longer what was handed out, at whatever point."""
        if isinstance(self.value, Tensor):
            return not same(handed, self.value)
        return isinstance(self.value, np.ndarray) and not np.array_equal(handed, self.value)

    def __str__(self) -> str:
        return f"{self.path} ({self.reason})"


def sort_out(leaves: Iterable[tuple[str, Any]]) -> list[Slot | Fixed]:
    """Decide for every leaf of the inputs whether it is checked or held fixed."""
    found = list(leaves)
    differentiable = [leaf for _, leaf in found if _is_differentiable(leaf)]
    wanted = [leaf for leaf in differentiable if leaf.requires_grad] or differentiable
    ids, start = {id(leaf) for leaf in wanted}, 0
    sorted_out: list[Slot | Fixed] = []
    for path, leaf in found:
        if id(leaf) in ids:
            slot = Slot(path, leaf, start)
            sorted_out.append(slot)
            start = slot.leaf.slice.stop
        else:
            sorted_out.append(Fixed(path, leaf, _reason(path, leaf)))
    return sorted_out


def _is_differentiable(leaf: object) -> bool:
    return isinstance(leaf, Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _reason(path: str, leaf: object) -> str:
    if isinstance(leaf, Tensor):
        _refuse_exotic(path, leaf)
        return "no requires_grad" if _is_differentiable(leaf) else str(leaf.dtype).removeprefix("torch.")
    if hasattr(type(leaf), "__torch_function__") and getattr(leaf, "requires_grad", False):
        raise InvalidUse(
            "unsupported_tensor",
            f"{path} is a {type(leaf).__name__}, which imitates a tensor by __torch_function__ but is none; "
            "pass the tensors that it holds and make it of them inside the function",
        )
    return "None" if leaf is None else type(leaf).__name__


def _refuse_exotic(path: str, tensor: Tensor) -> None:
    traits = {
        "a meta tensor, which holds no numbers": tensor.is_meta,
        "a quantized tensor": tensor.is_quantized,
        "a nested tensor": tensor.is_nested,
        "an MKLDNN tensor": tensor.is_mkldnn,
    }
    for trait, present in traits.items():
        if present:
            raise InvalidUse(
                "unsupported_tensor",
                f"{path} is {trait}; pass an ordinary floating tensor and convert it inside the function",
            )


def _own_strides(tensor: Tensor) -> tuple[int, ...]:
    """The tensor's strides if no two entries share memory, else those of a contiguous one."""
    if tensor.is_contiguous():
        return tensor.stride()
    reach = 1
    for stride, size in sorted((s, k) for s, k in zip(tensor.stride(), tensor.shape, strict=True) if k > 1):
        if stride < reach:
            return torch.empty(tensor.shape, device="meta").stride()
        reach += stride * (size - 1)
    return tensor.stride()


def copied(tensor: Tensor) -> Tensor:
    """A copy (with its graph) that keeps the strides, gaps included, if no two entries share memory."""
    made = tensor.clone()
    if tensor.layout != torch.strided or made.stride() == tensor.stride():
        return made
    return torch.empty_strided(tensor.shape, _own_strides(tensor), dtype=tensor.dtype, device=tensor.device).copy_(
        tensor
    )


def flat_numbers(tensor: Tensor, rows: tuple[int, ...] = ()) -> Array:
    """A tensor's numbers as float64, complex ones as pairs; shape rows + (size,). May share memory with it."""
    array: Any = _widest(tensor).numpy(force=True)
    return np.ascontiguousarray(array).reshape((*rows, tensor.numel() // math.prod(rows))).view(np.float64)


def _widest(tensor: Tensor) -> Tensor:
    if tensor.dtype in (torch.float64, torch.complex128):
        return tensor
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def comparable(tensor: Tensor) -> Tensor:
    """The same numbers in a dtype that torch can compare: it cannot compare complex or float of 32 or 8 bits."""
    return _widest(tensor) if tensor.dtype.itemsize == (4 if tensor.is_complex() else 1) else tensor


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers; NaN equals NaN."""
    if one.shape != other.shape or one.layout != other.layout:
        return False
    one, other = sparse.dense(one.detach()), sparse.dense(other.detach())
    return torch.equal(one, other) or bool(((one == other) | one.isnan() & other.isnan()).all())

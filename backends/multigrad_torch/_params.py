"""Tensors that the function closes over and that are checked too, and how other values take their place.

A plain call keeps the user's tensor object and exchanges its ``.data``, so whoever holds the object sees the new
values, be it a closure, a cache or another module. That is refused inside vmap; several rows at once therefore
exchange the entries of the modules that own the parameters, which is done only if nobody else was found to hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array
from multigrad.errors import InvalidUse
from multigrad_torch._autograd.dual import dual
from multigrad_torch._data.leaves import Slot
from multigrad_torch._data.tree import Tree


def wanted(fn: Callable[..., Any], option: Any, reached: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors to check besides the inputs, by path; none twice."""
    named: list[tuple[str, Tensor]] = []
    if isinstance(fn, torch.nn.Module):
        named += _of_module(fn, "")
    if isinstance(option, str):
        named += _captured(option, reached)
    elif isinstance(option, torch.nn.Module):
        named += _of_module(option, "")
    elif option is not None:
        named += _of_tree(option)
    once: dict[int, tuple[str, Tensor]] = {}
    for path, tensor in named:
        once.setdefault(id(tensor), (path, tensor))
    return dict(once.values())


def _of_module(module: torch.nn.Module, prefix: str) -> list[tuple[str, Tensor]]:
    return [(f'params["{prefix}{name}"]', p) for name, p in module.named_parameters() if p.requires_grad]


def _captured(option: str, reached: Mapping[str, Any]) -> list[tuple[str, Tensor]]:
    if option != "captured":
        raise InvalidUse("bad_params", f'params={option!r} means nothing; say "captured", or pass a module or tensors')
    named = []
    for name, value in reached.items():
        if isinstance(value, torch.nn.Module):
            named += _of_module(value, f"{name}." if name else "")
        elif isinstance(value, Tensor) and value.requires_grad:
            named.append((f'params["{name}"]', value))
    return named


def _of_tree(option: Any) -> list[tuple[str, Tensor]]:
    leaves = Tree(list(option) if isinstance(option, Iterator) else option, "params").leaves
    for path, leaf in leaves:
        if not isinstance(leaf, Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
            kind = leaf.dtype if isinstance(leaf, Tensor) else type(leaf).__name__
            raise InvalidUse("bad_params", f"{path} is {kind}; params takes floating or complex tensors, or a module")
    required = [(path, leaf) for path, leaf in leaves if leaf.requires_grad]
    return required or leaves


class Params:
    """The checked tensors that are no inputs.

    Attributes:
        slots: one per tensor, in order.
        batchable: whether several rows at once may exchange them.
        current: the tensors that the function finds in their places.
    """

    def __init__(self, slots: Sequence[Slot], known: Sequence[Any]) -> None:
        self.slots = slots
        self.current: Sequence[Tensor] = [slot.tensor for slot in slots]
        self._tensors = self.current
        self._data = [slot.tensor.data for slot in slots]
        modules = [value for value in known if isinstance(value, torch.nn.Module)]
        self._holders = [_holders(tensor, modules) for tensor in self._tensors]
        loose = {id(value) for value in known if isinstance(value, Tensor)}
        self.batchable = all(self._holders) and not any(id(tensor) in loose for tensor in self._tensors)

    def here(self, x: Array) -> bool:
        """Whether the user's tensors hold what they hold at the point ``x``, shape (n,), in the dtype of the evaluation.

        The gradient of a leaf has its dtype, so it is rounded where that is of low precision. That of another tensor
        has the dtype of the operation that made it, whatever the tensor holds now.
        """
        return all(
            (slot.dtype is slot.tensor.dtype or not slot.tensor.is_leaf)
            and np.array_equal(slot.numbers(slot.tensor), x[slot.slice], equal_nan=True)
            for slot in self.slots
        )

    @contextmanager
    def at(self, values: Sequence[Tensor]) -> Iterator[None]:
        """The user's tensors hold other values."""
        gradients = [tensor.grad if tensor.is_leaf else None for tensor in self._tensors]
        try:
            for slot, value, gradient in zip(self.slots, values, gradients, strict=True):
                _exchange(slot.tensor, slot.hand(value), gradient)
            yield
        finally:
            for tensor, data, gradient in zip(self._tensors, self._data, gradients, strict=True):
                _exchange(tensor, data, gradient)

    @contextmanager
    def along(self, values: Sequence[Tensor], tangents: Sequence[Tensor]) -> Iterator[None]:
        """The user's tensors hold other values and carry tangents. The context of a dual level must be open."""
        with self.at(values):
            for tensor, tangent in zip(self._tensors, tangents, strict=True):
                # The only way to give a tensor that exists a tangent is to write a dual number into it.
                with torch.no_grad(), torch.autograd.grad_mode._unsafe_preserve_version_counter(tensor):
                    tensor.copy_(dual(tensor.detach().clone(), tangent))
            yield

    @contextmanager
    def replaced(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """The modules that own the parameters hold other tensors in their places."""
        try:
            for holders, tensor in zip(self._holders, tensors, strict=True):
                for places, name in holders:
                    places[name] = tensor
            self.current = tensors
            yield
        finally:
            self.current = self._tensors
            for holders, tensor in zip(self._holders, self._tensors, strict=True):
                for places, name in holders:
                    places[name] = tensor

    @contextmanager
    def tracked(self) -> Iterator[None]:
        """All of them require a gradient."""
        frozen = [tensor for tensor in self._tensors if not tensor.requires_grad]
        try:
            for tensor in frozen:
                tensor.requires_grad_(True)
            yield
        finally:
            for tensor in frozen:
                tensor.requires_grad_(False)


def _exchange(tensor: Tensor, data: Tensor, gradient: Tensor | None) -> None:
    """Give the tensor other numbers; where their dtype is another one, ``gradient`` in that dtype goes with them."""
    if tensor.dtype is data.dtype or not tensor.is_leaf:
        tensor.data = data
        return
    tensor.grad = None
    tensor.data = data
    tensor.grad = None if gradient is None else gradient.to(data.dtype)


def _holders(tensor: Tensor, modules: Sequence[torch.nn.Module]) -> list[tuple[dict[str, Any], str]]:
    owners = {id(inner): inner for module in modules for inner in module.modules()}.values()
    return [
        (places, name)
        for owner in owners
        for places in (owner._parameters, owner._buffers)
        for name, value in places.items()
        if value is tensor
    ]

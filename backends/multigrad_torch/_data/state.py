"""What a call may leave behind: random numbers drawn, buffers written, attributes rebound. Put back after each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from multigrad.errors import InvalidUse
from multigrad_torch._data.leaves import same
from multigrad_torch._data.module_calls import module_calls


class State:
    """A context in which the user's function runs: it begins as at the first call, and ends as it was found.

    Covers the generators of torch, the attributes, buffers and parameters of the modules that the function reaches
    or calls, and the tensors that it captures. Not reentrant.

    Attributes:
        written: whether a tensor had been written to in place when the context last ended.
        rebound: whether a module's attribute had been changed when the context last ended.
    """

    def __init__(
        self, modules: Iterable[torch.nn.Module], tensors: Iterable[Tensor], generators: Iterable[Any]
    ) -> None:
        self._generators = [torch.default_generator, *_of_devices(), *generators]
        self.random = [generator.get_state() for generator in self._generators]
        self._found = self.random
        self._modules: dict[int, _ModuleState] = {}
        self._tensors: dict[int, _TensorState] = {}
        self.written = self.rebound = False
        for module in modules:
            self._watch(module)
        for tensor in tensors:
            self._keep(tensor)

    def _watch(self, module: torch.nn.Module) -> None:
        for inner in module.modules():
            if id(inner) not in self._modules:
                self._modules[id(inner)] = _ModuleState(inner)
                for tensor in (*inner._parameters.values(), *inner._buffers.values()):
                    self._keep(tensor)

    def _keep(self, tensor: Tensor | None) -> None:
        if tensor is not None and is_lazy(tensor):
            raise InvalidUse(
                "uninitialized_parameter", "a module has lazy parameters without a shape; call it once before the check"
            )
        if tensor is not None and not (tensor.is_meta or tensor.is_quantized or tensor.is_nested or tensor.is_mkldnn):
            self._tensors.setdefault(id(tensor), _TensorState(tensor))

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors that are put back."""
        return [kept.tensor for kept in self._tensors.values()]

    @contextmanager
    def learning(self) -> Iterator[None]:
        """While it lasts, every module that is called is watched from then on, wherever the function got it from."""
        try:
            with module_calls(self._watch):
                yield
        finally:
            for tensor in self._tensors.values():
                tensor.learn()

    def __enter__(self) -> Self:
        self._found = [generator.get_state() for generator in self._generators]
        self.set_random(self.random)
        return self

    def __exit__(self, *_: object) -> None:
        self.set_random(self._found)
        self.restore()

    def restore(self) -> None:
        """Put back modules and tensors."""
        modules = [module.restore() for module in self._modules.values()]
        tensors = [tensor.restore() for tensor in self._tensors.values()]
        self.rebound, self.written = any(modules), any(tensors)

    def get_random(self) -> list[Tensor]:
        """Where the generators stand."""
        return [generator.get_state() for generator in self._generators]

    def set_random(self, states: list[Tensor]) -> None:
        """Put the generators where they stood."""
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)


def _of_devices() -> Iterable[torch.Generator]:
    """Those of CUDA devices, if the process uses any."""
    return torch.cuda.default_generators if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]


class _ModuleState:
    """The attributes of one module, and the plain dicts and lists among them (its buffers, a cache), by reference."""

    def __init__(self, module: torch.nn.Module) -> None:
        own: list[Any] = [module.__dict__]
        own += [value for value in module.__dict__.values() if type(value) in (dict, list)]
        self._kept = [(holder, type(holder)(holder), _identities(holder)) for holder in own]

    def restore(self) -> bool:
        changed = [(holder, saved) for holder, saved, ids in self._kept if _identities(holder) != ids]
        for holder, saved in changed:
            holder.clear()
            holder.update(saved) if isinstance(holder, dict) else holder.extend(saved)
        return bool(changed)


def _identities(holder: Any) -> list[Any]:
    return [*holder, *map(id, holder.values())] if type(holder) is dict else [*map(id, holder)]


class _TensorState:
    """The contents of one tensor.

    Copied back if its version or address has moved, or always if it was once seen to be written to past the version
    counter (batch norm's running statistics, ``.data``).
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._data = tensor.data
        self._contents = tensor.detach().clone()
        self._mark = _mark(tensor)
        self._volatile = False

    def learn(self) -> None:
        self._volatile = not same(self.tensor, self._contents)

    def restore(self) -> bool:
        if not self._volatile and _mark(self.tensor) == self._mark:
            return False
        self.tensor.data = self._data
        self._data.copy_(self._contents)
        self._mark = _mark(self.tensor)
        return True


def _mark(tensor: Tensor) -> tuple[int, int]:
    version = 0 if tensor.is_inference() else tensor._version
    return version, tensor.data_ptr() if tensor.layout == torch.strided else 0

"""One set of inputs, handed to every framework as arrays of its own, without a copy where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from multigrad._arguments import dtype_of
from multigrad.backends import Backend
from multigrad.consistency.matching import Axes
from multigrad.errors import InvalidUse
from multigrad.tree import map_leaves, walk

WIDER = {"float16": np.float64, "bfloat16": np.float64, "float32": np.float64, "complex64": np.complex128}


def hand_over(
    inputs: tuple[Any, ...], backend: Backend, axes: Mapping[str, Axes], wide: bool = False
) -> tuple[Any, ...]:
    """The inputs with arrays of the backend's framework in the places of arrays; all else as it is.

    Args:
        inputs: the positional arguments: nested arrays of any framework.
        backend: whose arrays to make.
        axes: the order in which the backend wants the axes, by path.
        wide: make float64 of floating arrays of lower precision.
    """
    # An adapter need not make arrays of its own: NumPy's serve those that don't.
    make: Callable[[Any], Any] = getattr(backend, "array", as_numpy)
    paths = iter([path for path, _ in walk(inputs, "inputs")])

    def change(value: Any) -> Any:
        path = next(paths)
        if not is_array(value):
            return value
        if path in axes and len(axes[path]) != np.ndim(value):
            raise InvalidUse("bad_mapping", f"mapping: {path} has {np.ndim(value)} axes, their order is {axes[path]}")
        if path in axes or (wide and dtype_of(value) in WIDER):
            value = as_numpy(value)
            value = np.ascontiguousarray(np.transpose(value, axes[path])) if path in axes else value
            value = value.astype(WIDER.get(dtype_of(value), value.dtype)) if wide else value
        return value if backend.recognises(value) and not isinstance(value, np.generic) else make(shareable(value))

    changed: tuple[Any, ...] = map_leaves(change, inputs)
    return changed


def is_array(value: object) -> bool:
    """Whether this is an array of numbers of some framework, rather than a Python number or anything else."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "biufc"
    return hasattr(value, "__dlpack__")


def shareable(value: Any) -> Any:
    """An array that can be exported: without a graph of derivatives around it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    return value.detach() if hasattr(value, "detach") else value


def as_numpy(value: Any) -> npt.NDArray[Any]:
    """A NumPy array of any framework's array."""
    shared = shareable(value)
    return shared if isinstance(shared, np.ndarray) else np.from_dlpack(shared)

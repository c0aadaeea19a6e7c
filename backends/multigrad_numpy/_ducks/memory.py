"""What an array and its views share, and where in it a view lies.

NumPy itself answers every question about layout. A *ghost* is a real ndarray of the same shape and strides as the
array that it stands for (its contents do not matter); indexing or reshaping the ghost tells whether NumPy would give
a view or a copy, a scalar or an array, or an IndexError; and its address tells which elements a view refers to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Plain = npt.NDArray[Any]
Positions = npt.NDArray[np.intp]


class Memory:
    """A buffer that arrays refer to.

    Attributes:
        value: a NumPy array while ``live`` is false; afterwards what the kind of array computes with.
        live: whether it depends on the function's inputs.
        version: counts the writes that views cannot see by themselves.
        origin: the names of the inputs that it depends on.
    """

    __slots__ = ("_ghost", "live", "origin", "value", "version")

    def __init__(
        self, value: Any, live: bool, origin: frozenset[str] = frozenset(), ghost: Plain | None = None
    ) -> None:
        self.value = value
        self.live = live
        self.version = 0
        self.origin = origin
        self._ghost = ghost if live else value

    def ghost(self, shape: tuple[int, ...]) -> Plain:
        """The ghost of the whole buffer, whose shape is ``shape``; memory that is never touched costs nothing."""
        if self._ghost is None:
            self._ghost = np.empty(shape, bool)
        return self._ghost

    def positions(self, view: Plain) -> Positions:
        """Where the elements of ``view``, a view of the ghost, lie in the flattened buffer (C order)."""
        ghost = self._ghost
        assert ghost is not None
        if view is ghost:
            return counting(ghost.shape)
        numbers = np.empty_like(ghost, np.intp)
        numbers[...] = counting(ghost.shape)
        offset = (view.__array_interface__["data"][0] - ghost.__array_interface__["data"][0]) // ghost.itemsize
        strides = tuple(s // ghost.itemsize * numbers.itemsize for s in view.strides)
        flat = numbers.ravel("K")
        return np.ndarray(view.shape, np.intp, flat, offset * numbers.itemsize, strides)


def shares(view: Plain, ghost: Plain) -> bool:
    """Whether ``view`` refers to the memory of ``ghost``."""
    return view is ghost or (view.base is not None and np.may_share_memory(view, ghost))


def _counting(shape: tuple[int, ...]) -> Positions:
    numbers = np.arange(math.prod(shape)).reshape(shape)
    numbers.flags.writeable = False
    return numbers


_counting_small = lru_cache(maxsize=64)(_counting)


def counting(shape: tuple[int, ...]) -> Positions:
    """0, 1, 2, ... in C order, read-only."""
    return _counting_small(shape) if math.prod(shape) <= 1 << 14 else _counting(shape)


def together(origins: Iterable[frozenset[str]]) -> frozenset[str]:
    """The union; mostly all are the same set."""
    return frozenset().union(*origins)

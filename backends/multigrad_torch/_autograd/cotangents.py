"""Cotangents in the layouts that a backward meets in real use: expanded where constant, else not contiguous."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array, Leaf
from multigrad_torch._data.leaves import comparable


class Cotangent:
    """The cotangent of one output, from a row of the flat one.

    A constant one is a single number expanded, which is what ``.sum().backward()`` gives; any other has strides.

    Attributes:
        leaf: the output that it belongs to.
        tensor: what is handed to the engine.
    """

    def __init__(self, leaf: Leaf, like: Tensor, row: Array, expand: bool = True) -> None:
        self.leaf = leaf
        self._numbers = several(leaf, like, row)
        first = row[leaf.slice][: 1 + leaf.complex]
        if expand and leaf.size and bool((row[leaf.slice].reshape(-1, len(first)) == first).all()):
            self.tensor = self._numbers.flatten()[0].clone().expand(leaf.shape)
        else:
            self.tensor = self._numbers.new_zeros((*leaf.shape, 2))[..., 0].copy_(self._numbers)

    @property
    def written(self) -> bool:
        """Whether the tensor no longer holds what was handed out."""
        return not torch.equal(comparable(self.tensor), comparable(self._numbers))


def several(leaf: Leaf, like: Tensor, rows: Array) -> Tensor:
    """The cotangents of one output from a row or several, of its dtype: shape, or (k,) + shape."""
    part: Any = np.array(rows[..., leaf.slice], dtype=np.float64, order="C")
    part = part.view(np.complex128) if leaf.complex else part
    tensor = torch.from_numpy(part.reshape(rows.shape[:-1] + leaf.shape))
    return tensor if tensor.dtype == like.dtype and like.device.type == "cpu" else tensor.to(like.device, like.dtype)

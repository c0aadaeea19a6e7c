"""Dual numbers: a primal with its tangent."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import forward_ad

dual: Callable[[Tensor, Tensor], Tensor] = forward_ad.make_dual
_unpack: Callable[[Tensor], tuple[Tensor, Tensor | None]] = forward_ad.unpack_dual


def tangent_in(tensor: Tensor) -> Tensor | None:
    """The tangent that a tensor carries, if any."""
    return _unpack(tensor)[1]


def tangent_of(output: Tensor) -> Tensor:
    """The tangent that an output carries, zeros if none reached it."""
    found = tangent_in(output)
    return torch.zeros_like(output) if found is None else found

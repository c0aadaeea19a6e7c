"""Cotangents in the layouts that a backward meets in real use: expanded where constant, else not contiguous."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array, Leaf


def single(leaf: Leaf, like: Tensor, row: Array, expand: bool = True) -> Tensor:
    """The cotangent of one output from a row of the flat one.

    A constant one is a single number expanded (what ``.sum().backward()`` gives); any other has strides.
    """
    part = _numbers(leaf, row)
    if expand and part.size and (part == part.flat[0]).all():
        return torch.as_tensor(part.flat[0], dtype=like.dtype, device=like.device).expand(leaf.shape)
    spaced = torch.zeros((*leaf.shape, 2), dtype=like.dtype, device=like.device)[..., 0]
    return spaced.copy_(torch.from_numpy(part))


def several(leaf: Leaf, like: Tensor, rows: Array) -> Tensor:
    """The cotangents of one output from several rows, shape (k,) + shape."""
    return torch.from_numpy(_numbers(leaf, rows)).to(like.device, like.dtype)


def written(leaf: Leaf, handed: Tensor, row: Array) -> bool:
    """Whether a cotangent is no longer what was handed out."""
    wanted = torch.from_numpy(_numbers(leaf, row)).to(handed.device, handed.dtype)
    return handed.shape != wanted.shape or not torch.equal(handed, wanted)


def _numbers(leaf: Leaf, rows: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.inexact]]:
    part = np.array(rows[..., leaf.slice], dtype=np.float64, order="C")
    whole = part.view(np.complex128) if leaf.complex else part
    return whole.reshape(*rows.shape[:-1], *leaf.shape)

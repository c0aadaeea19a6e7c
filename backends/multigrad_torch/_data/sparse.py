"""Sparse leaves: their entries are the stored values; the places of these stay fixed."""

from __future__ import annotations

import torch
from torch import Tensor


def stored(tensor: Tensor) -> Tensor:
    """The stored values of a sparse tensor, shape (nnz, ...), as they lie."""
    tensor = tensor.detach()
    return tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()


def like(pattern: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor of the layout and places of ``pattern`` that holds ``values``."""
    pattern = pattern.detach()
    if pattern.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(
            pattern._indices().clone(),
            values,
            pattern.shape,
            is_coalesced=pattern.is_coalesced(),
            check_invariants=False,
        )
    by_row = pattern.layout in (torch.sparse_csr, torch.sparse_bsr)
    outer, inner = (
        (pattern.crow_indices(), pattern.col_indices()) if by_row else (pattern.ccol_indices(), pattern.row_indices())
    )
    return torch.sparse_compressed_tensor(
        outer.clone(), inner.clone(), values, pattern.shape, layout=pattern.layout, check_invariants=False
    )


def places(pattern: Tensor) -> Tensor:
    """Where each stored number lies in the flattened dense tensor; int64, of the shape of the stored values."""
    values = stored(pattern)
    if pattern.layout == torch.sparse_coo:
        return _coo_places(pattern, values)
    labels = torch.arange(1, values.numel() + 1, dtype=torch.float64, device=values.device).reshape(values.shape)
    dense = like(pattern, labels).to_dense().flatten()
    found = dense.nonzero().flatten()
    return found[dense[found].argsort()].reshape(values.shape)


def _coo_places(pattern: Tensor, values: Tensor) -> Tensor:
    block = values[0].numel() if len(values) else 1
    row = torch.zeros(len(values), dtype=torch.int64, device=values.device)
    for size, index in zip(pattern.shape, pattern.detach()._indices(), strict=False):
        row = row * size + index
    inside = torch.arange(block, device=values.device)
    return (row[:, None] * block + inside).reshape(values.shape)


def dense(tensor: Tensor) -> Tensor:
    """The tensor itself if it is strided, else its dense form (with its graph)."""
    return tensor if tensor.layout == torch.strided else tensor.to_dense()

"""Torch loads some rules of forward mode and vmap on first use, and warns of its own deprecated tools meanwhile."""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch.autograd import forward_ad

from multigrad_torch._autograd.dual import dual


@cache
def load_decompositions() -> None:
    """Have torch load them now, once per process, in silence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.func.vmap(torch.neg)(torch.zeros(1))
        with forward_ad.dual_level():
            dual(torch.zeros(1), torch.zeros(1))

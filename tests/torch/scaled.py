"""A planted bug for any function: the identity, whose derivative is wrong by a factor."""

from __future__ import annotations

from typing import Any

import torch


class Scaled(torch.autograd.Function):
    """The identity, its derivative wrong by a factor in both modes."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, factor: float) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor, None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        return t * ctx.factor

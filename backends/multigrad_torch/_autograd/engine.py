"""The backward pass, run so that a function mode stays on in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Gradients = tuple[torch.Tensor | None, ...]

# Private to torch, though the same for years; without it ``torch.autograd`` serves, with function modes off inside.
ENGINE: Any = getattr(torch.autograd.Variable, "_execution_engine", None)


def run_backward(
    outputs: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor] = (),
    *,
    retain_graph: bool,
    create_graph: bool,
    accumulate: bool = False,
) -> Gradients:
    """Gradients of the inputs, None for one that was not used; or accumulate them into ``.grad``.

    ``torch.autograd.grad`` is overridable, so it switches function modes off, and with them off would run every
    custom backward and every checkpoint's recomputation. The engine beneath is not overridable.
    """
    if ENGINE is None:
        with torch._C.DisableTorchFunction():  # or a mode that calls this would be asked again
            return _public(outputs, cotangents, inputs, retain_graph, create_graph, accumulate)
    gradients: Gradients = ENGINE.run_backward(
        tuple(outputs),
        tuple(cotangents),
        retain_graph,
        create_graph,
        tuple(inputs),
        allow_unreachable=True,
        accumulate_grad=accumulate,
    )
    return gradients


def _public(
    outputs: Sequence[torch.Tensor],
    cotangents: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    retain_graph: bool,
    create_graph: bool,
    accumulate: bool,
) -> Gradients:
    if accumulate:
        torch.autograd.backward(
            outputs, cotangents, retain_graph=retain_graph, create_graph=create_graph, inputs=inputs or None
        )
        return ()
    return torch.autograd.grad(
        outputs, inputs, cotangents, retain_graph=retain_graph, create_graph=create_graph, allow_unused=True
    )

"""Cotangents that are undefined (None): what a backward meets where a loss uses only some of the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array
from multigrad.errors import first_line
from multigrad.findings import Finding
from multigrad_torch._autograd.cotangents import Cotangent
from multigrad_torch._data.leaves import flat_numbers
from multigrad_torch._graph import Graph, engine

_REMEDY = "take None for zeros, or leave ctx.set_materialize_grads as it is"
# Sums of the same terms in another order.
_ROUNDING = 1e-3


def undefined_gradients(
    forward: Callable[[], Graph], hand: Callable[[Graph, Array], Sequence[Cotangent]], u: Array
) -> Iterator[Finding]:
    """Run the backward with every cotangent undefined, then with those of all outputs but one.

    Args:
        forward: makes a new graph.
        hand: makes cotangents of a flat row.
        u: a row of cotangents, shape (m,).
    """
    graph = forward()
    if not has_users_code(graph.outputs):
        return
    try:
        nothing = _absolute(engine(_cut(graph), [torch.zeros_like(output) for output in graph.outputs]))
        alone = [_alone(forward(), hand, u, i) for i in range(len(graph.outputs))] if len(graph.outputs) > 1 else []
        graph = forward()
        whole = engine(graph, [one.tensor for one in hand(graph, u)])
    except Exception as error:  # noqa: BLE001, of any type: it is the code under test
        reason = first_line(error)
        yield _finding(f"the backward raises where a cotangent is undefined (None): {type(error).__name__}: {reason}")
        return
    if nothing > 0:
        yield _finding(f"with all cotangents undefined, the gradient is not zero but up to {nothing:.3g}")
    if alone and not _adds_up(alone, whole):
        yield _finding("gradients of each output alone, the other cotangents undefined, do not add up to that of all")


def _finding(evidence: str) -> Finding:
    return Finding("undefined_grad", evidence, where="reverse", remedy=_REMEDY)


def has_users_code(outputs: Sequence[Tensor]) -> bool:
    """Whether their graph holds a custom Function from outside torch, or one of them a hook."""
    if any(output._backward_hooks for output in outputs):
        return True
    pending, seen = [output.grad_fn for output in outputs], set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        origin = getattr(type(node), "_forward_cls", None)
        if origin is not None and origin.__module__.partition(".")[0] != "torch":
            return True
        pending += [inner for inner, _ in node.next_functions]
    return False


def _cut(graph: Graph) -> Graph:
    """The same graph below a node that passes undefined gradients on."""
    undefined = torch._C._functions.UndefinedGrad
    cut: Any = [undefined()(output) for output in graph.outputs]
    return replace(graph, outputs=cut)


def _alone(
    graph: Graph, hand: Callable[[Graph, Array], Sequence[Cotangent]], u: Array, i: int
) -> tuple[Tensor | None, ...]:
    return engine(replace(graph, outputs=[graph.outputs[i]]), [hand(graph, u)[i].tensor])


def _absolute(gradients: Sequence[Tensor | None]) -> float:
    return max((float(np.max(np.abs(_flat(g)), initial=0.0)) for g in gradients if g is not None), default=0.0)


def _adds_up(alone: Sequence[Sequence[Tensor | None]], whole: Sequence[Tensor | None]) -> bool:
    for parts, total in zip(zip(*alone, strict=True), whole, strict=True):
        given = [_flat(part) for part in parts if part is not None]
        expected = 0.0 if total is None else _flat(total)
        size = sum((np.abs(part) for part in given), np.zeros(()))
        if not np.allclose(sum(given), expected, rtol=0.0, atol=_ROUNDING * float(np.max(size)), equal_nan=True):
            return False
    return True


def _flat(gradient: Tensor) -> Array:
    return flat_numbers(gradient.detach().to_dense())

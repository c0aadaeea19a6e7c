"""``torch.autograd.grad`` and ``backward`` within the user's code, under promotion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from multigrad_torch._autograd.engine import run_backward

if TYPE_CHECKING:
    from multigrad_torch._promotion.function_mode import DoubleMode

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def _tensors(value: Tensor | Sequence[Any] | None, count: int = 0) -> list[Any]:
    if value is None:
        return [None] * count
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _cotangents(mode: DoubleMode, outputs: Sequence[Tensor], given: Any) -> list[Tensor]:
    cotangents = mode.shadows.widen(_tensors(given, len(outputs)))
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is None and output.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
    return [torch.ones_like(o) if c is None else c for o, c in zip(outputs, cotangents, strict=True)]


def _sum(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    if first is None or second is None:
        return first if second is None else second
    return first + second.to(first.dtype)


def _gradients(
    mode: DoubleMode,
    outputs: Sequence[Tensor],
    inputs: Sequence[Any],
    cotangents: Sequence[Tensor],
    *,
    retain_graph: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """Gradients, in double, of tensors that may be the user's own or stand for one.

    ``Function.apply`` is not overridable: a captured tensor that is given to it is in the graph as itself, elsewhere
    it is there as its twin. Its gradient is the sum of the two. Where the twin was made of a tensor with a graph, the
    gradient of that has gone through the twin already, and been rounded.
    """
    twins = [mode.shadows.widen(t) if isinstance(t, Tensor) else t for t in inputs]
    raw = [(i, t) for i, (t, twin) in enumerate(zip(inputs, twins, strict=True)) if t is not twin and t.requires_grad]
    with mode:
        found = list(
            run_backward(
                outputs,
                cotangents,
                [*twins, *(t for _, t in raw)],
                retain_graph=retain_graph,
                create_graph=create_graph,
            )
        )
    for (i, tensor), gradient in zip(raw, found[len(twins) :], strict=True):
        through = None if twins[i].is_leaf else found[i]
        if through is not None and gradient is not None:
            gradient = gradient - through.to(tensor.dtype)
        found[i] = _sum(found[i], gradient)
    return found[: len(twins)]


def _grad(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> tuple[Tensor | None, ...]:
    """``torch.autograd.grad`` within the user's code."""
    outputs, inputs = mode.shadows.widen(_tensors(args[0])), _tensors(args[1])
    create = bool(kwargs.get("create_graph"))
    retain = kwargs.get("retain_graph")

    def pull(cotangents: Sequence[Tensor]) -> list[Tensor | None]:
        return _gradients(
            mode, outputs, inputs, cotangents, retain_graph=create if retain is None else retain, create_graph=create
        )

    if kwargs.get("is_grads_batched"):
        found = torch.func.vmap(pull)(mode.shadows.widen(_tensors(kwargs["grad_outputs"])))
    else:
        found = pull(_cotangents(mode, outputs, kwargs.get("grad_outputs")))
    if kwargs.get("materialize_grads"):
        found = [torch.zeros_like(mode.shadows.look(t)) if g is None else g for g, t in zip(found, inputs, strict=True)]
    elif not kwargs.get("allow_unused") and any(g is None for g in found):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph.")
    return tuple(mode.shadows.adopt(list(found)))


@contextmanager
def _gradients_caught(mode: DoubleMode) -> Iterator[None]:
    """What is accumulated into the ``.grad`` of a user's tensor goes to its twin instead."""
    leaves = [
        (tensor, twin, tensor.grad)
        for tensor, twin in mode.shadows.originals()
        if tensor.is_leaf and tensor.requires_grad and tensor is not twin
    ]
    for tensor, _, _ in leaves:
        tensor.grad = None
    try:
        yield
        for tensor, twin, _ in leaves:
            twin.grad = _sum(twin.grad, tensor.grad)
    finally:
        for tensor, _, before in leaves:
            tensor.grad = before


def _backward(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> None:
    """``loss.backward()`` within the user's code: gradients are left on the twins."""
    names = ("gradient", "retain_graph", "create_graph", "inputs")
    given = dict(zip(names, args[1:], strict=False)) | dict(kwargs)
    outputs = mode.shadows.widen(_tensors(args[0]))
    create = bool(given.get("create_graph"))
    retain = given.get("retain_graph")
    cotangents = _cotangents(mode, outputs, given.get("gradient", given.get("grad_tensors")))
    with _gradients_caught(mode), mode:
        run_backward(
            outputs,
            cotangents,
            mode.shadows.widen(_tensors(given.get("inputs"))),
            retain_graph=create if retain is None else retain,
            create_graph=create,
            accumulate=True,
        )


INNER_DERIVATIVES: Mapping[Function, Callable[[DoubleMode, Function, Args, Kwargs], Any]] = {
    torch.autograd.grad: _grad,
    torch.autograd.backward: _backward,
    Tensor.backward: _backward,
}

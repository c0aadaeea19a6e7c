"""The torch functions for which float64 arguments alone do not do: what is called in their place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import init

from multigrad_torch._dtypes import WIDE
from multigrad_torch._engine import run_backward

if TYPE_CHECKING:
    from multigrad_torch._function_mode import DoubleMode

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]
Rewrite = Callable[["DoubleMode", Function, Args, Kwargs], Any]

# What Tensor.type(name) takes and gives.
_TYPE_NAMES = {
    "torch.HalfTensor": torch.float16,
    "torch.BFloat16Tensor": torch.bfloat16,
    "torch.FloatTensor": torch.float32,
    "torch.DoubleTensor": torch.float64,
    "torch.ComplexHalfTensor": torch.complex32,
    "torch.ComplexFloatTensor": torch.complex64,
    "torch.ComplexDoubleTensor": torch.complex128,
}

_CASTS = {
    Tensor.half: torch.float16,
    Tensor.bfloat16: torch.bfloat16,
    Tensor.float: torch.float32,
    Tensor.double: torch.float64,
    Tensor.chalf: torch.complex32,
    Tensor.cfloat: torch.complex64,  # type: ignore[attr-defined]
    Tensor.cdouble: torch.complex128,  # type: ignore[attr-defined]
}


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make it torch's default within."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _look(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """Asking after a tensor's shape or place in the graph is no reason to give it a twin."""
    return func(mode.shadows.look(args[0]), *args[1:], **kwargs)


def _tell_dtype(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> torch.dtype:
    """Users are told the dtype that their code was written for; torch itself is told the truth."""
    asker = sys._getframe(2).f_globals.get("__name__", "")
    if asker == "torch" or asker.startswith(("torch.", "multigrad_torch.")):
        true: torch.dtype = func(mode.shadows.widen(args[0]))
        return true
    return mode.shadows.user_dtype(args[0])


def _cast(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> Tensor:
    asked = _CASTS[func]
    cast: Tensor = mode.shadows.adopt(mode.shadows.widen(args[0]).to(mode.shadows.widen(asked), **kwargs), asked)
    return cast


def _type(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """``x.type()`` names the type; ``x.type(name)`` casts to it."""
    asked = args[1] if len(args) > 1 else kwargs.get("dtype")
    if asked is None:
        dtype = mode.shadows.user_dtype(args[0])
        return next((n for n, d in _TYPE_NAMES.items() if d is dtype), func(args[0]))
    name = asked if isinstance(asked, str) else f"torch.{getattr(asked, '__name__', '')}"
    return mode.call(func, (args[0], _TYPE_NAMES.get(name, asked)), {})


def _narrowed(mode: DoubleMode, value: Any) -> Any:
    """A tensor as the user's own run has it."""
    if isinstance(value, Tensor) and value.dtype in WIDE.values():
        return value.to(mode.shadows.user_dtype(value))
    return value


def _draw(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """Random numbers depend on the dtype that they are drawn in: draw as the user's own run does, then widen."""
    with default_dtype(mode.user_default):
        drawn = func(*(_narrowed(mode, a) for a in args), **{k: _narrowed(mode, v) for k, v in kwargs.items()})
    out = mode.shadows.adopt(drawn)
    return out.requires_grad_() if kwargs.get("requires_grad") else out


def _fill(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """A draw in place; ``torch.nn.init`` names all its arguments."""
    given, *rest = args or (kwargs["tensor"],)
    dtype = mode.shadows.user_dtype(given)
    if dtype not in WIDE:
        return mode.call(func, args, kwargs)
    mode.shadows.guard(given)
    target = mode.shadows.widen(given)
    drawn = torch.empty_like(target, dtype=mode.shadows.note(dtype), requires_grad=False)
    func(drawn, *rest, **{name: value for name, value in kwargs.items() if name != "tensor"})
    with torch.no_grad():
        return target.copy_(drawn)


def _make(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """A factory: made in double, whatever the default dtype is."""
    out = mode.call(func, args, kwargs)
    if kwargs.get("dtype") is None and isinstance(out, Tensor) and out.dtype is torch.float64:
        return mode.shadows.adopt(out, mode.shadows.note(mode.user_default))
    return out


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
    it is there as its twin. Its gradient is the sum of the two.
    """
    twins = mode.shadows.widen(list(inputs))
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
    for (i, _), gradient in zip(raw, found[len(twins) :], strict=True):
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


def _getters(names: str) -> list[Function]:
    return [getattr(Tensor, name).__get__ for name in names.split()]


_LOOKS: tuple[Function, ...] = (
    *_getters("requires_grad grad is_leaf grad_fn shape ndim device layout is_sparse _version"),
    *(Tensor.size, Tensor.dim, Tensor.numel, Tensor.ndimension, Tensor.nelement, Tensor.stride, Tensor.is_contiguous),
)
_DRAWS: tuple[Function, ...] = (
    *(torch.rand, torch.randn, torch.rand_like, torch.randn_like, torch.normal),
    *(torch.bernoulli, torch.poisson, torch.multinomial, Tensor.bernoulli, Tensor.multinomial),
)
_FILLS: tuple[Function, ...] = (
    *(Tensor.uniform_, Tensor.normal_, Tensor.exponential_, Tensor.log_normal_, Tensor.cauchy_, Tensor.geometric_),
    *(init.uniform_, init.normal_, init.trunc_normal_, init.kaiming_uniform_, init.kaiming_normal_),
    *(init.xavier_uniform_, init.xavier_normal_, init.orthogonal_, init.sparse_),
)
_FACTORIES: tuple[Function, ...] = (
    *(torch.zeros, torch.ones, torch.empty, torch.full, torch.eye, torch.arange, torch.linspace, torch.logspace),
    *(torch.tensor, torch.as_tensor, torch.scalar_tensor, torch.asarray),
)

REWRITES: Mapping[Function, Rewrite] = {
    Tensor.dtype.__get__: _tell_dtype,  # type: ignore[attr-defined]
    Tensor.type: _type,
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(_LOOKS, _look),
    **dict.fromkeys(_DRAWS, _draw),
    **dict.fromkeys(_FILLS, _fill),
    **dict.fromkeys(_FACTORIES, _make),
    torch.autograd.grad: _grad,
    torch.autograd.backward: _backward,
    Tensor.backward: _backward,
}

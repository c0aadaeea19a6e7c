"""The torch functions for which float64 arguments alone do not do: what is called in their place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import init

from multigrad_torch._data.dtypes import WIDE
from multigrad_torch._promotion.inner_derivatives import INNER_DERIVATIVES

if TYPE_CHECKING:
    from multigrad_torch._promotion.function_mode import DoubleMode

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
    if _asks_torch(3):
        true: torch.dtype = func(mode.shadows.widen(args[0]))
        return true
    return mode.shadows.user_dtype(args[0])


def _tell_size(mode: DoubleMode, func: Function, args: Args, kwargs: Kwargs) -> int:
    """Likewise the bytes of its entries."""
    tensor = args[0]
    if _asks_torch(3):
        true: int = func(mode.shadows.widen(tensor))
        return true
    size = mode.shadows.user_dtype(tensor).itemsize
    return size * mode.shadows.look(tensor).numel() if func == _NBYTES else size


def _asks_torch(depth: int) -> bool:
    """Whether the code that many frames above is torch's own."""
    asker: str = sys._getframe(depth).f_globals.get("__name__", "")
    return asker == "torch" or asker.startswith(("torch.", "multigrad_torch."))


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


def _getters(names: str) -> list[Function]:
    return [getattr(Tensor, name).__get__ for name in names.split()]


(_ITEMSIZE, _NBYTES) = _getters("itemsize nbytes")
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
    **dict.fromkeys((Tensor.element_size, _ITEMSIZE, _NBYTES), _tell_size),
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(_LOOKS, _look),
    **dict.fromkeys(_DRAWS, _draw),
    **dict.fromkeys(_FILLS, _fill),
    **dict.fromkeys(_FACTORIES, _make),
    **INNER_DERIVATIVES,
}

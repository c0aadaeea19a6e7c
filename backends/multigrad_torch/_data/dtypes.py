"""What each low-precision dtype becomes, and what users are told about it."""

from __future__ import annotations

from collections.abc import Iterable

import torch

_STORAGE = (
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
)
WIDE = {
    **dict.fromkeys(_STORAGE, torch.float64),
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}

_COMPLEX = {torch.float16: torch.complex32, torch.bfloat16: torch.complex64, torch.float32: torch.complex64}
_REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32}


def narrow(wide: torch.dtype, nominal: torch.dtype | None) -> torch.dtype:
    """The dtype that the user expects where a tensor of dtype ``wide`` is found; ``nominal`` is a real one."""
    if nominal is None or wide not in (torch.float64, torch.complex128):
        return wide
    return nominal if wide is torch.float64 else _COMPLEX[nominal]


def nominal_dtype(dtypes: Iterable[torch.dtype]) -> torch.dtype | None:
    """The real low-precision dtype that a computation on arrays of these dtypes is done in, or None if in double."""
    real = {_REAL.get(d, d) for d in dtypes if d.is_floating_point or d.is_complex}
    if not real or not real <= _COMPLEX.keys():
        return None
    first, *others = real
    for other in others:
        first = torch.promote_types(first, other)
    return first


def roundoff(dtypes: Iterable[torch.dtype]) -> float:
    """The coarsest unit roundoff among floating and complex dtypes; that of float64 if there is none."""
    return max((torch.finfo(d).eps for d in dtypes if d.is_floating_point or d.is_complex), default=2.0**-52)

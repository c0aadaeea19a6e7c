"""What each low-precision dtype becomes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_STORAGE = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz")
WIDE = {
    **{jnp.dtype(getattr(jnp, name)): np.dtype(np.float64) for name in _STORAGE},
    jnp.dtype(jnp.float16): np.dtype(np.float64),
    jnp.dtype(jnp.bfloat16): np.dtype(np.float64),
    jnp.dtype(jnp.float32): np.dtype(np.float64),
    jnp.dtype(jnp.complex64): np.dtype(np.complex128),
}
_DOUBLE = frozenset(WIDE.values())


def is_low(value: Any) -> bool:
    """Whether an array or an abstract value is of low precision."""
    return getattr(value, "dtype", None) in WIDE


def is_double(value: Any) -> bool:
    """Whether an array or an abstract value is of double precision."""
    return getattr(value, "dtype", None) in _DOUBLE


def widen(value: Any) -> Any:
    """The value in double if it is of low precision, else itself."""
    return jax.lax.convert_element_type(value, WIDE[value.dtype]) if is_low(value) else value


def type_of(aval: Any, dtype: Any = None) -> jax.ShapeDtypeStruct:
    """What to trace with in the place of such a value."""
    return jax.ShapeDtypeStruct(aval.shape, dtype or aval.dtype)  # type: ignore[no-untyped-call]


def wide_type(aval: Any) -> jax.ShapeDtypeStruct:
    """The type of ``widen`` of such a value."""
    return type_of(aval, WIDE.get(aval.dtype))


def as_typed(value: Any, aval: Any) -> Any:
    """The value in the dtype that ``aval`` has, which may be the lower one."""
    same = getattr(value, "dtype", None) == aval.dtype
    return value if same else jax.lax.convert_element_type(value, aval.dtype)


def wide_name(name: str) -> str:
    """The name of the dtype that one called ``name`` becomes."""
    dtype = jnp.dtype(name)
    return str(WIDE.get(dtype, dtype))

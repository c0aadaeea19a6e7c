"""Refusals: what cannot be traced or batched is said with file and line, the input concerned, and what to write."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FrameType

from multigrad.errors import Unsupported

# Frames of these packages are passed over when the user's own line is looked for.
LIBRARIES = frozenset(
    ["numpy", "scipy", "jax", "jaxlib", "multigrad", "multigrad_numpy", "array_api_compat", "opt_einsum", "ml_dtypes"]
) | sys.stdlib_module_names - {"__main__", "test"}
# Of these the function that the user called is named.
_NAMED = frozenset({"numpy", "scipy"}) | sys.stdlib_module_names


class Diverged(Unsupported):
    """The rows of a batch want to go different ways; they have to be evaluated one by one."""

    kind = "diverged"


def is_library(frame: FrameType) -> bool:
    """Whether the frame is one to be passed over."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in LIBRARIES


def user_line() -> str:
    """The innermost line of code that belongs to no library, as ``file:line``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "<unknown>"


def _called() -> str:
    """The function of a library that the user's line calls, as far as its name is a public one."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and is_library(frame):
        root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if root in _NAMED and not frame.f_code.co_name.startswith(("_", "<")):
            name = f"{root}'s {frame.f_code.co_name}"
        frame = frame.f_back
    return name


def depends(origin: Iterable[str]) -> str:
    """Words for a value that depends on the inputs named in ``origin``."""
    names = " and ".join(f"`{name}`" for name in sorted(origin))
    return f"a value that depends on {names or 'an input'}"


def refusal(what: str, remedy: str) -> Unsupported:
    """The error for code that cannot be traced.

    Args:
        what: what the user's line does.
        remedy: what to write instead.
    """
    return Unsupported(f"{user_line()}: {what}; {remedy}")


STORED = (
    "a traced value is stored into a plain NumPy array (or handed to compiled code that wants plain numbers), "
    "which would drop its gradient"
)
STORED_REMEDY = "allocate the array inside the function with np.zeros_like(x) or np.zeros(...), or pass jac="


def conversion(call: str, origin: Iterable[str]) -> Unsupported:
    """The error for ``float(x)`` and its kin."""
    function = _called()
    if function:
        return refusal(
            f"{function} wants plain numbers: {call} of {depends(origin)} would drop its gradient",
            "pass jac=, or tell its derivative with multigrad.register_numpy(function, jax_function)",
        )
    return refusal(
        f"{call} of {depends(origin)} would drop its gradient", "use NumPy's function on the array itself, or pass jac="
    )

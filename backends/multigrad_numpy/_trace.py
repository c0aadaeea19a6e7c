"""Turn a plain NumPy function into one that JAX can differentiate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.errors import MultigradError, Unsupported
from multigrad_numpy._ducks.creation import any_duck
from multigrad_numpy._ducks.duck import lower
from multigrad_numpy._ducks.rebind import rebind
from multigrad_numpy._ducks.refusal import STORED, STORED_REMEDY, is_library, refusal
from multigrad_numpy._rules import elementwise, joining, linalg, order, scipy_linalg, statistics  # noqa: F401 - they enter their rules
from multigrad_numpy._rules.scipy import enter_loaded
from multigrad_numpy._tracing.traced import TracedArray

# What NumPy's and SciPy's compiled code says when it is handed traced data.
_COMPILED = (
    "not supported for the input types",
    "object arrays are not",
    "Unsupported type",
    "loop of ufunc does not support",
    "Iterator operand or requested dtype holds references",
    "Cannot cast array data from dtype('O')",
    "must be real number, not TracedArray",
    "Buffer dtype mismatch",
    "a bytes-like object is required",
)


def trace(function: Callable[..., Any], names: Sequence[str] | None = None) -> Callable[..., Any]:
    """The function on JAX arrays, to be run eagerly under jax.vjp, jax.jvp, jax.linearize, jax.jacrev or jax.jacfwd.

    Run it within ``jax.enable_x64(True)``. Arguments and results may be pytrees; every jax.Array in the arguments is
    traced, everything else is handed on.

    Args:
        function: plain NumPy code. It is not changed; a copy of it is run.
        names: what to call the arguments in messages.

    Raises:
        Unsupported: something in the function cannot be traced; the text says where, and what to write instead.
    """

    def traced(*args: Any) -> Any:
        boxed = [_enter(arg, name) for arg, name in zip(args, names or _default_names(len(args)), strict=True)]
        return jax.tree.map(leave, run(function, boxed), is_leaf=_is_leaf)

    return traced


def run(function: Callable[..., Any], boxed: Sequence[Any]) -> Any:
    """Call a copy of ``function`` with traced arrays.

    Raises:
        Unsupported: it raises, with traced arrays, where the plain call went well.
    """
    enter_loaded()
    try:
        return rebind(function, TracedArray)(*boxed)
    except Exception as error:
        raise _explained(error) from error


def _default_names(count: int) -> list[str]:
    return [f"inputs[{i}]" for i in range(count)]


def _enter(tree: Any, name: str) -> Any:
    origin = frozenset({name})
    return jax.tree.map(lambda leaf: TracedArray.of(leaf, origin) if isinstance(leaf, jax.Array) else leaf, tree)


def _is_leaf(item: Any) -> bool:
    return any_duck(item) and not isinstance(item, (list, tuple, dict)) or type(item) is np.ndarray


def leave(leaf: Any) -> Any:
    """A JAX array of what the traced function returned."""
    if any_duck(leaf):
        array = TracedArray.asarray(leaf)
        return jnp.asarray(array.value if array._memory.live else array.ghost)
    plain = np.asarray(lower(leaf))
    if plain.dtype == object:
        raise refusal(f"the function returns a {type(leaf).__name__}", "return arrays, or a structure of arrays")
    return jnp.asarray(plain)


def _explained(error: Exception) -> Exception:
    """Our refusal where NumPy hid it behind an error of its own; otherwise one that cites the error."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    for link in chain:
        if isinstance(link, MultigradError):
            return link
    text = str(error) or type(error).__name__
    if isinstance(error, ValueError) and "setting an array element with a sequence" in text:
        return refusal_at(error, STORED, STORED_REMEDY)
    if any(part in text for part in _COMPILED):
        return refusal_at(error, f"compiled code without a derivative was given a traced value ({text})",
                          "pass jac=, or multigrad.register_numpy(function, jax_function)")  # fmt: skip
    return refusal_at(error, f"the function cannot be traced: {type(error).__name__}: {text}", "pass jac=")


def refusal_at(error: BaseException, what: str, remedy: str) -> Exception:
    """A refusal that names the user's line in the traceback of ``error``."""
    line = "<unknown>"
    step = error.__traceback__
    while step is not None:
        if not is_library(step.tb_frame):
            line = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return Unsupported(f"{line}: {what}; {remedy}")

"""Arguments: what is passed beside the function and its inputs, refused where it makes no sense.

Each check says which argument it is, what was given, and what to give instead.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from multigrad.errors import InvalidUse

MODES = ("reverse", "forward")
METHODS = ("auto", "full", "probe")

# What is a keyword elsewhere, and what stands for it here.
ALWAYS = "it is always checked, and reported as a finding"
ELSEWHERE = {
    "nondet_tol": ALWAYS,
    "check_undefined_grad": ALWAYS,
    "check_grad_dtypes": ALWAYS,
    "check_batched_grad": ALWAYS,
    "check_batched_forward_grad": ALWAYS,
    "check_forward_ad": "forward mode is checked unless modes=('reverse',)",
    "check_backward_ad": "reverse mode is checked unless modes=('forward',)",
    "check_sparse_nnz": "there is nothing to ask for: sparse inputs are perturbed at their stored positions",
    "masked": "there is nothing to ask for: sparse inputs are perturbed at their stored positions",
    "fast_mode": "write method='probe'",
}


def validate_callable(name: str, value: object, hint: str = "") -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise InvalidUse("not_callable", f"{name} must be callable, not {_given(value)}{hint and f'; {hint}'}")


def validate_tolerances(**named: object) -> None:
    """Refuse tolerances, by name, that are no numbers, negative or not finite."""
    for name, value in named.items():
        number = _real(value)
        if number is None or not (math.isfinite(number) and number >= 0):
            wanted = "a finite number that is not negative, such as 1e-6"
            raise InvalidUse("bad_tolerance", f"{name} must be {wanted}, not {_given(value)}")


def validate_step(eps: object) -> None:
    """Refuse a step that is none."""
    number = _real(eps)
    if number is None or not (math.isfinite(number) and number > 0):
        raise InvalidUse(
            "bad_tolerance", f"eps, the step, must be a finite number above 0, such as 1e-6, not {_given(eps)}"
        )


def refuse_keywords_of_others(given: Collection[str]) -> None:
    """Refuse keywords of other gradient checkers, and say what stands for them here."""
    for name in given:
        if name in ELSEWHERE:
            raise InvalidUse("unknown_option", f"check_grad has no {name}=: {ELSEWHERE[name]}")


def validate_seed(seed: object) -> None:
    """Refuse what no random numbers can be made from again."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise InvalidUse("bad_seed", f"seed must be an integer that is not negative, such as 0, not {_given(seed)}")


def validate_memory(max_memory: object) -> None:
    """Refuse what is no number of bytes."""
    number = _real(max_memory)
    if number is None or not number > 0:
        raise InvalidUse(
            "bad_memory", f"max_memory must be a number of bytes, such as 2**31 for 2 GiB, not {_given(max_memory)}"
        )


def validate_flags(**named: object) -> None:
    """Refuse what is neither true nor false."""
    for name, value in named.items():
        if not isinstance(value, (bool, np.bool_)):
            raise InvalidUse("bad_flag", f"{name} must be True or False, not {_given(value)}")


def validate_order(order: object) -> None:
    """Refuse orders that there are not."""
    if _real(order) not in (1, 2):
        raise InvalidUse("bad_order", f"order must be 1 or 2, not {_given(order)}")


def validate_modes(modes: object) -> None:
    """Refuse modes that there are not."""
    if not _is_names(modes, MODES) or not modes:
        hint = "; JAX's 'fwd' is 'forward', 'rev' is 'reverse'" if _is_names(modes, ("fwd", "rev")) else ""
        raise InvalidUse("unknown_mode", f"modes must be a tuple of some of {MODES}, not {_given(modes)}{hint}")


def validate_method(method: object) -> None:
    """Refuse methods that there are not."""
    if not (isinstance(method, str) and method in METHODS):
        raise InvalidUse("unknown_method", f"method must be one of {METHODS}, not {_given(method)}")


def validate_executor(executor: object) -> None:
    """Refuse what nothing can be submitted to."""
    if not hasattr(executor, "submit"):
        raise InvalidUse("not_an_executor", f"executor must be a concurrent.futures.Executor, not {_given(executor)}")


def validate_leaves(leaves: Collection[object]) -> None:
    """Refuse inputs without anything that might be an array."""
    if all(type(leaf).__module__ == "builtins" and not isinstance(leaf, numbers.Number) for leaf in leaves):
        if not leaves:
            hint = "if fn needs none, name the backend and what to check: backend='torch', params='captured'"
            raise InvalidUse("no_array", f"inputs must contain arrays, but are empty; {hint}")
        held = ", ".join(sorted({type(leaf).__name__ for leaf in leaves}))
        raise InvalidUse(
            "no_array", f"inputs must contain arrays, not just {held}; several inputs go into a tuple: (x, y)"
        )


def validate_names(argument: str, value: object) -> None:
    """Refuse what is no collection of names, one name among them."""
    if not _is_names(value):
        raise InvalidUse(
            "bad_names", f"{argument} must be a tuple of names, such as ('jax', 'torch'), not {_given(value)}"
        )


def validate_by_backend(argument: str, value: object, kind: type | None = None) -> None:
    """Refuse what is no mapping from names, to mappings or whatever ``kind`` says."""
    hint = f"{argument}={{'jax': ...}}"
    if not isinstance(value, Mapping):
        raise InvalidUse("bad_mapping", f"{argument} must be a dict by backend, {hint}, not {_given(value)}")
    for name, each in value.items():
        if kind is not None and not isinstance(each, kind):
            raise InvalidUse("bad_mapping", f"{argument} for {name!r} must be a {kind.__name__}, not {_given(each)}")


def _is_names(value: object, known: Collection[str] | None = None) -> bool:
    if isinstance(value, str) or not isinstance(value, Collection):
        return False
    return all(isinstance(name, str) and (known is None or name in known) for name in value)


def _real(value: Any) -> float | None:
    """A real number, or array of one, as a float; None for all else."""
    single = isinstance(value, numbers.Real) or getattr(value, "ndim", None) == 0
    if not single or isinstance(value, (bool, np.bool_)) or np.iscomplexobj(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _given(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def dtype_of(value: Any) -> str:
    """The name of an array's dtype, whatever the framework."""
    return str(value.dtype).rpartition(".")[2]


def in_words(value: Any) -> str:
    """What a value is: its type, and the dtype and shape of an array.

    >>> in_words(np.ones((2, 3)))
    'ndarray float64 (2, 3)'
    """
    if getattr(value, "dtype", None) is None or getattr(value, "shape", None) is None:
        return type(value).__name__
    return f"{type(value).__name__} {dtype_of(value)} {tuple(value.shape)}"

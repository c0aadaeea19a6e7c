"""Arguments that make no sense: each is refused by name, by every door, before anything is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from multigrad import check_consistency, check_grad, gradcheck
from multigrad.errors import InvalidUse

X = np.array([0.5, 1.0])

NO_NUMBERS: tuple[Any, ...] = ("a", "1e-3", [1.0], 1j, -1.0, np.nan, np.inf, np.array([1.0, 2.0]), True, {})
NO_FLAGS: tuple[Any, ...] = ("yes", 2, [], np.array([True, False]))
NO_SEEDS: tuple[Any, ...] = ("a", -1, 1.5, [1], np.nan, None)
NO_ORDERS: tuple[Any, ...] = ("2", 3, 1.5, None, [1], np.array([1, 2]))
NO_MODES: tuple[Any, ...] = (3, "reverse", None, (), ("backward",), (3,), ([],))
NO_MAPPINGS: tuple[Any, ...] = (3, "x", [1])
NO_ARRAYS: tuple[Any, ...] = (None, "a", [], (), {}, [None], ["a"], object(), {"w": None})

CHECK_GRAD: dict[str, tuple[Any, ...]] = {
    "atol": (*NO_NUMBERS, None),
    "rtol": NO_NUMBERS,
    "eps": (*NO_NUMBERS, 0),
    "seed": NO_SEEDS,
    "max_memory": ("1GB", -1, 0, np.nan, None, [2]),
    "order": NO_ORDERS,
    "modes": NO_MODES,
    "method": (3, "x", None, ["full"]),
    "progress": NO_FLAGS,
    "raise_exception": (*NO_FLAGS, None),
    "executor": (3, "threads"),
    "jac": (3, "x", X),
    "fn": (None, 3, "f"),
    "backend": (3, None, ["numpy"]),
    "inputs": NO_ARRAYS,
}
GRADCHECK: dict[str, tuple[Any, ...]] = {
    "eps": (*NO_NUMBERS, 0, None),
    "atol": (*NO_NUMBERS, None),
    "rtol": (*NO_NUMBERS, None),
    "raise_exception": (*NO_FLAGS, None),
    "check_sparse_nnz": (*NO_FLAGS, None),
    "func": (None, 3, "f"),
    "inputs": NO_ARRAYS,
}
CHECK_CONSISTENCY: dict[str, tuple[Any, ...]] = {
    "functions": (None, 3, "f", [np.sum], {"jax": jnp.sum, "numpy": 3}),
    "backends": (3, "jax", [3, 4]),
    "reference": (3, ["jax"], "torch"),
    "mapping": (*NO_MAPPINGS, {"jax": 3}, {"torch": {}}),
    "jac": (*NO_MAPPINGS, {"numpy": 3}, {"torch": np.sum}),
    "params": (*NO_MAPPINGS, {"torch": 3}),
    "options": (*NO_MAPPINGS, {"jax": 3}),
    "modes": NO_MODES,
    "rtol": NO_NUMBERS,
    "accept": (3, None, [3]),
    "order": NO_ORDERS,
    "seed": NO_SEEDS,
    "raise_exception": (*NO_FLAGS, None),
}


def squares(x: Any) -> Any:
    raise AssertionError("nothing is evaluated")


def grid(table: dict[str, tuple[Any, ...]]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name} {type(value).__name__} {k}")
        for name, values in table.items()
        for k, value in enumerate(values)
    ]


def refused(call: Callable[..., object], argument: str) -> None:
    with pytest.raises(InvalidUse) as caught:
        call()
    message = str(caught.value)
    assert argument.removesuffix("s") in message, message
    assert caught.value.kind != "error"


@pytest.mark.parametrize(("name", "value"), grid(CHECK_GRAD))
def test_check_grad(name: str, value: Any) -> None:
    arguments = {"fn": squares, "inputs": X, "jac": squares, name: value}
    refused(lambda: check_grad(**arguments), name)


@pytest.mark.parametrize(("name", "value"), grid(GRADCHECK))
def test_gradcheck(name: str, value: Any) -> None:
    arguments = {"func": squares, "inputs": jnp.asarray(X), name: value}
    refused(lambda: gradcheck(**arguments), name)


@pytest.mark.parametrize(("name", "value"), grid(CHECK_CONSISTENCY))
def test_check_consistency(name: str, value: Any) -> None:
    arguments = {"functions": {"jax": squares, "numpy": squares}, "inputs": X, name: value}
    refused(lambda: check_consistency(**arguments), "function" if name == "functions" else name)


@pytest.mark.parametrize("number", [1e-6, 0, np.float32(1e-6), np.int64(0), np.array(1e-6), jnp.asarray(1e-6)])
def test_numbers_of_any_library_are_numbers(number: Any) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x))

    assert check_grad(f, X, jac=np.cos, atol=number, seed=np.int32(3), max_memory=2e9, raise_exception=np.True_)
    assert gradcheck(lambda x: jnp.sum(x) ** 2, jnp.asarray(X), eps=1e-2, atol=number, rtol=1e-2)

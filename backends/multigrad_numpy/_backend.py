"""The door: from a NumPy function and its inputs to a flat function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from multigrad.backends import FlatFunction, Options
from multigrad.errors import InvalidUse
from multigrad.user_jac import UserJacobian
from multigrad_numpy._function import Derivative, NumpyFunction
from multigrad_numpy._opinion import refuse_wrong_trace, second_opinion
from multigrad_numpy._tracing.table import register_numpy


class NumpyBackend:
    """Makes flat functions of NumPy functions; the derivative under test is the user's ``jac``, or that of a trace."""

    name = "numpy"
    options = frozenset({"jac", "params", "trace"})
    register_numpy = staticmethod(register_numpy)

    def recognises(self, leaf: object) -> bool:
        return isinstance(leaf, (np.ndarray, np.generic))

    def array(self, value: Any) -> npt.NDArray[Any]:
        return value if isinstance(value, np.ndarray) else np.from_dlpack(value)

    def flatten(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> FlatFunction:
        if options.params is not None:
            raise InvalidUse(
                "unsupported_params",
                "params= has no meaning for NumPy: pass the parameters as an input, check_grad(fn, (params, x))",
            )
        trace = bool(options.extra.get("trace", True))
        if options.jac is not None:
            return NumpyFunction(fn, inputs, partial(_user_jacobian, options.jac), second_opinion if trace else None)
        if trace:
            return NumpyFunction(fn, inputs, _traced, refuse_wrong_trace)
        raise InvalidUse(
            "no_derivative",
            "with trace=False there is no derivative to check: pass yours, jac=, a function like fn, or leave trace on",
        )


def _traced(function: NumpyFunction) -> Derivative:
    return function.trace


def _user_jacobian(jac: Callable[..., Any], function: NumpyFunction) -> UserJacobian:
    arguments, results = function.arguments, function.results
    return UserJacobian(
        lambda: function.call_with_copies(jac, "jac"), arguments.template, results.template, function.noticed
    )

"""The user's own derivative, ``jac=``, of a function on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from multigrad.backends import Array
from multigrad.errors import InvalidUse
from multigrad.tree import map_leaves
from multigrad.user_jac import UserJacobian
from multigrad_torch._program import Program


def user_jacobian(program: Program, x: Array, jac: Callable[..., Any]) -> UserJacobian:
    """What ``jac`` returns at x, called as the function is, made the flat Jacobian.

    Raises:
        InvalidUse: ``unsupported_params``; parameters are checked too, by which ``jac`` has no derivatives.
    """
    if program.params.slots:
        raise InvalidUse(
            "unsupported_params",
            f"jac= is the derivative by the inputs alone, and {program.params.slots[0].path} is to be checked too: "
            "pass a function, lambda x: module(x), or leave out params=",
        )

    def call() -> Any:
        with program.state:
            return map_leaves(_as_numpy, jac(*program.arguments_at(x)))

    return UserJacobian(call, program.template, program.outputs.template, program.findings)


def _as_numpy(value: Any) -> Any:
    return value.detach().resolve_conj().resolve_neg().cpu().numpy() if isinstance(value, Tensor) else value

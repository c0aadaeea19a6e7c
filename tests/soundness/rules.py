"""One function with a wrong rule, for each backend: the bug is planted into what reverse mode returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

BACKENDS = ("torch", "jax", "numpy")


def with_rule(backend: str, fn: Callable[..., Any], vjp: Callable[..., Any], *inputs: Any) -> tuple[Any, Any, Any]:
    """What ``check_grad`` takes: the function, its inputs, options.

    Args:
        backend: of the three.
        fn: of ``xp`` and arrays, returns an array.
        vjp: of ``xp``, the cotangent and the arrays, returns the tuple of gradients.
        inputs: the arrays.
    """
    return {"torch": _torch, "jax": _jax, "numpy": _numpy}[backend](fn, vjp, inputs)


def _torch(fn: Any, vjp: Any, inputs: Any) -> tuple[Any, Any, Any]:
    import torch

    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            ctx.save_for_backward(*xs)
            return fn(torch, *xs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return vjp(torch, g, *ctx.saved_tensors)

    return Rule.apply, tuple(torch.tensor(x, requires_grad=True) for x in inputs), {}


def _jax(fn: Any, vjp: Any, inputs: Any) -> tuple[Any, Any, Any]:
    import jax
    import jax.numpy as jnp

    rule = jax.custom_vjp(lambda *xs: fn(jnp, *xs))
    rule.defvjp(lambda *xs: (fn(jnp, *xs), xs), lambda xs, g: vjp(jnp, g, *xs))
    return rule, inputs, {}


def _numpy(fn: Any, vjp: Any, inputs: Any) -> tuple[Any, Any, Any]:
    def jac(*xs: Any) -> Any:
        y = np.asarray(fn(np, *xs))
        rows = [vjp(np, one.reshape(y.shape), *xs) for one in np.eye(y.size)]
        parts = [np.stack([np.asarray(r[k]) for r in rows]).reshape(y.shape + xs[k].shape) for k in range(len(xs))]
        return parts[0] if len(parts) == 1 else tuple(parts)

    return lambda *xs: fn(np, *xs), inputs, {"jac": jac}

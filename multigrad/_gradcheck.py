"""gradcheck: the classic call with its classic semantics, on the same engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad import _arguments
from multigrad._analytical.jacobian import reverse_jacobian
from multigrad._check import as_arguments, choose_backend
from multigrad._differences.directions import Directions, Mask
from multigrad._differences.ladder import points
from multigrad.backends import Array, FlatFunction, Options, left_behind, place
from multigrad.batches import Batched
from multigrad.errors import GradcheckError, InvalidUse
from multigrad.tree import walk

SHOWN = 5


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-06,
    atol: float = 1e-05,
    rtol: float = 0.001,
    raise_exception: bool = True,
    check_sparse_nnz: bool = False,
) -> bool:
    """Compare analytical gradients with central differences of one fixed step, as ``torch.autograd.gradcheck`` does.

    The semantics are those of the call that tutorials teach, for every backend: one step, ``allclose``, inputs that
    require grad, arithmetic at the inputs' own precision. What torch's has come to look at besides (random values,
    backward passes that differ, undefined gradients, forward mode, the second order) ``check_grad`` looks at, and it
    answers better.

    Args:
        func: takes arrays, returns an array or a tuple of them.
        inputs: an array or a tuple of them; the backend is told by them.
        eps: the absolute step.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: whether to raise, or return False, where the gradients are not close.
        check_sparse_nnz: whether sparse inputs are allowed; they are perturbed at stored positions.

    Returns:
        True if all differences satisfy ``abs(analytical - numerical) <= atol + rtol * abs(numerical)``.

    Raises:
        GradcheckError: they don't; the message has both matrices and the wrong entries.
        InvalidUse: no input requires grad; a sparse input without ``check_sparse_nnz``; a step that is none.

    Example:
        >>> import jax.numpy as jnp
        >>> gradcheck(lambda x: x**2, jnp.array([1.0, 2.0]), eps=1e-3, atol=1e-2)
        True
    """
    __tracebackhide__ = True  # for pytest: it is the call that fails
    arguments = as_arguments(inputs)
    leaves = [leaf for _, leaf in walk(arguments)]
    _arguments.validate_callable("func", func)
    _arguments.validate_step(eps)
    _arguments.validate_tolerances(atol=atol, rtol=rtol)
    _arguments.validate_flags(raise_exception=raise_exception, check_sparse_nnz=check_sparse_nnz)
    _validate(leaves, check_sparse_nnz)
    adapter = choose_backend("auto", arguments)
    f = adapter.flatten(func, arguments, Options(native=True))
    with left_behind(f):
        numerical = _central_differences(f, eps)
        analytical = reverse_jacobian(f)
    with np.errstate(invalid="ignore"):
        difference = np.abs(analytical - numerical)
        close = (difference <= atol + rtol * np.abs(numerical)) & np.isfinite(difference)
    if close.all():
        return True
    if raise_exception:
        raise GradcheckError(_message(f, numerical, analytical, close, eps))
    return False


def _validate(leaves: list[Any], check_sparse_nnz: bool) -> None:
    asked = [leaf.requires_grad for leaf in leaves if hasattr(leaf, "requires_grad")]
    if asked and not any(asked):
        raise InvalidUse(
            "no_differentiable_input", "gradcheck expects at least one input tensor to require gradient, but none does"
        )
    sparse = [leaf for leaf in leaves if getattr(leaf, "is_sparse", False) or getattr(leaf, "is_sparse_csr", False)]
    if sparse and not check_sparse_nnz:
        raise InvalidUse("sparse_input", "gradcheck expects dense inputs unless check_sparse_nnz is set to True")


def _central_differences(f: FlatFunction, eps: float) -> Array:
    n = len(f.x)
    units = Directions(n, np.arange(n + 1), np.arange(n), np.full(n, eps))
    X, _, _ = points(f.x, units, np.zeros(1))
    values = Batched(f, f.repeats.shape[1], lenient=False)(X)
    plus, minus = values[:n], values[n:]
    return np.asarray((plus - minus) / (2 * eps)).T


def _message(f: FlatFunction, numerical: Array, analytical: Array, close: Mask, eps: float) -> str:
    i, j = next(
        (i, j)
        for i, out in enumerate(f.outputs)
        for j, leaf in enumerate(f.inputs)
        if not close[out.slice, leaf.slice].all()
    )
    out, leaf = f.outputs[i], f.inputs[j]
    block = (out.slice, leaf.slice)
    with np.printoptions(precision=4, suppress=True, threshold=200):
        matrices = f"numerical:{numerical[block].T}\nanalytical:{analytical[block].T}"
    parts = [
        f"Jacobian mismatch for output {i} with respect to input {j},",
        matrices,
        *_wrong(f, numerical, analytical, close),
    ]
    return "\n".join([*parts, *_likely_cause(f, eps)])


def _wrong(f: FlatFunction, numerical: Array, analytical: Array, close: Mask) -> list[str]:
    rows, columns = np.nonzero(~close)
    lines = [f"{len(rows)} of {close.size} entries are not close:"]
    for r, c in list(zip(rows, columns, strict=True))[:SHOWN]:
        lines.append(
            f"  d {place(f.outputs, int(r))} / d {place(f.inputs, int(c))}: "
            f"analytical {analytical[r, c]:.6g}, numerical {numerical[r, c]:.6g}"
        )
    return lines + (["  ..."] if len(rows) > SHOWN else [])


def _likely_cause(f: FlatFunction, eps: float) -> list[str]:
    low = [f"{leaf.path} ({leaf.dtype})" for leaf in f.inputs if leaf.dtype not in ("float64", "complex128")]
    if low:
        cause = f"The dtype of {', '.join(low)} is too coarse for a step of {eps:g}; this and not the gradient is"
        return [f"{cause} the likely cause. check_grad evaluates such functions in float64."]
    rounding = f.eps * float(np.max(np.abs(f.repeats), initial=0.0)) / eps
    largest = float(np.max(np.abs(f.x), initial=0.0))
    if largest * f.eps > 1e-4 * eps or rounding > 1e-5:
        return [
            f"The step {eps:g} is lost in the rounding of inputs or values of this size; check_grad chooses it per entry."
        ]
    return []

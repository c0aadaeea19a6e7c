"""The user's own derivative (``jac=``), made the flat Jacobian; shapes are taken strictly.

What ``jac(*inputs)`` must return, for an output of shape ``out`` and a checked input of shape ``in``:

* an array (or nested list, or scipy.sparse matrix) of shape ``out + in``; for a scalar function that is the gradient,
  of the input's own shape. For an output of one entry but shape (1,), (1, 1), ... the shape ``in`` will do as well:
  it has another number of axes, so it can't be mistaken;
* several checked arguments: a tuple or list with one of these for each; an argument that is a tree: the same tree.
  Of a tree with one checked array, that array's derivative alone will do; a list of arrays of one shape may get one
  array, with the item's number as the first axis of ``in``;
* several outputs: the outputs' tree, outermost, as ``jax.jacobian`` nests it.

Complex numbers: C -> C takes dF/dz of a holomorphic function; C -> R takes dL/dre + i dL/dim, as PyTorch
and most optimisers have it, or its conjugate where that is the framework's convention (``jax.grad``); R -> C takes dF/dx.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from multigrad.backends import Array, Leaf
from multigrad.errors import Defect, Unsupported
from multigrad.findings import Finding
from multigrad.tree import Children, children


class UserJacobian:
    """The derivative that the user wrote, as a flat function's reverse mode.

    Args:
        call: calls the user's ``jac`` with fresh copies of its arguments.
        inputs: the arguments' tuple with a ``Leaf`` in every checked place and anything else in the others.
        outputs: the output's tree, likewise.
        findings: where to report.
        imaginary: the sign of i in the convention for C -> R.
    """

    def __init__(
        self,
        call: Callable[[], Any],
        inputs: tuple[Any, ...],
        outputs: Any,
        findings: list[Finding],
        imaginary: Literal[1, -1] = 1,
    ) -> None:
        self._call = call
        self._inputs = inputs
        self._outputs = outputs
        self._findings = findings
        self._imaginary = imaginary

    @cached_property
    def matrix(self) -> Array:
        """The flat Jacobian, shape (m, n)."""
        first = self._flat(self._call())
        second = self._flat(self._call())
        if not np.array_equal(first, second, equal_nan=True):
            self._findings.append(_unsteady(first, second))
        return first

    def _flat(self, result: Any) -> Array:
        return flat_jacobian(result, self._inputs, self._outputs, self._imaginary)

    def vjp(self, U: Array) -> Array:
        """Multiply rows of cotangents with the Jacobian: (k, m) -> (k, n).

        A zero cotangent leaves an output out altogether: one NaN does not spread to other outputs' rows.
        """
        J = self.matrix
        if np.isfinite(J).all():
            return U @ J
        return np.stack([u[u != 0] @ J[u != 0] for u in U]) if len(U) else np.zeros((0, J.shape[1]))

    def jvp(self, V: Array) -> Array:
        """Refuse: the same matrix again would tell nothing."""
        raise Unsupported("the user's jac is one matrix: there is no second mode to compare")


def _unsteady(first: Array, second: Array) -> Finding:
    with np.errstate(invalid="ignore"):
        differ = np.argwhere(~((first == second) | (np.isnan(first) & np.isnan(second))))
    i, j = differ[0]
    return Finding(
        "nondeterministic_backward",
        f"two calls of jac at one point differ in {len(differ)} entries, "
        f"the first {float(first[i, j])!r} and {float(second[i, j])!r}",
        where="jac",
        remedy="fix the random seed inside jac, or remove the state that it keeps",
    )


def flat_jacobian(result: Any, inputs: tuple[Any, ...], outputs: Any, imaginary: Literal[1, -1] = 1) -> Array:
    """Lay out what the user's ``jac`` returned as the flat Jacobian, shape (m, n); arguments as for ``UserJacobian``.

    Raises:
        Defect: ``wrong_shape``; nothing is ever broadcast or transposed.
    """
    rows = [_row(part, output, inputs, imaginary) for output, part in _match(result, outputs, "jac", axis=0)]
    return np.concatenate(rows, axis=0)


def _row(result: Any, output: Leaf, inputs: tuple[Any, ...], imaginary: int) -> Array:
    checked = [k for k, argument in enumerate(inputs) if _has_leaf(argument)]
    parts = _per_argument(result, inputs, checked, output)
    axis = len(output.shape)
    blocks = [
        _block(part, output, leaf, imaginary)
        for k, each in zip(checked, parts, strict=True)
        for leaf, part in _match(each, inputs[k], f"jac's part for inputs[{k}]", axis)
    ]
    return np.concatenate(blocks, axis=1)


def _branches(template: Any) -> Children:
    return [] if isinstance(template, Leaf) else [each for each in children(template) or () if _has_leaf(each[2])]


def _has_leaf(template: Any) -> bool:
    return isinstance(template, Leaf) or bool(_branches(template))


def _per_argument(result: Any, inputs: tuple[Any, ...], checked: Sequence[int], output: Leaf) -> Sequence[Any]:
    fixed = [k for k in range(len(inputs)) if k not in checked]
    count = len(result) if isinstance(result, (list, tuple)) else 0
    if count == len(checked) > 1:
        return cast("Sequence[Any]", result)
    if count == len(inputs) > 1 and all(result[k] is None for k in fixed):
        return [result[k] for k in checked]
    if len(checked) == 1:
        tuple_of_one = isinstance(result, tuple) and count == 1 and len(children(inputs[checked[0]]) or ()) != 1
        return result if tuple_of_one else [result]
    names = ", ".join(f"inputs[{k}]" for k in checked)
    raise _wrong(
        f"jac returned {_seen(result)} for {output.path}, expected a tuple of {len(checked)}: one for each of {names}",
        where=output.path,
        remedy="return (d/d first, d/d second, ...), the outputs' tree outermost if there are several outputs; "
        "to hold an input fixed, close over it: lambda x: fn(x, constant)",
    )


def _match(value: Any, template: Any, path: str, axis: int) -> list[tuple[Leaf, Any]]:
    """Pair every ``Leaf`` of the template with what stands in its place in ``value``."""
    if isinstance(template, Leaf):
        return [(template, value)]
    pairs = []
    for step, key, child in _branches(template):
        pairs += _match(_child(value, template, key, path, axis), child, path + step, axis)
    return pairs


def _child(value: Any, template: Any, key: Any, path: str, axis: int) -> Any:
    """Get the part of ``value`` that belongs to one child of ``template``."""
    count, checked = len(children(template) or ()), len(_branches(template))
    if isinstance(template, (list, tuple)):
        if isinstance(value, (list, tuple)) and len(value) == count:
            return value[key]
        if checked == count and getattr(value, "shape", ())[axis : axis + 1] == (count,):
            return np.take(_dense(value), key, axis=axis)
    elif hasattr(template, "keys") and hasattr(value, "keys") and key in value:
        return value[key]
    elif isinstance(key, str) and hasattr(value, key):
        return getattr(value, key)
    if checked == 1:
        return value
    raise _wrong(
        f"{path} is {_seen(value)}, expected {_name(template)} of {count} with the part {key!r}",
        where=path,
        remedy="return the same tree, with a derivative in place of every array",
    )


def _block(result: Any, output: Leaf, leaf: Leaf, imaginary: int) -> Array:
    value = _as_array(result, output, leaf)
    expected = output.shape + leaf.shape
    one_entry = value.shape == leaf.shape and all(size == 1 for size in output.shape)
    if value.shape != expected and not one_entry:
        raise _wrong(
            f"jac returned shape {value.shape} for {leaf.path} of shape {leaf.shape} and {output.path} "
            f"of shape {output.shape}, expected {expected}",
            where=leaf.path,
            remedy=_remedy(value.shape, output.shape, leaf.shape),
        )
    return _real_block(value.reshape(expected), output, leaf, imaginary)


def _as_array(result: Any, output: Leaf, leaf: Leaf) -> npt.NDArray[Any]:
    try:
        value = _dense(result)
    except ValueError:  # ragged
        value = np.empty(0, object)
    if value.dtype.kind not in "biufc":
        raise _wrong(
            f"jac returned {_seen(result)} for {leaf.path} and {output.path}, which is no array of numbers",
            where=leaf.path,
            remedy=f"return an array of shape {output.shape + leaf.shape}",
        )
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _dense(value: Any) -> npt.NDArray[Any]:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)


def _real_block(value: npt.NDArray[Any], output: Leaf, leaf: Leaf, imaginary: int) -> Array:
    """Expand complex numbers to pairs of reals: -> (places of the output, places of the input)."""
    if not (output.complex or leaf.complex) and np.iscomplexobj(value) and np.any(value.imag != 0):
        raise _wrong(
            f"jac returned complex numbers for {leaf.path}, but {leaf.path} and {output.path} are real",
            where=leaf.path,
            remedy="return the real derivative",
        )
    entries = value.reshape(output.shape + leaf.shape + (1, 1))
    re, im = entries.real, entries.imag
    if output.complex and leaf.complex:
        pairs = np.block([[re, -im], [im, re]])
    elif output.complex:
        pairs = np.concatenate([re, im], axis=-2)
    elif leaf.complex:
        pairs = np.concatenate([re, imaginary * im], axis=-1)
    else:
        pairs = re
    a, b = len(output.shape), len(leaf.shape)
    order = (*range(a), a + b, *range(a, a + b), a + b + 1)
    return pairs.transpose(order).reshape(output.size, leaf.size)


def _remedy(got: tuple[int, ...], out: tuple[int, ...], in_: tuple[int, ...]) -> str:
    expected = out + in_
    if got == in_ + out:
        return "this is the transpose; outputs come first: return jac.T"
    if np.prod(got) == np.prod(expected):
        return f"nothing is broadcast or reshaped: return jac.reshape({expected})"
    if not got:
        return "one number is not broadcast; return one derivative for each entry"
    return f"return shape {expected}: the output's axes, then the input's"


def _seen(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{_name(value)} of {len(value)}"
    return f"an array of shape {value.shape}" if hasattr(value, "shape") else _name(value)


def _name(value: Any) -> str:
    return f"a {type(value).__name__}"


def _wrong(evidence: str, where: str, remedy: str) -> Defect:
    return Defect(Finding("wrong_shape", evidence, where=where, remedy=remedy))

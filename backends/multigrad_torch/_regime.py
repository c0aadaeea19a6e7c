"""In which arithmetic the function is evaluated: float64 wherever that is the same function, else as it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from multigrad import _precision
from multigrad._batches import Batched
from multigrad._findings import Finding
from multigrad._precision import DOUBLE, Sample
from multigrad.backends import Array
from multigrad_torch._audit import Audit
from multigrad_torch._batch import Batch
from multigrad_torch._dtypes import roundoff
from multigrad_torch._program import Program
from multigrad_torch._reverse import Reverse

SINGLE = torch.finfo(torch.float32).eps


def settle(program: Program, x: Array, seed: int) -> float:
    """Decide it at the point ``x``, shape (n,), leave the program so, and note what was decided and seen.

    Returns:
        The unit roundoff of that arithmetic.
    """
    m = sum(leaf.size for leaf in program.outputs.leaves)
    u = _precision.cotangent(m, seed)
    low = _low_dtypes(program, x, u)
    if not low:
        return DOUBLE
    eps, names = roundoff(low), ", ".join(sorted(str(d).removeprefix("torch.") for d in low))
    points, as_written = _precision.sampled(
        lambda point: Sample(_value(program, point), _gradient_if_any(program, point, u)),
        [_rounded(program, point) for point in _precision.neighbours(x, eps, seed)],
    )
    gradient = _no_gradient if any(sample.gradient is None for sample in as_written) else _gradient
    program.promote(True)
    try:
        doubled = [Sample(_value(program, point), gradient(program, point, u)) for point in points]
    except Exception as error:  # of any type: it is the user's code that meets float64
        return _give_up(program, eps, names, f"in float64 it raises {type(error).__name__}: {_first_line(error)}")
    inputs = [slot.leaf for slot in program.slots]
    seen = _precision.examine(as_written, doubled, eps, inputs, program.outputs.leaves)
    if seen.fault:
        return _give_up(program, eps, names, f"its values in float64 are other ones: {seen.fault}")
    if seen.identical and all(slot.dtype is slot.given for slot in program.slots):
        program.promote(False)
        return DOUBLE
    for finding in seen.findings:
        program.note(finding)
    return _residual(program, x, seed, m, names)


def _low_dtypes(program: Program, x: Array, u: Array) -> set[torch.dtype]:
    """The low-precision dtypes that the user's own run and its backward compute in."""
    leaves = {slot.given for slot in program.slots} | program.outputs.dtypes
    try:
        with Audit() as audit:
            _value(program, x)
            _gradient_if_any(program, x, u)
    except Exception:  # some code does not run under a dispatch mode
        audit.operations.clear()
    return {d for d in leaves | {dtype for _, dtype in audit.operations} if roundoff([d]) > DOUBLE}


def _value(program: Program, row: Array) -> Array:
    with program.state:
        return program.plain(row)


def _gradient(program: Program, row: Array, u: Array) -> Array | None:
    gradient: Array = Reverse(program, row)(u[None])[0]
    return gradient


def _gradient_if_any(program: Program, row: Array, u: Array) -> Array | None:
    try:
        return _gradient(program, row, u)
    except Exception:  # the core meets it again, and reports it
        return None


def _no_gradient(program: Program, row: Array, u: Array) -> None:
    return None


def _rounded(program: Program, row: Array) -> Array:
    """The nearest point that the user's dtypes can hold."""
    return np.concatenate([slot.numbers(part) for slot, part in zip(program.slots, program.values(row), strict=True)])


def _give_up(program: Program, eps: float, names: str, why: str) -> float:
    program.promote(False)
    program.note(
        Finding(
            "promotion",
            f"evaluated in {names} as it is written, since {why}; only errors well above {eps:.1g} can be seen",
            remedy="make the function run in float64, and pass float64 inputs",
        )
    )
    return eps


def _residual(program: Program, x: Array, seed: int, m: int, names: str) -> float:
    """The roundoff that is left in float64, to judge by the noise of the values."""
    batch = Batch(program)

    def call(X: Array) -> Array:
        return batch(X) if len(X) > 1 else _value(program, X[0])[None]

    noise = _precision.foreign_noise(Batched(call, m), x, seed)
    if not noise:
        program.note(Finding("promotion", f"written for {names}, evaluated in float64"))
        return DOUBLE
    left = ", ".join(_left(program, x)) or "none that torch can see: NumPy, or a kernel of your own?"
    program.note(
        Finding(
            "promotion",
            f"written for {names}, evaluated in float64 except for a part that is not: values carry noise of {noise:.1g}",
            remedy=f"low-precision operations left: {left}",
        )
    )
    return max(SINGLE, 4 * noise)


def _left(program: Program, x: Array) -> Sequence[str]:
    with Audit() as audit:
        _value(program, x)
    return [f"{name} ({str(dtype).removeprefix('torch.')})" for name, dtype in audit.operations]


def _first_line(error: Any) -> str:
    return str(error).strip().partition("\n")[0]

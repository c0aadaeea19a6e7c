"""In which arithmetic the function is evaluated: float64 wherever that is the same function, else as it is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import torch

from multigrad import precision, residual
from multigrad.backends import Array
from multigrad.batches import Batched
from multigrad.errors import first_line
from multigrad.precision import DOUBLE, Sample
from multigrad_torch._batch import Batch
from multigrad_torch._data.dtypes import WIDE, roundoff
from multigrad_torch._data.leaves import flat_numbers
from multigrad_torch._program import Program
from multigrad_torch._promotion.audit import Audit
from multigrad_torch._reverse import Reverse


def is_double(program: Program) -> bool:
    """Whether all that can be seen from outside is in float64: inputs, outputs, and the tensors that are captured.

    Looking inside costs as much as a few evaluations. Low precision there is noise in the values, and is looked for
    when the check meets it.
    """
    dtypes = {slot.given for slot in program.slots} | program.outputs.dtypes | {t.dtype for t in program.state.tensors}
    return roundoff(dtypes) <= DOUBLE


def settle(program: Program, x: Array, seed: int) -> tuple[float, float]:
    """Decide it at the point ``x``, shape (n,), leave the program so, and note what was decided and seen.

    Returns:
        The unit roundoff of that arithmetic, and that of the one which the function is written for.
    """
    m = sum(leaf.size for leaf in program.outputs.leaves)
    u = precision.cotangent(m, seed)
    low, here = _audited(program, x, u)
    if not low:
        return DOUBLE, DOUBLE
    eps, names = roundoff(low), sorted(map(_name, low))
    points, as_written = precision.sampled(
        lambda point: here if point is x and here else _sample(program, point, u),
        [x, *(_rounded(program, point) for point in precision.neighbours(x, eps, seed))],
    )
    with_gradient = all(sample.gradient is not None for sample in as_written)
    program.promote(True)
    try:
        doubled = [_sample(program, point, u, with_gradient) for point in points]
    except Exception as error:  # noqa: BLE001, of any type: it is the user's code that meets float64
        return _give_up(program, eps, names, f"in float64 it raises {type(error).__name__}: {first_line(error)}")
    inputs = [slot.leaf for slot in program.slots]
    seen = precision.examine(as_written, doubled, eps, inputs, program.outputs.leaves)
    if seen.fault:
        return _give_up(program, eps, names, f"its values in float64 are other ones: {seen.fault}")
    if seen.identical and all(slot.dtype is slot.given for slot in program.slots):
        program.promote(False)
        return DOUBLE, DOUBLE
    for finding in seen.findings:
        program.note(finding)
    return _residual(program, x, seed, names), eps


def _audited(program: Program, x: Array, u: Array) -> tuple[set[torch.dtype], Sample | None]:
    """The low-precision dtypes that the user's own run and its backward compute in, and what both of these gave."""
    sample = None
    with Audit() as audit, suppress(Exception):  # some code does not run under a dispatch mode
        sample = _sample(program, x, u)
    dtypes = {slot.given for slot in program.slots} | program.outputs.dtypes
    if sample:
        dtypes |= {dtype for _, dtype in audit.operations}
    whole = sample if sample and sample.gradient is not None else None
    return {dtype for dtype in dtypes if roundoff([dtype]) > DOUBLE}, whole


def _sample(program: Program, row: Array, u: Array, with_gradient: bool | None = None) -> Sample:
    """One sample; its gradient is wanted, or not wanted, or, for None, taken if there is one."""
    if with_gradient is not False:
        try:
            return Sample(*Reverse(program, row).sample(u))
        except Exception:
            if with_gradient:
                raise
    # The core meets what the gradient raises again, and reports it.
    return Sample(_value(program, row), None)


def _value(program: Program, row: Array) -> Array:
    with program.state:
        return program.plain(row)


def _rounded(program: Program, row: Array) -> Array:
    """The nearest point that the user's dtypes can hold."""
    return np.concatenate([flat_numbers(part) for part in program.values(row)])


def _give_up(program: Program, eps: float, names: Sequence[str], why: str) -> tuple[float, float]:
    program.promote(False)
    program.note(precision.as_written(names, eps, why))
    return eps, eps


def unsettle(program: Program, x: Array, seed: int, eps: float, written: float) -> float:
    """Look for arithmetic of the roundoff ``written`` in what seems to be of roundoff ``eps``; note it if it is there.

    Returns:
        The unit roundoff of the arithmetic after all.
    """
    if not program.promoted or eps >= written or not residual.has_steps(_values(program), x, written, seed):
        return eps
    names = [_name(dtype) for dtype in WIDE if roundoff([dtype]) == written]
    program.note(residual.partly_coarse(names[:1], "", written, _remedy(program, x)))
    return written


def _residual(program: Program, x: Array, seed: int, names: Sequence[str]) -> float:
    """The roundoff that is left in float64, to judge by the noise of the values."""
    noise = residual.foreign_noise(_values(program), x, seed)
    program.note(residual.in_double(names, "", noise, _remedy(program, x) if noise else ""))
    return residual.residual_eps(noise)


def _values(program: Program) -> Batched:
    batch = Batch(program)

    def call(X: Array) -> Array:
        return batch(X) if len(X) > 1 else _value(program, X[0])[None]

    return Batched(call, sum(leaf.size for leaf in program.outputs.leaves))


def _remedy(program: Program, x: Array) -> str:
    return f"low-precision operations left: {_left(program, x)}"


def _left(program: Program, x: Array) -> str:
    with Audit() as audit:
        _value(program, x)
    named = [f"{name} ({_name(dtype)})" for name, dtype in audit.operations]
    return ", ".join(named) or "none that torch can see (NumPy, or a kernel of your own?)"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

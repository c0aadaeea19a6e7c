"""The first calls: the values at the point, twice, and why they differ if they do."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array
from multigrad.findings import Finding
from multigrad_torch._autograd.samples import REPARAMETERISED, samples_implicitly
from multigrad_torch._data.outputs import Outputs, pack
from multigrad_torch._graph import Graph, trace
from multigrad_torch._program import Program


def repeats(program: Program, x: Array) -> tuple[Array, Graph | None]:
    """The values of two calls at x, random state not reset in between; shape (2, m).

    The second call has inputs that require a gradient; where it gives another value, a plain one takes its place.
    Sets ``program.outputs`` and notes what explains a difference: random numbers, or state that a call leaves behind.

    Returns:
        The values, and the graph of the second call, if it may be used again.
    """
    state = program.state
    with state:
        with state.learning():
            returned = program.first(x)
            program.outputs = Outputs(returned)
            first = pack(program.outputs.take(returned))
        drawn = state.get_random()
        state.restore()
        touched = state.written or state.rebound
        with program.params.tracked():
            graph, outputs = trace(program, x)
            program.outputs.attach(outputs)
            if samples_implicitly(outputs):
                program.note(REPARAMETERISED)
            second = tracked = pack(outputs)
        same = _equal(first, tracked)
        if not same:
            state.restore()
            state.set_random(drawn)
            second = program.plain(x)
    random = not _equal(first, second)
    if not (random or touched or same):
        _note_other_value(program, first, tracked)
    if random and _equal(first, _from(program, x, state.random)):
        program.note(_random(first, second))
    if touched:
        _note_memory(program, x, drawn)
    if program.rewritten:
        note_rewritten(program, x, drawn, program.rewritten)
    return np.stack([first, second]), graph if same and not (touched or state.written) else None


def _note_other_value(program: Program, plain: Array, tracked: Array) -> None:
    """Look for another function, not for rounding: the cube root of the unit roundoff is allowed, of the largest entry."""
    for leaf in program.outputs.leaves:
        one, other = plain[leaf.slice], tracked[leaf.slice]
        scale = np.max(np.abs(one), initial=0.0, where=np.isfinite(one))
        eps = torch.finfo(getattr(torch, leaf.dtype)).eps
        with np.errstate(invalid="ignore"):
            agree = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= eps ** (1 / 3) * scale)
        if not agree.all():
            k = int(np.argmin(agree))
            program.note(
                Finding(
                    "primal_mismatch",
                    f"with inputs that require a gradient the value is {float(other[k])!r}, in a plain call "
                    f"{float(one[k])!r} ({np.count_nonzero(~agree)} of {len(agree)} entries differ)",
                    where=leaf.place(leaf.start + k),
                    remedy="the forward must not depend on requires_grad or ctx.needs_input_grad; state that a call "
                    "leaves in plain Python objects does this as well",
                )
            )


def again(program: Program, x: Array, before: Array) -> Array:
    """The values in float64 where those in low precision were ``before``, shape (2, m): twice the same if they were."""
    with program.state:
        value = program.plain(x)
    return np.stack([value, value if _equal(*before) else value + (before[1] - before[0])])


def _from(program: Program, x: Array, random: list[Tensor]) -> Array:
    with program.state as state:
        state.set_random(random)
        return program.plain(x)


def _note_memory(program: Program, x: Array, drawn: list[Tensor]) -> None:
    """Call again without putting back what a call has changed, from the same random numbers."""
    with program.state as state:
        state.set_random(drawn)
        fresh = program.plain(x)
        state.set_random(drawn)
        after = program.plain(x)
    if not _equal(fresh, after) and _equal(fresh, _from(program, x, drawn)):
        program.note(
            Finding(
                "mutates_state",
                f"the function changes tensors or module attributes that its own value depends on: a second call at "
                f"the same point differs by up to {_difference(fresh, after):.3g}",
                remedy="keep what a call remembers out of its value, or reset it in the function; "
                "it was put back after every call here",
            )
        )


def note_rewritten(program: Program, x: Array, drawn: list[Tensor], paths: Iterable[str]) -> None:
    """Report fixed inputs that are written to, unless the value does not depend on what is written.

    Running statistics are no more than a record, whereas a scratch array that is read again makes every call another.
    """
    with program.state as state:
        state.set_random(drawn)
        after = program.repeated(x)
    if not _equal(_from(program, x, drawn), after):
        for path in paths:
            program.note_written(path)


def _random(first: Array, second: Array) -> Finding:
    return Finding(
        "nondeterministic_forward",
        f"the function draws random numbers (dropout, torch.rand...): two calls at the same point differ by up to "
        f"{_difference(first, second):.3g}; from the same state of the generator they agree",
        remedy="call .eval(), pass the noise as an input, or seed the generator inside the function",
    )


def _equal(one: Array, other: Array) -> bool:
    return one.tobytes() == other.tobytes() or np.array_equal(one, other, equal_nan=True)


def _difference(one: Array, other: Array) -> float:
    return float(np.nanmax(np.abs(one - other), initial=0.0))

"""Sides: one function in one framework, as one of several that ought to be the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from multigrad._differences import noise as _noise
from multigrad._differences.directions import Index, scale_of
from multigrad._report.leg import Leg
from multigrad._report.report import GradReport
from multigrad._report.sparse_leg import SparseLeg
from multigrad._run import Settings, run_check
from multigrad.backends import Array, Backend, FlatFunction, Options
from multigrad.batches import Batched
from multigrad.consistency.matching import Axes, Layout, Pair
from multigrad.errors import InvalidUse, Unsupported

DOUBLE = 2.0**-52
ROUNDOFF = {"float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def roundoff(dtype: str) -> float:
    """The unit roundoff of a dtype by name."""
    return ROUNDOFF.get(dtype, DOUBLE)


@dataclass
class Side:
    """One backend's function.

    Attributes:
        name: the backend's.
        f: its flat function.
        layout: how its leaves lie as compared with the reference's.
        inputs: its checked inputs beside the reference's.
        outputs: its outputs beside the reference's.
        report: what ``check_grad`` says of it alone; None until it has been checked.
        borrowed: its function has no derivative of its own, and was checked against another side's.
        outline: which of the lead's outputs it has, and how many others.
        signs: factors that its outputs may be multiplied by (eigenvectors), in common places; NaN: any phase.
    """

    name: str
    f: FlatFunction
    layout: Layout
    inputs: Sequence[Pair] = ()
    outputs: Sequence[Pair] = ()
    report: GradReport | None = None
    borrowed: bool = False
    outline: tuple[frozenset[str], int] = (frozenset(), 0)
    signs: Array = field(default_factory=lambda: np.ones(1))

    @property
    def rows(self) -> Index:
        """The place of each common output in the side's own flat output, shape (m,)."""
        return places(self.outputs)

    @property
    def columns(self) -> Index:
        """The place of each common input in the side's own flat input, shape (n,)."""
        return places(self.inputs)

    @property
    def orders(self) -> dict[str, Axes]:
        """The order of the axes of the leaves that lie otherwise than the reference's, by path."""
        return {pair.leaf.path: pair.axes for pair in (*self.inputs, *self.outputs) if pair.axes is not None}

    @property
    def precision(self) -> float:
        """The unit roundoff of what it was written for: evaluated in float64, it has constants of that precision."""
        return max([self.f.eps, *(roundoff(pair.leaf.dtype) for pair in (*self.inputs, *self.outputs))])

    @property
    def values(self) -> Array:
        """The plain call's values in common places, shape (m,)."""
        return np.asarray(self.signs * self.f.repeats[0, self.rows])

    @property
    def as_written(self) -> Array:
        """The same at the user's own precision, where the adapter evaluates low precision in float64."""
        plain = getattr(self.f, "as_written", self.f.repeats[0])
        return np.asarray(self.signs * plain[self.rows])

    @cached_property
    def _measured(self) -> _noise.Noise:
        rng = np.random.default_rng(0)
        x = self.f.x
        scale = np.where(np.isfinite(x), scale_of(x), 0.0)
        with np.errstate(all="ignore"):
            rows = Batched(self.f, self.f.repeats.shape[1])(_noise.lines(x, scale, self.f.eps, rng))
            return _noise.measure(rows, self.f.eps)

    @property
    def noise(self) -> Array:
        """Standard deviation of the values' rounding errors, in common places, shape (m,)."""
        return self._measured.sigma[self.rows]

    @property
    def relative_noise(self) -> Array:
        """The same as a fraction of the values."""
        return self._measured.relative[self.rows]

    @property
    def legs(self) -> tuple[Leg | SparseLeg, ...]:
        """The comparisons with the numerical Jacobian, one for each mode compared in full."""
        return () if self.report is None else self.report.legs

    @property
    def differentiated(self) -> bool:
        """Whether it has a derivative of its own."""
        return bool(self.legs) and not self.borrowed

    def spread(self, matrix: Array, missing: float = 0.0, columns: Index | None = None) -> Array:
        """Bring a matrix over attached outputs and inputs of its own, as a leg has it, to common places (m, n).

        ``columns`` are the own inputs to take, if not all common ones.
        """
        assert self.report is not None
        columns = self.columns if columns is None else columns
        starts = {leaf.path: leaf.start for leaf in self.report.outputs}
        out = np.full((self.rows.size, columns.size), missing)
        at = 0
        for pair in self.outputs:
            if pair.leaf.path in starts:
                rows = pair.places - pair.leaf.start + starts[pair.leaf.path]
                out[at : at + pair.leaf.size] = matrix[np.ix_(rows, columns)]
            at += pair.leaf.size
        return out

    def gather(self, matrix: Array) -> Array:
        """Bring a matrix in common places to its own: shape (own m, own n), zero where nothing is common."""
        out = np.zeros((self.f.repeats.shape[1], self.f.x.size))
        out[np.ix_(self.rows, self.columns)] = np.where(np.isfinite(self.signs), self.signs, 1.0)[:, None] * matrix
        return out

    @property
    def signed(self) -> Array:
        """The signs as a column, or 1 in the place of each."""
        return np.broadcast_to(self.signs, self.rows.shape)[:, None]


def places(pairs: Sequence[Pair]) -> Index:
    """The sides' own places of all pairs, in the reference's order."""
    return np.concatenate([np.zeros(0, np.intp), *(pair.places for pair in pairs)])


def vector(side: Side, common: Array) -> Array:
    """Bring a vector over the outputs, in common places, to the side's own: shape (own m,), zero elsewhere."""
    out = np.zeros(side.f.repeats.shape[1])
    out[side.rows] = np.where(np.isfinite(side.signs), side.signs, 0.0) * common
    return out


def flatten(backend: Backend, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> FlatFunction:
    """Make the flat function; one without a derivative takes part with its values."""
    try:
        try:
            return backend.flatten(fn, inputs, options)
        except (InvalidUse, Unsupported) as error:
            if error.kind not in ("no_derivative", "unsupported"):
                raise
            return backend.flatten(fn, inputs, replace(options, jac=_no_derivative))
    except Exception as error:
        error.add_note(f"raised by the function for backend {backend.name!r}")
        raise


def _no_derivative(*_: Any) -> Any:
    raise Unsupported("it has no derivative of its own; give one, jac={backend: ...}")


def check(side: Side, modes: Sequence[str], rtol: float | None, seed: int) -> None:
    """Compare the side's derivative with its own numerical one."""
    side.report = replace(run_check(side.f, Settings(modes=modes, rtol=rtol, seed=seed)), backend=side.name)


def check_with(side: Side, jacobian: Array, rtol: float | None, seed: int) -> None:
    """Compare another's Jacobian, in common places, with the numerical one of a side that has none of its own."""
    lent = _Lent(side.f, side.gather(jacobian))
    side.report = replace(run_check(lent, Settings(modes=("reverse",), rtol=rtol, seed=seed)), backend=side.name)
    side.borrowed = True


class _Lent:
    """A flat function with a Jacobian that is not its own."""

    def __init__(self, f: FlatFunction, jacobian: Array) -> None:
        self._f = f
        self._jacobian = jacobian
        self.x, self.inputs, self.outputs = f.x, f.inputs, f.outputs
        self.fixed, self.eps, self.repeats, self.findings = f.fixed, f.eps, f.repeats, f.findings

    def __call__(self, X: Array, /) -> Array:
        return self._f(X)

    def vjp(self, U: Array, /) -> Array:
        return U @ self._jacobian

    def jvp(self, V: Array, /) -> Array:
        raise Unsupported("a Jacobian on loan has one mode")

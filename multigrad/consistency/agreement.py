"""Agreement: whether two sides say the same, entry by entry, in values and in derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from multigrad._comparison.verdict import Codes, Rules, Status
from multigrad._differences.directions import Mask
from multigrad.backends import Array
from multigrad.consistency.matching import Pair
from multigrad.consistency.sides import Side

# Two right algorithms differ by the rounding of each; the values' own jitter is the measure of it.
JITTERS = 16
# Below so many units in the last place nothing needs to be measured.
FEW_ULP = 8


@dataclass(frozen=True)
class Claim:
    """What one side says the Jacobian is, in common places; all shapes (m, n).

    Attributes:
        mode: ``reverse`` or ``forward``; ``numerical`` if it is no more than an estimate of its own function's.
        jacobian: the entries; NaN where nothing is said.
        bar: bounds on the errors of the entries; 0 for a derivative by rules.
        numeric: the estimates of the side's own function's derivatives.
        numeric_bar: bounds on their errors.
        status: what is said of each entry by the side's own numerical Jacobian.
    """

    mode: str
    jacobian: Array
    bar: Array
    numeric: Array
    numeric_bar: Array
    status: Codes

    @property
    def estimate(self) -> Claim:
        """What the side's own function says, whatever its rules do."""
        return Claim("numerical", self.numeric, self.numeric_bar, self.numeric, self.numeric_bar, self.status)


def claims(side: Side) -> list[Claim]:
    """What the side says, mode by mode."""
    made = []
    for leg in side.legs:
        signs = side.signed
        numeric, bar = signs * side.spread(leg.numeric), side.spread(leg.bar)
        status = side.spread(leg.status.astype(float), Status.UNRESOLVED).astype(np.int8)
        if side.borrowed:  # at a kink an estimate is no derivative
            unsure = np.where(status == Status.NONDIFFERENTIABLE, np.inf, bar)
            made.append(Claim("numerical", numeric, unsure, numeric, unsure, np.zeros_like(status)))
        else:
            made.append(Claim(leg.mode, signs * side.spread(leg.analytical), np.zeros_like(bar), numeric, bar, status))
    return made


def compare_values(a: Side, b: Side, rtol: float) -> Codes:
    """Give every common output its status, shape (m,).

    OK is agreement within rounding; INCONCLUSIVE is a difference beyond rounding, too small to be told from another
    algorithm's; MISMATCH is more.
    """
    x, y = a.values, b.values
    size = np.maximum(magnitude(x, a.outputs), magnitude(y, b.outputs))
    eps = max(a.precision, b.precision)
    with np.errstate(all="ignore"):
        difference = np.abs(x - y)
        same = (x == y) | (np.isnan(x) & np.isnan(y)) | ~np.isfinite(a.signs * b.signs)
        # Beside an infinite value every difference is within a fraction of it.
        finite = np.isfinite(difference)
        ok = same | (finite & (difference <= FEW_ULP * eps * size))
        if not ok.all():
            ok |= finite & (difference <= FEW_ULP * eps * size + JITTERS * (a.noise + b.noise))
        close = finite & (difference <= max(rtol, FEW_ULP * eps) * size)
    status = np.where(close, Status.INCONCLUSIVE, Status.MISMATCH)
    return np.where(ok, Status.OK, status).astype(np.int8)


def compare_jacobians(a: Side, b: Side, one: Claim, other: Claim, rtol: float | None) -> Codes:
    """Give every entry its status, shape (m, n); UNRESOLVED where a bar is too wide to tell."""
    rules = Rules.for_eps(max(a.f.eps, b.f.eps), rtol, 0.0)
    x, y, bar = one.jacobian, other.jacobian, one.bar + other.bar
    with np.errstate(all="ignore"):
        difference = np.abs(x - y)
        size = np.where(np.isfinite(difference), np.maximum(np.abs(x), np.abs(y)), 0.0)
        allowed = rules.rtol * size + 64 * rules.eps * _scale(x, y, a)
        if max(a.precision, b.precision) > rules.eps:
            allowed = allowed + FEW_ULP * max(a.precision, b.precision) * _scale(x, y, a)
        agrees = (difference <= allowed + bar) | (np.isnan(x) & np.isnan(y)) | (x == y)
        if not agrees.all():
            row = np.max(size, axis=1, keepdims=True, initial=0.0, where=np.isfinite(size))
            noise = (
                JITTERS * (a.relative_noise + b.relative_noise)[:, None] * np.maximum(row, np.abs(a.values)[:, None])
            )
            agrees |= difference <= allowed + noise + bar
            allowed = allowed + noise
        told = bar <= np.maximum(allowed, rules.resolution * size)
        wrong = ~(difference <= allowed + 2 * bar) & ~agrees & np.isfinite(bar)
    status = np.where(agrees & told, Status.OK, Status.UNRESOLVED)
    status = np.where(wrong, Status.MISMATCH, status)
    free = ~np.isfinite(a.signed * b.signed)
    return np.where(free, Status.UNRESOLVED, status).astype(np.int8)


def legal_choices(one: Claim, other: Claim, differ: Codes) -> Mask:
    """Entries that differ at a kink where each side has made a choice that is legal by its own function."""
    kinks = np.maximum(one.status, other.status) == Status.NONDIFFERENTIABLE
    return np.asarray((differ == Status.MISMATCH) & kinks)


def _scale(x: Array, y: Array, side: Side) -> Array:
    """The largest entry of the block that an entry belongs to, or the value if that is larger: dust around zeros."""
    size = np.fmax(np.abs(x), np.abs(y))
    size = np.where(np.isfinite(size), size, 0.0)
    scale = np.empty_like(size)
    values = np.abs(np.where(np.isfinite(side.values), side.values, 0.0))[:, None]
    for rows in spans(side.outputs):
        for columns in spans(side.inputs):
            scale[rows, columns] = np.maximum(size[rows, columns].max(initial=0.0), values[rows])
    return scale


def spans(pairs: Sequence[Pair]) -> list[slice]:
    """Where each leaf lies in common places."""
    ends = np.cumsum([0, *(pair.leaf.size for pair in pairs)])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def magnitude(values: Array, pairs: Sequence[Pair]) -> Array:
    """Absolute values; of both parts of a complex number, its modulus."""
    size = np.abs(values)
    for pair, span in zip(pairs, spans(pairs), strict=True):
        if pair.leaf.complex:
            modulus = np.hypot(size[span][::2], size[span][1::2])
            size[span] = np.repeat(modulus, 2)
    return size

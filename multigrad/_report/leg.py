"""One mode compared in full, entry by entry; an entry and a block of it as the report shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from multigrad._comparison.verdict import Codes, Rules, Status, Verdict, forgive
from multigrad._differences.directions import Mask
from multigrad.backends import Array, Leaf

SHOWN = 8  # worst entries of a mode


@dataclass(frozen=True)
class Entry:
    """One entry of the Jacobian that is worth showing.

    Attributes:
        output: path and index of the output, ``output[2]``.
        input: path and index of the input, ``inputs[0]["w"][1, 0]``.
        mode: ``reverse`` or ``forward``.
        analytical: the derivative under test.
        numeric: the estimate of the true one.
        bar: the bound on the estimate's error.
        tolerance: what the two may differ by besides the bar.
        status: what is said of it.
    """

    output: str
    input: str
    mode: str
    analytical: float
    numeric: float
    bar: float
    tolerance: float
    status: Status

    @property
    def error(self) -> float:
        """Absolute difference of the two sides."""
        return abs(self.analytical - self.numeric)

    def to_dict(self) -> dict[str, Any]:
        """Return it as values that ``json.dumps`` takes."""
        return {
            "output": self.output,
            "input": self.input,
            "mode": self.mode,
            "analytical": _number(self.analytical),
            "numeric": _number(self.numeric),
            "bar": _number(self.bar),
            "status": self.status.name.lower(),
        }


@dataclass(frozen=True)
class Block:
    """The part of the Jacobian that belongs to one output leaf and one input leaf.

    Complex leaves count as pairs of reals, so that a block has shape (output places, input places).

    Attributes:
        output: path of the output leaf.
        input: path of the input leaf.
        mode: the mode that ``analytical`` comes from.
        numeric: the estimates, shape (rows, columns).
        analytical: the derivatives under test, likewise.
        bar: bounds on the error of ``numeric``, likewise.
        status: a ``Status`` for each entry, likewise.
    """

    output: str
    input: str
    mode: str
    numeric: Array
    analytical: Array
    bar: Array
    status: Codes

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst entry."""
        return Status(int(self.status.max(initial=0))).verdict


@dataclass(frozen=True)
class Leg:
    """One mode compared in full: what the Jacobian is by the mode, and by differences. All shapes (m, n).

    Attributes:
        mode: ``reverse`` or ``forward``.
        analytical: the Jacobian by that mode.
        numeric: the estimates.
        bar: bounds on their errors.
        status: a ``Status`` for each entry.
        unexplored: inputs that were left half looked at because so many others are wrong.
    """

    mode: str
    analytical: Array
    numeric: Array
    bar: Array
    status: Codes
    unexplored: int = 0
    kept: ClassVar[bool] = True

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst entry."""
        return Status(int(self.status.max(initial=0))).verdict

    @property
    def sharpness(self) -> float:
        """The largest relative error that an entry called ok might still have; one that is 0 has none."""
        return sharpness_of(self.analytical, self.numeric, self.bar, self.status)

    def mismatches_within(self, allowed: Array) -> Mask:
        """The mismatches that are no larger than ``allowed``, of shape (m, n) or (m, 1), and twice the bar."""
        with np.errstate(all="ignore"):  # derivatives that are not finite
            error = np.abs(self.analytical - self.numeric)
            return np.asarray((self.status == Status.MISMATCH) & (error <= allowed + 2 * self.bar))

    def with_status(self, status: Status, places: Mask) -> Leg:
        """The same with another status at the ``places``, a mask of shape (m, n)."""
        return replace(self, status=np.where(places, np.int8(status), self.status))

    @property
    def largest_of_row(self) -> Array:
        """The largest derivative of each output, those that are not finite apart; shape (m, 1)."""
        size = np.abs(self.analytical)
        return np.asarray(np.max(size, axis=1, keepdims=True, initial=0.0, where=np.isfinite(size)))

    def without_mismatch(self) -> Leg:
        """The same where what was a mismatch cannot be told."""
        return replace(self, status=forgive(self.status))

    def reaches(self, leaf: Leaf) -> bool:
        """Whether some derivative with respect to the leaf is not 0."""
        return bool(self.analytical[:, leaf.slice].any())

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.status.size

    def count(self, status: Status) -> int:
        """How many entries have that status."""
        return int(np.count_nonzero(self.status == status))

    def worst(self, rules: Rules) -> Iterator[tuple[int, int, float, float, float, Status]]:
        """The worst entries: row, column, analytical, numeric, bar and status."""
        for k in furthest(self.analytical, self.numeric, self.bar, self.status, rules.rtol, rules.atol):
            i, j = divmod(int(k), self.status.shape[1])
            a, e, bar = (float(part[i, j]) for part in (self.analytical, self.numeric, self.bar))
            yield i, j, a, e, bar, Status(int(self.status[i, j]))


def sharpness_of(analytical: Array, numeric: Array, bar: Array, status: Codes) -> float:
    """The largest relative error that an entry called ok might still have; one that is 0 has none."""
    size = np.maximum(np.abs(analytical), np.abs(numeric))
    told = (status == Status.OK) & (analytical != 0)
    with np.errstate(invalid="ignore"):  # infinite derivatives
        error = np.fmax(bar, np.abs(analytical - numeric))
    return float(np.max(error / np.where(told, size, 1.0), initial=0.0, where=told))


def furthest(
    analytical: Array, numeric: Array, bar: Array, status: Codes, rtol: float, atol: Array | float
) -> npt.NDArray[np.intp]:
    """Flat indices of the entries that are furthest from agreement."""
    size = np.maximum(np.abs(analytical), np.abs(numeric))
    with np.errstate(all="ignore"):  # infinite derivatives
        excess = np.abs(analytical - numeric) / np.maximum(rtol * size + atol + bar, 1e-300)
    rank = (status * 1e6 + np.minimum(np.where(np.isfinite(excess), excess, np.inf), 1e5)).ravel()
    count = min(SHOWN, rank.size)
    return np.argpartition(-rank, count - 1)[:count] if count else np.empty(0, np.intp)


def _number(value: float) -> float | str:
    """JSON has no NaN or infinity."""
    return value if np.isfinite(value) else str(value)

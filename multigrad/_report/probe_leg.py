"""What probing one mode says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from multigrad._comparison.verdict import Codes, Rules, Status, Verdict
from multigrad.backends import Array

# (row, column, analytical, numeric, bar, status) of an entry of the Jacobian.
Named = tuple[int, int, float, float, float, Status]

# An error of this fraction of the norm of its row must show.
BLIND = 0.5


@dataclass(frozen=True)
class ProbeLeg:
    """One mode compared along random directions.

    Attributes:
        mode: ``reverse`` or ``forward``.
        shape: of the Jacobian, (m, n).
        named: the entries that were found to be wrong, or could not be told.
        told: the status of each output, or combination of outputs, over all directions; shape (k,).
        excess: by how much its products differ beyond rounding and bars, relative to the largest of its row; shape (k,).
        sees: the smallest error of one entry that all directions would show, relative to the same; shape (k,).
        probes: how many directions there were that move all inputs.
        rtol: by how much products of a right derivative may differ.
    """

    mode: str
    shape: tuple[int, int]
    named: tuple[Named, ...]
    told: Codes
    excess: Array
    sees: Array
    probes: int
    rtol: float

    def without_mismatch(self) -> ProbeLeg:
        """The same where what was a mismatch cannot be told."""
        told = [(*entry[:5], Status.INCONCLUSIVE if entry[5] is Status.MISMATCH else entry[5]) for entry in self.named]
        return replace(self, named=tuple(told), told=np.maximum(self.told, np.int8(Status.INCONCLUSIVE)))

    @property
    def unexplained(self) -> str:
        """What keeps the leg from being told, if it is products that differ."""
        if not (self.excess > self.rtol).any():
            return "rounding hides what one entry adds to its row" if self.blind else ""
        return (
            f"products of the {self.mode} derivative with random directions are off by {self.excess.max():.2g} of their "
            "row, but no single entry was found that is wrong"
        )

    @cached_property
    def verdict(self) -> Verdict:
        """Wrong if an entry is; not told if products differ by more than right entries could, or cannot be resolved."""
        if any(status is Status.MISMATCH for *_, status in self.named):
            return Verdict.MISMATCH
        if (self.excess > self.rtol).any() or (self.told == Status.INCONCLUSIVE).any() or self.blind:
            return Verdict.INCONCLUSIVE
        kinks = (self.told == Status.NONDIFFERENTIABLE).any()
        return Verdict.NONDIFFERENTIABLE if kinks else Verdict.OK

    @property
    def blind(self) -> bool:
        """Whether a row might be wrong altogether without its showing, or no row is large enough to be told."""
        return bool((self.sees > BLIND).any() or (len(self.told) and (self.told == Status.UNRESOLVED).all()))

    @property
    def sharpness(self) -> float:
        """The largest error of one entry that may have been missed, relative to the norm of its row."""
        return float(np.max(self.sees, initial=0.0, where=np.isfinite(self.sees)))

    @property
    def missed(self) -> float:
        """A bound on the probability that errors in many entries, of ten times that norm, cancel in all probes."""
        return math.pow(0.08, self.probes)

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    def count(self, status: Status) -> int:
        """How many entries were found to have that status; of those that were compared by themselves."""
        return sum(named[-1] is status for named in self.named)

    def worst(self, rules: Rules) -> Iterator[Named]:
        """The entries that were compared by themselves and are not right."""
        yield from self.named

    def to_dict(self) -> dict[str, Any]:
        """How sharp the probing was, as values that ``json.dumps`` takes."""
        return {"directions": self.probes, "one_entry_seen_from": self.sharpness, "many_entries_missed": self.missed}

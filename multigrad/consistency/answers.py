"""Answers: what is said of a comparison, and of one backend in one respect."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Consistency(enum.StrEnum):
    """The answer of a comparison, from best to worst."""

    OK = "ok"
    CONVENTION = "convention"
    INCONCLUSIVE = "inconclusive"
    MISMATCH = "mismatch"

    @property
    def severity(self) -> int:
        """Rank: the worst answer of the parts is the answer of the whole."""
        return list(Consistency).index(self)


@dataclass(frozen=True)
class Cell:
    """What is said of one column (value, reverse, forward) of one backend.

    Attributes:
        answer: the verdict; None where the backend has no such thing.
        note: the same in words, as in the table.
        sharpness: how large a relative difference might have gone unseen, or was seen.
    """

    answer: Consistency | None
    note: str
    sharpness: float = 0.0


NOTHING = Cell(None, "none")
MOVED = Cell(Consistency.MISMATCH, "ok in another layout")

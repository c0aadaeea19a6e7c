"""Bugs to plant into a right Jacobian. Each changes entries that can be told from zero in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from tests.derivatives import Blocks

RESOLVABLE = 1e-12  # of the largest entry of the row


@dataclass(frozen=True)
class Planted:
    """A wrong Jacobian, and where it is wrong: (output leaf, input leaf, row, column), in real pairs."""

    blocks: Blocks
    places: frozenset[tuple[int, int, int, int]]


Bug = Callable[[Blocks, str], Planted | None]


def sign_of_one_entry(blocks: Blocks, name: str) -> Planted | None:
    return _one_entry(blocks, name, -1.0)


def one_entry_dropped(blocks: Blocks, name: str) -> Planted | None:
    return _one_entry(blocks, name, 0.0)


def factor(size: float) -> Bug:
    """All entries too large by ``size``."""

    def plant(blocks: Blocks, name: str) -> Planted | None:
        return _difference(blocks, [[block * (1 + size) for block in row] for row in blocks])

    return plant


def transposed(blocks: Blocks, name: str) -> Planted | None:
    """The square blocks transposed; None where nothing changes by that."""
    return _difference(blocks, [[b.T if b.shape[0] == b.shape[1] else b for b in row] for row in blocks])


BUGS: dict[str, Bug] = {
    "sign of one entry": sign_of_one_entry,
    "one entry dropped": one_entry_dropped,
    "factor 1 + 1e-2": factor(1e-2),
    "factor 1 + 1e-3": factor(1e-3),
    "factor 1 + 1e-4": factor(1e-4),
    "factor 1 + 1e-6": factor(1e-6),
    "transposed": transposed,
}


def _one_entry(blocks: Blocks, name: str, times: float) -> Planted | None:
    candidates = [p for p in _everywhere(blocks) if _resolvable(blocks, p)]
    if not candidates:
        return None
    i, j, row, column = candidates[crc32(name.encode()) % len(candidates)]
    wrong = [[block.copy() for block in blocks_of_row] for blocks_of_row in blocks]
    wrong[i][j][row, column] *= times
    return Planted(wrong, frozenset({(i, j, row, column)}))


def _difference(right: Blocks, wrong: Blocks) -> Planted | None:
    differ = frozenset(p for p in _everywhere(right) if _entry(right, p) != _entry(wrong, p))
    return Planted(wrong, differ) if differ else None


def _everywhere(blocks: Blocks) -> Iterator[tuple[int, int, int, int]]:
    for i, row in enumerate(blocks):
        for j, block in enumerate(row):
            yield from ((i, j, r, c) for r, c in np.ndindex(*block.shape))


def _entry(blocks: Blocks, place: tuple[int, int, int, int]) -> float:
    i, j, r, c = place
    return float(blocks[i][j][r, c])


def _resolvable(blocks: Blocks, place: tuple[int, int, int, int]) -> bool:
    i, _, r, _ = place
    largest = max(np.max(np.abs(block[r]), initial=0.0) for block in blocks[i])
    return abs(_entry(blocks, place)) > RESOLVABLE * largest

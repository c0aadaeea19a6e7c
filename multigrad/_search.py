"""Search: which of many numbers is not zero, from a few weighted sums of them.

Two sums of the same random weights, one of them times the position, have a ratio that is the position of a single
number to blame; the bars of the sums say how exactly. Where there are several, the half with the clearer sum is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from multigrad._directions import Index, signed
from multigrad.backends import Array

STEPS = 64

Sums = Callable[[Sequence[tuple[Index, Array]]], tuple[Array, Array]]


def search(sums: Sums, among: Index, rng: np.random.Generator) -> Index:
    """Narrow down where the numbers ``among`` which one is not zero are.

    Args:
        sums: takes pairs of indices and weights, each of shape (k,), and returns the weighted sums and their bars.
        among: the indices.
        rng: draws the weights.

    Returns:
        One index; none if the sums show nothing.
    """
    before: Index | None = among
    for _ in range(STEPS):
        if len(among) <= 1:
            break
        if before is None:
            among = _half(sums, among, rng)
            continue
        # What was found in a shorter interval has to show there; if it does not, there were several.
        guess = _locate(sums, among, rng)
        before, among = (among, guess) if len(guess) else (None, before)
    return among


def _locate(sums: Sums, among: Index, rng: np.random.Generator) -> Index:
    """The interval in which a single number must be; empty if there is no such interval, or it is hardly shorter."""
    weights = signed(rng, 0.5, 1.0, among.shape)
    position = (np.arange(len(among)) + 0.5) / len(among)
    (plain, tilted), (bar, tilted_bar) = sums([(among, weights), (among, weights * position)])
    if not abs(plain) > 3 * bar:
        return among[:0]
    centre = tilted / plain
    reach = len(among) * 2 * (tilted_bar + abs(centre) * bar) / abs(plain) + 1
    low, high = (int(np.clip(centre * len(among) + side * reach, 0, len(among))) for side in (-1, 1))
    return among[low:high] if 0 < high - low <= max(1, len(among) // 2) else among[:0]


def _half(sums: Sums, among: Index, rng: np.random.Generator) -> Index:
    halves = np.array_split(among, 2)
    found, bars = sums([(half, signed(rng, 0.5, 1.0, half.shape)) for half in halves])
    clear = np.where(np.isfinite(found), np.abs(found) / np.maximum(bars, 1e-300), 0.0)
    return halves[int(np.argmax(clear))] if clear.max() > 1 else among[:0]

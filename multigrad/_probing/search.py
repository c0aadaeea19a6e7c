"""Search: which of many numbers is not zero, from a few weighted sums of them.

Two sums of the same random weights, one of them times the position, have a ratio that is the position of a single
number to blame; the bars of the sums say how exactly. Where there are several, the half with the clearer sum is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from multigrad._differences.directions import Index, signed
from multigrad.backends import Array

# So few are told apart one by one.
FEW = 8

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
    found = _by_position(sums, among, rng)
    return found if len(found) else _by_halves(sums, among, rng)


def _by_position(sums: Sums, among: Index, rng: np.random.Generator) -> Index:
    """As long as every shorter interval shows the number that it was found by; none if one does not."""
    while len(among) > FEW:
        guess = _locate(sums, among, rng)
        # Weights may be unlucky: the one to blame has a small one, or they are along a sharp bend.
        among = guess if len(guess) else _locate(sums, among, rng)
    return _single(sums, among)


def _by_halves(sums: Sums, among: Index, rng: np.random.Generator) -> Index:
    while len(among) > FEW:
        among = _half(sums, among, rng)
    return _single(sums, among)


def _locate(sums: Sums, among: Index, rng: np.random.Generator) -> Index:
    """The interval in which a single number should be; empty if there is no such interval, or it is hardly shorter.

    Bars are bounds, mostly wide ones, and what is found is looked at again: a sum that is larger than its bar will do.
    """
    weights = signed(rng, 0.5, 1.0, among.shape)
    position = (np.arange(len(among)) + 0.5) / len(among)
    (plain, tilted), (bar, tilted_bar) = sums([(among, weights), (among, weights * position)])
    if not (np.isfinite([plain, tilted, tilted_bar]).all() and abs(plain) > bar):
        return among[:0]
    centre = tilted / plain
    reach = len(among) * (tilted_bar + abs(centre) * bar) / abs(plain) + 1
    low, high = (int(np.clip(centre * len(among) + side * reach, 0, len(among))) for side in (-1, 1))
    return among[low:high] if 0 < high - low <= len(among) // 2 else among[:0]


def _single(sums: Sums, among: Index) -> Index:
    """The one that shows most clearly by itself; none if none does."""
    return _clearest(sums, [among[k : k + 1] for k in range(len(among))], [np.ones(1)] * len(among))


def _half(sums: Sums, among: Index, rng: np.random.Generator) -> Index:
    halves = np.array_split(among, 2)
    return _clearest(sums, halves, [signed(rng, 0.5, 1.0, half.shape) for half in halves])


def _clearest(sums: Sums, parts: Sequence[Index], weights: Sequence[Array]) -> Index:
    if not parts:
        return np.empty(0, np.intp)
    found, bars = sums(list(zip(parts, weights, strict=True)))
    # A sum that is not finite though its bar is has a number in it that is not.
    clear = np.abs(found) / np.maximum(bars, 1e-300)
    clear = np.where(np.isfinite(found), clear, np.where(np.isfinite(bars), np.inf, 0.0))
    return parts[int(np.argmax(clear))] if clear.max() > 1 else parts[0][:0]

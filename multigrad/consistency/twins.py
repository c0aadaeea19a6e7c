"""Twins: inputs that hold the same numbers, as fresh biases and scales do, told apart by their derivatives.

Where neither numbers nor names say which leaf is which, nor in what order its axes are, any pairing is a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from multigrad.consistency.agreement import spans
from multigrad.consistency.matching import Pair, twins
from multigrad.consistency.sides import Side
from multigrad.findings import Finding

# Blocks of the Jacobian are the same or they are not; how precisely, is told later.
ALIKE = 1e-4
LISTED = 6


def tell_apart(side: Side, lead: Side) -> list[Finding]:
    """Pair the inputs of ``side`` anew where there is a choice, as their derivatives are most like the lead's."""
    choices = {
        pair.reference.path: found
        for pair in side.inputs
        if len(found := twins(pair, side.inputs, lead.f.x, side.f.x, side.layout)) > 1
    }
    if not choices or not side.legs or not lead.legs:
        return []
    ranked = sorted(_costs(side, lead, choices), key=lambda item: item[:2])
    chosen: dict[str, Pair] = {}
    taken: set[str] = set()
    for _, _, pair in ranked:
        if pair.reference.path not in chosen and pair.leaf.path not in taken:
            chosen[pair.reference.path] = pair
            taken.add(pair.leaf.path)
    if len(chosen) < len(choices):
        return []
    side.inputs = [chosen.get(pair.reference.path, pair) for pair in side.inputs]
    return [_told(side, lead, list(chosen.values()))]


def _costs(side: Side, lead: Side, choices: dict[str, list[Pair]]) -> Iterator[tuple[int, int, Pair]]:
    """For each pair that there might be: in how many entries the derivatives differ, and its rank as a guess."""
    theirs = lead.spread(lead.legs[0].analytical)
    for pair, columns in zip(lead.inputs, spans(lead.inputs), strict=True):
        for rank, candidate in enumerate(choices.get(pair.reference.path, [])):
            ours = side.spread(side.legs[0].analytical, columns=candidate.places)
            block = theirs[:, columns]
            size = np.max(np.abs(block), initial=0.0, where=np.isfinite(block))
            yield int((~(np.abs(ours - block) <= ALIKE * size)).sum()), rank, candidate


def _told(side: Side, lead: Side, pairs: Sequence[Pair]) -> Finding:
    which = ", ".join(f"{pair.leaf.path} for {pair.reference.path}" for pair in pairs[:LISTED])
    which += f" and {len(pairs) - LISTED} more" * (len(pairs) > LISTED)
    return Finding(
        "layout",
        f"{side.name} and {lead.name} have inputs that hold the same numbers; by their derivatives {which}",
        pairs[0].leaf.path,
        "give each other numbers, not all zeros or ones, for its name and axes to be checked as well",
    )

"""A block of the Jacobian with wrong entries in it, and whether some change of the true block explains them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from multigrad._differences.directions import Mask
from multigrad.backends import Array, Leaf

Linear = Callable[[Array], Array]

# The two sides agree to this, once the pattern is applied.
CLOSE = 1e-6


@dataclass(frozen=True)
class WrongBlock:
    """The part of a leg that belongs to one output and one input, shape (r, c).

    Attributes:
        output: the output leaf.
        input: the input leaf.
        claimed: the analytical side.
        true: the numerical side.
        bar: the bound on its error.
        wrong: the entries that are a mismatch.
        x: the values of the input, (c,).
        y: those of the output, (r,).
    """

    output: Leaf
    input: Leaf
    claimed: Array
    true: Array
    bar: Array
    wrong: Mask
    x: Array
    y: Array

    @property
    def known(self) -> Mask:
        """Entries whose true value is told from zero, or told to be small."""
        return np.isfinite(self.bar) & np.isfinite(self.claimed)

    def is_made_by(self, change: Linear) -> bool:
        """Whether the claimed entries are what ``change`` makes of the true ones. Its bars are those of a sum."""
        unknown = change(np.where(self.known, 0.0, 1.0)) != 0
        made, bar = change(np.where(self.known, self.true, 0.0)), np.abs(change(np.where(self.known, self.bar, 0.0)))
        size = np.maximum(np.abs(made), np.abs(self.claimed))
        floor = 1e-9 * np.max(size, initial=0.0, where=np.isfinite(size))
        agree = np.abs(made - self.claimed) <= CLOSE * size + 4 * bar + floor
        return bool(np.where(unknown | ~self.known, ~self.wrong, agree).all())

    def wrong_are(self, factors: Array) -> bool:
        """Whether the wrong entries are the true ones times the ``factors``, one for each.

        Of a true one that is 0 no multiple but 0 will do, however large the ratio of the two may be off.
        """
        claimed, true, bar = self.claimed[self.wrong], self.true[self.wrong], self.bar[self.wrong]
        slack = CLOSE * np.abs(claimed) + 4 * np.abs(factors) * bar
        return bool((np.abs(claimed - factors * true) <= slack).all())

    @property
    def count(self) -> str:
        """The wrong entries and a verb, in words."""
        return f"all {self.wrong.sum()} wrong entries are" if self.wrong.sum() > 1 else "the wrong entry is"

"""Context: what the entries of a comparison are judged against besides their own estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from multigrad._comparison.dust import ULPS, rounding_dust
from multigrad._differences.directions import Directions, Index, Mask
from multigrad._differences.sampler import Curving
from multigrad.backends import Array, Leaf


@dataclass(frozen=True)
class Context:
    """What surrounds the entries; arrays broadcast to (C, m).

    Attributes:
        scale: the size of what the row holds, by the scale of the inputs: its largest entry, or the value itself.
        row: the same, by the unit of the inputs.
        dust: rounding that the analytical side may carry in entries that should be 0.
        noise: of the values of f, relative to their size; the analytical side may lose as much in its entries; (m,).
        reach: how steep its curvature makes f a step away (``Steepness.curved``).
        bend: the size of f's second derivatives, by the scale of the inputs.
        moved: how far f goes at all, shape (m,), where its values are so large that they say nothing of it; else inf.
        share: the largest that a direction moves of ``share_of`` the inputs.
    """

    scale: Array
    row: Array
    dust: Array
    noise: Array
    reach: Array
    bend: Array
    moved: Array
    share: Array = field(default_factory=lambda: np.ones(1))

    @classmethod
    def along(
        cls, directions: Directions, analytical: Array, share: Array, here: Array, outputs: Sequence[Leaf], eps: float
    ) -> Context:
        """What the derivatives ``analytical`` along the directions, shape (C, m), are judged against.

        ``share`` is what part of its scale each input is (``share_of``). Nothing is known yet of f's noise and of its steepness.
        """
        size = np.where(np.isfinite(analytical), np.abs(analytical), 0.0)
        # What f's rounding alone could make of an entry that is 0: a value over a step of one scale.
        values = np.abs(np.where(np.isfinite(here), here, 0.0))
        # A tiny input is moved by far more than itself: what it would add by that is no measure of the others.
        share = directions.most(share)
        beside = size * share if (share < 1).any() else size
        dust = np.broadcast_to(rounding_dust(beside, values, outputs, eps), size.shape)
        scale = np.broadcast_to(np.maximum(beside.max(axis=0, initial=0.0), values), size.shape)
        length = directions.lengths
        row = length * np.maximum((size / length).max(axis=0, initial=0.0), values)
        unknown, anywhere = np.zeros_like(here), np.full_like(here, np.inf)
        return cls(scale, row, dust, noise=unknown, reach=unknown, bend=unknown, moved=anywhere, share=share)

    def of(self, c: Index | slice) -> Context:
        """Some of the directions."""
        names = ("scale", "row", "dust", "share")
        return replace(self, **{name: np.broadcast_to(getattr(self, name), self.dust.shape)[c] for name in names})

    def at(self, c: Index, i: Index) -> Context:
        """Some of the places (direction, output), as one direction with as many outputs."""
        parts = vars(self).items()
        return Context(**{name: np.broadcast_to(value, self.dust.shape)[c, i] for name, value in parts})

    def curving(self, far: Curving, near: Curving, within: Curving) -> Context:
        """The same, now that f has been seen a step away, where tiny inputs move by their own size, and where they alone do.

        What f does where tiny inputs move by 1 may be another thing than what it does at x, and hide that; or tell nothing
        of it.
        """
        reach = np.minimum(far.reach, np.maximum(near.reach, self.scale) / self.share)
        bend = np.minimum(far.bend, near.bend / self.share)
        reach, bend = np.maximum(reach, within.reach / self.share), np.maximum(bend, within.seen / self.share)
        return replace(self, reach=reach, bend=bend)

    @property
    def tiny(self) -> Array:
        """Entries as small as this may stay unresolved: no difference of values with the rounding of float64 need show them."""
        return np.asarray(1e-12 * np.maximum(self.scale, self.row))

    @property
    def negligible(self) -> Array:
        """The same for values with that noise."""
        return np.asarray(np.maximum(self.tiny, 64 * self.noise * np.maximum(self.scale, self.row)))

    @property
    def nothing(self) -> Array:
        """A bar as small as this around 0 says that an entry is 0, or too small to be seen beside the values."""
        return np.asarray(np.maximum(1e-9, 64 * self.noise) * np.maximum(self.scale, self.reach))

    def tells_zero(self, bar: Array, resolution: float) -> Mask:
        """Whether a bar around 0 is so small that the slope of an f that goes as far as it does would show."""
        return np.asarray(bar <= resolution * self.moved)

    def stationary(self, eps: float) -> Array:
        """The derivative may be as large as this a few roundings of x away from a point where it is 0.

        Of coarse arithmetic a rounding is no small step: no more is excused than what counts as nothing beside ``reach``.
        """
        return np.asarray(np.minimum(ULPS * eps * self.bend, 1e-9 * self.reach))

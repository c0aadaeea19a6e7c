"""Sampling: f at x and around it, along directions, and the noise that its values carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from multigrad._differences import ladder
from multigrad._differences import noise as _noise
from multigrad._differences.directions import Directions, scale_of, share_of, signed
from multigrad._differences.estimate import Estimate, Quotients, estimate, quotients
from multigrad._differences.noise import Noise
from multigrad._differences.steepness import Steepness
from multigrad.backends import Array, Leaf
from multigrad.batches import Batched

# Doubles in the points of a ladder that are made at once: 128 MB.
AT_ONCE = 2**24
# Entries of a block of directions times outputs: the block's arrays then stay in the L2 cache.
BLOCK = 2**15
# Longer points and values than this have their noise measured line by line.
LONG = 2**16
# Noise beyond this, relative to the values, may be what f does on far steps.
STEEP = 1e-10
# Lines along which all inputs are moved.
ASIDE = 4
# Values so many times as large as the derivatives hide what these are.
HIDING = 1e6
# Noise of values, relative to their size, is no excuse beyond this: entries are then not small, but hidden.
NOISIEST = 1e-4


@dataclass(frozen=True)
class Curving:
    """What f does a step away along all inputs together.

    Attributes:
        reach: how steep its curvature makes it (``Steepness.curved``), shape (m,).
        bend: how much it curves, shape (m,): the size of its second derivatives, at the most.
        seen: the same, but 0 where the error of the values hides it.
    """

    reach: Array
    bend: Array
    seen: Array


class Sampler:
    """Evaluates f along directions; the noise is measured once, with the first of them.

    Args:
        f: the function.
        x: the point, shape (n,).
        here: f(x), shape (m,).
        eps: unit roundoff of f's arithmetic.
        rng: where the lines that noise is measured along come from.
        jitter: noise that every value has besides, shape (m,) or one for all.
        noise: of f, where it is known.
        inputs: the leaves that x is made of; none if it is one.
    """

    def __init__(
        self,
        f: Batched,
        x: Array,
        here: Array,
        eps: float,
        rng: np.random.Generator,
        jitter: Array | float = 0.0,
        noise: Noise | None = None,
        inputs: Sequence[Leaf] = (),
    ) -> None:
        self.f = f
        self.x = x
        self.here = here
        self.eps = eps
        self.rng = rng
        self.jitter = jitter
        self._noise = noise
        self.inputs = inputs
        self._afar: Array | None = None

    @property
    def magnitude(self) -> Array:
        """The absolute value of each output, 0 where it is not finite, shape (m,)."""
        return np.abs(np.nan_to_num(self.here, posinf=0.0, neginf=0.0))

    @property
    def noise(self) -> Noise:
        """The noise of f as far as it is known: none before the first look."""
        return self._noise or Noise(np.zeros_like(self.here), np.zeros_like(self.here), self.jitter)

    @property
    def excusable(self) -> Array:
        """What rounding and noise may take from a derivative, as a fraction of its size, shape (m,)."""
        return np.asarray(np.minimum(self.noise.relative, NOISIEST) + self.eps)

    @cached_property
    def share(self) -> Array:
        """The part of its scale that each input is itself, shape (n,)."""
        return share_of(self.x, self.inputs)

    @cached_property
    def has_tiny(self) -> bool:
        """Whether any input is tiny."""
        return bool((self.share < 1).any())

    @cached_property
    def unit(self) -> Array:
        """The length that counts as one step right beside x: a tiny input's own size, or else the scale; (n,)."""
        return np.asarray(scale_of(self.x) * self.share)

    def _aside(self, scale: Array) -> tuple[ladder.Samples, Array]:
        """f on the short ladder along a few unit vectors that move all inputs; what they are 1 of, shape (ASIDE,).

        Along each input by itself f may be 0, or hardly more than rounding, as a product is of which two factors are.
        """
        steps = np.exp2(ladder.short_ladder(self.eps))
        lines = signed(np.random.Generator(np.random.PCG64(ASIDE)), 0.5, 1.0, (ASIDE, self.x.size))
        lengths = np.linalg.norm(lines, axis=1)
        away = steps[:, None, None] * (lines / lengths[:, None] * scale)
        X = self.x + np.stack([away, -away])
        plus, minus = self.f(np.concatenate([*X[0], *X[1]])).reshape(2, len(steps), ASIDE, -1)
        taken = np.broadcast_to(steps[:, None, None], (len(steps), ASIDE, 1))
        return ladder.Samples(plus, minus, taken, taken, float(steps[0] / steps[1])), lengths

    @cached_property
    def aside(self) -> Curving:
        """How steep f is a step away along all inputs together, and how much it curves."""
        return self._curving(self._scale())

    @cached_property
    def beside(self) -> Curving:
        """The same where each tiny input moves by its own size."""
        return self._curving(self._finite(self.unit)) if self.has_tiny else self.aside

    @cached_property
    def within(self) -> Curving:
        """The same where the tiny inputs alone move, by their own size."""
        return self._curving(np.where(self.share < 1, self.unit, 0.0)) if self.has_tiny else self.aside

    def _curving(self, scale: Array) -> Curving:
        sampled, lengths = self._aside(scale)
        # For the random vector v that is used, v^T H v is about as large as the norm of the Hessian H.
        curl = np.abs(sampled.plus + sampled.minus - 2 * self.here) * lengths[:, None] ** 2
        curl = np.max(curl, axis=1, initial=0.0, where=np.isfinite(curl))
        error = 4 * self.noise.of(np.abs(self.here), self.eps)
        # A barrier that the larger steps meet says nothing of x.
        most = np.min((curl + error) / sampled.up[:, 0] ** 2, axis=0)
        seen = np.where((curl > 4 * error).any(axis=0), most, 0.0)
        return Curving(self.steepness(sampled).curved, most, seen)

    def afar(self, farthest: float) -> Array:
        """f where all inputs move, by up to ``farthest``, shape (b, m)."""
        if self._afar is None:
            lines = signed(np.random.Generator(np.random.PCG64(ASIDE)), 0.5, 1.0, (ASIDE, self.x.size))
            steps = farthest * np.array([1.0, -1.0, 0.25, -0.25, 0.0625, -0.0625])
            X = self.x + steps[:, None, None] * lines * self._scale()
            self._afar = self.f(np.concatenate(list(X)))
        return self._afar

    def moved(self, derivatives: Array, farthest: float) -> Array:
        """How far f goes, by steps of up to ``farthest``, if its values hide that; else inf; shape (m,).

        Values that are large beside the ``derivatives``, of that shape, are not what a derivative of 0 is told by: a
        constant that is added to f changes neither. Where f does not go beyond its noise there is nothing to hide.
        """
        hiding = self.magnitude > HIDING * derivatives
        if not hiding.any():
            return np.full_like(self.magnitude, np.inf)
        if self._noise is None:
            self.measure_noise()
        with np.errstate(all="ignore"):
            away = np.abs(self.afar(farthest) - self.here)
        moved = np.max(away, axis=0, initial=0.0, where=np.isfinite(away))
        return np.where(hiding & (moved > 2 * self.noise.of(self.magnitude, self.eps)), moved, np.inf)

    def climb(self, directions: Directions, exponents: Array) -> ladder.Samples:
        """Evaluate f on a ladder of steps; where the noise is unknown it is measured in the same batch."""
        if self._noise is None and (max(self.x.size, self.here.size) > LONG or self._are_many(directions, exponents)):
            self.measure_noise()
        if self._noise is not None:
            return ladder.samples(*self.along(directions, exponents), exponents)
        X, up, down = ladder.points(self.x, directions, exponents)
        lines = _noise.lines(self.x, self._scale(), self.eps, self.rng)
        values = self.f(np.concatenate([lines, X]))
        self._take_noise(_noise.measure(values[: len(lines)], self.eps), values[: len(lines)])
        return ladder.samples(values[len(lines) :], up, down, exponents)

    def along(self, directions: Directions, exponents: Array) -> tuple[Array, Array, Array]:
        """f at ``ladder.points``, shape (2 * K * C, m), and the steps taken."""
        if self._are_many(directions, exponents):
            return self._one_by_one(directions, exponents)
        X, up, down = ladder.points(self.x, directions, exponents)
        return self.f(X), up, down

    def quotients(self, sampled: ladder.Samples) -> Quotients:
        """Difference quotients of the samples, with their noise."""
        return quotients(sampled, self.here, self.noise, self.eps)

    def steepness(self, sampled: ladder.Samples) -> Steepness:
        """How steep f is on the samples of the short ladder."""
        return Steepness.of(sampled, self.here, self.noise.of(np.abs(self.here), self.eps))

    def slopes(self, directions: Directions) -> Estimate:
        """Derivatives along the directions as the short ladder tells them, shape (C, m)."""
        with np.errstate(all="ignore"):
            sampled = self.climb(directions, ladder.short_ladder(self.eps))
            q = self.quotients(sampled)
            return estimate(q.central, q.central_noise, sampled.ratio)

    def measure_noise(self) -> Array:
        """Measure the noise of f by itself; returns the values seen, for functions of them to have theirs measured."""
        noise, values = self._measured(self._scale())
        self._take_noise(noise, values)
        return values

    def look_beside(self) -> None:
        """Measure the noise right beside tiny inputs, if there are any: farther away it may be of far larger values."""
        if self.has_tiny and self._noise is not None and self._noise.beside is None:
            self._noise = replace(self._noise, beside=self._measured(self._finite(self.unit))[0])

    def _measured(self, scale: Array) -> tuple[Noise, Array]:
        """The noise on lines of that scale, and the values there."""
        values = np.concatenate([self.f(line) for line in _noise.each_line(self.x, scale, self.eps, self.rng)])
        size = max(1, AT_ONCE // (8 * len(values)))
        parts = [_noise.measure(values[:, start : start + size], self.eps) for start in range(0, self.here.size, size)]
        sigma, level = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sigma", "level"))
        return Noise(sigma, level), values

    def _take_noise(self, noise: Noise, values: Array) -> None:
        """Believe the noise, if it is no slope: far steps of tiny inputs beside others may jump about as noise does."""
        steep = noise.relative > STEEP
        if steep.any() and self.has_tiny and (self.share == 1).any():
            beside, _ = self._measured(self._finite(self.unit))
            sigma = np.where(steep, np.minimum(noise.sigma, beside.sigma), noise.sigma)
            noise = replace(noise, sigma=sigma, beside=beside)
        self._noise = replace(noise, floor=np.maximum(self.jitter, _noise.offset(values, self.here)))

    def _scale(self) -> Array:
        return self._finite(scale_of(self.x))

    def _finite(self, lengths: Array) -> Array:
        return np.where(np.isfinite(self.x), lengths, 0.0)

    def _are_many(self, directions: Directions, exponents: Array) -> bool:
        return 2 * len(exponents) * len(directions) * max(self.x.size, self.here.size) > AT_ONCE

    def _one_by_one(self, directions: Directions, exponents: Array) -> tuple[Array, Array, Array]:
        """The same rung by rung and direction by direction, where all points at once are too many."""
        shape = (2, len(exponents), len(directions), self.here.size)
        values = np.empty(shape)
        ups, downs = [], []
        for k in range(len(exponents)):
            for c in range(len(directions)):
                X, up, down = ladder.points(self.x, directions.take(np.array([c])), exponents[k : k + 1])
                values[:, k, c] = self.f(X)
                ups.append(up[0, 0])
                downs.append(down[0, 0])
        width = max(len(step) for step in (*ups, *downs))
        up, down = (
            np.stack([np.broadcast_to(step, width) for step in steps]).reshape(*shape[1:3], width)
            for steps in (ups, downs)
        )
        return values.reshape(-1, shape[-1]), up, down

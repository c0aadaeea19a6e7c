"""Noise: what f's values jitter by, measured from difference tables.

Along a short line, k-th differences of the smooth part of f die out with k while those of its noise do not
(J. J. Moré and S. M. Wild, "Estimating computational noise", SIAM J. Sci. Comput. 33(3), 2011). A few lines serve
all the directions of a check.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from multigrad._differences.directions import Mask, signed
from multigrad.backends import Array, Leaf

POINTS = 9
FEW_QUANTA = 8
# Turns among the eight steps of a line.
TURNS = 3
ORDERS = (5, 6)  # of the smooth part, a fifth difference keeps the fifth power of the spacing
# Noise of values, relative to the largest of their leaf and to their own size, that float64 arithmetic seldom makes.
NOISY, CANCELLED = 1e-13, 1e-10
# Below this many inputs one line suffices: each costs as many evaluations as six directions.
ONE_LINE_BELOW = 12


@dataclass(frozen=True)
class Noise:
    """Noise of each output.

    Attributes:
        sigma: standard deviation of the noise, shape (m,).
        level: largest absolute value seen while measuring, shape (m,): noise is taken to grow with abs(f) beyond it.
        floor: an error that every value has besides, shape (m,) or one for all.
        beside: the noise right beside tiny inputs, where that was measured: of values as large as those seen there.
    """

    sigma: Array
    level: Array
    floor: Array | float = 0.0
    beside: Noise | None = None

    def of(self, magnitude: Array, eps: float) -> Array:
        """Bound the error of values as large as ``magnitude``, shape (..., m)."""
        growth = np.maximum(1.0, magnitude / np.where(self.level > 0, self.level, np.inf))
        jitter = 4 * self.sigma * growth
        if self.beside is not None:
            near = (magnitude <= self.beside.level) & (self.beside.sigma > 0)
            jitter = np.where(near, np.minimum(jitter, 4 * self.beside.sigma), jitter)
        return np.maximum(np.maximum(2 * eps * magnitude, jitter), self.floor)

    def at(self, outputs: npt.NDArray[np.intp]) -> Noise:
        """The noise of some outputs."""
        floor = self.floor[outputs] if isinstance(self.floor, np.ndarray) else self.floor
        beside = self.beside and self.beside.at(outputs)
        return Noise(self.sigma[outputs], self.level[outputs], floor, beside)

    def is_foreign(self, outputs: Sequence[Leaf]) -> bool:
        """Whether values carry more noise than float64 arithmetic makes.

        A value that is small because larger terms cancel has more of it than others, but not that much more.
        """
        return any(
            float(np.max(sigma)) > NOISY * float(np.max(level)) or bool((sigma > CANCELLED * level).any())
            for sigma, level in ((self.sigma[leaf.slice], self.level[leaf.slice]) for leaf in outputs if leaf.size)
        )

    @property
    def relative(self) -> Array:
        """Noise as a fraction of the values, shape (m,)."""
        return self.sigma / np.where(self.level > 0, self.level, np.inf)


@cache
def spacings(eps: float) -> Array:
    """Distances between the points of a line, relative to the scale of x, largest first.

    >>> import numpy as np
    >>> np.log2(spacings(2.0**-52))
    array([-14., -20., -28., -40.])
    """
    bits = -math.log2(eps)
    return np.exp2(-np.round(np.array([0.27, 0.385, 0.54, 0.77]) * bits))


def lines(x: Array, scale: Array, eps: float, rng: np.random.Generator) -> Array:
    """Make the points at which to evaluate f, shape (lines * spacings * POINTS, n)."""
    return np.concatenate(list(each_line(x, scale, eps, rng)))


def each_line(x: Array, scale: Array, eps: float, rng: np.random.Generator) -> Iterator[Array]:
    """Make the same points line by line and spacing by spacing, shape (POINTS, n) each."""
    count = 1 if x.size < ONE_LINE_BELOW else 2
    along = np.arange(POINTS // 2 - POINTS + 1, POINTS // 2 + 1)[:, None]
    for direction in signed(rng, 0.5, 1.0, (count, x.size)) * scale:
        for spacing in spacings(eps):
            yield x + spacing * along * direction


@cache
def _differences() -> Array:
    """The matrix of all differences of ``ORDERS``, normalised to the noise of a point."""
    units = [math.factorial(order) / math.sqrt(math.factorial(2 * order)) for order in ORDERS]
    return np.concatenate(
        [u * np.diff(np.eye(POINTS), n=order, axis=0) for u, order in zip(units, ORDERS, strict=True)]
    )


def root_mean_square(values: Array, axis: int, freedom: int) -> Array:
    """The root of the sum of squares over ``freedom``; the squares may be beyond the range of a double."""
    largest = np.max(np.abs(values), axis=axis, keepdims=True, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray(np.sqrt(np.sum((values / unit) ** 2, axis=axis) / freedom) * np.squeeze(unit, axis))


def measure(values: Array, eps: float) -> Noise:
    """Read the noise off f's values at ``lines``, shape (lines * spacings * POINTS, m)."""
    m = values.shape[-1]
    per_line = len(spacings(eps)) * POINTS
    table = values.reshape(len(values) // per_line, len(spacings(eps)), POINTS, m)
    size = np.abs(values)
    level = np.where(np.isfinite(size), size, 0.0).max(axis=0, initial=0.0)
    flat = (table[:, :, 1:] == table[:, :, :-1]).sum(axis=2)
    drawn = _differences() @ table
    sigma = root_mean_square(drawn, 2, drawn.shape[2])
    # A line on which f hardly changes shows its quantum, not its noise, unless it goes to and fro.
    steady = (flat > 0.3 * (POINTS - 1)) | _moves_by_quanta(table)
    if steady.any():
        steady &= ~_goes_to_and_fro(table)
    usable = np.isfinite(sigma) & ~steady
    return Noise(_settle(sigma, usable, 10 * eps * level).max(axis=0, initial=0.0), level)


def offset(values: Array, here: Array) -> Array:
    """By how much f at x differs between ``here`` and the middle of the ``lines`` that pass through it, shape (m,).

    Rows of a batch are summed in another order than one row alone.
    """
    middles = values[POINTS - 1 - POINTS // 2 :: POINTS]
    apart = np.abs(middles - here)
    return np.asarray(np.max(apart, axis=0, initial=0.0, where=np.isfinite(apart)))


def _moves_by_quanta(table: Array) -> Mask:
    """Whether all steps between neighbours, (lines, spacings, POINTS, m), are a few times the smallest of them.

    They may be equal then, by accident or since f is linear: no noise is to be read from either.
    """
    steps = np.abs(np.diff(table, axis=2))
    smallest = np.min(np.where(steps > 0, steps, np.inf), axis=2, keepdims=True)
    quanta = steps / smallest
    return np.asarray(((quanta == np.round(quanta)) & (quanta <= FEW_QUANTA)).all(axis=2))


def _goes_to_and_fro(table: Array) -> Mask:
    """Whether f turns round more often along a line, (lines, spacings, POINTS, m), than a wave or a jump makes it."""
    sign = np.sign(np.diff(table, axis=2))
    for k in range(1, sign.shape[2]):  # a step of 0 goes on as before
        sign[:, :, k] = np.where(sign[:, :, k] == 0, sign[:, :, k - 1], sign[:, :, k])
    return np.asarray((sign[:, :, 1:] * sign[:, :, :-1] < 0).sum(axis=2) >= TURNS)


def _settle(sigma: Array, usable: Mask, rounding: Array) -> Array:
    """Choose among the spacings, (lines, spacings, m) -> (lines, m).

    The smallest usable one has the least of f's smooth part in it. But errors of an approximation vary slowly, and
    show at a larger spacing: what is of the same order there is taken for noise as well.
    """
    out = np.zeros_like(sigma[:, 0])
    begun = np.zeros(out.shape, np.bool_)
    for i in reversed(range(sigma.shape[1])):
        alike = usable[:, i] & (sigma[:, i] <= np.maximum(10 * out, rounding))
        out = np.where(
            alike & begun, np.maximum(out, sigma[:, i]), np.where(begun, out, np.where(usable[:, i], sigma[:, i], 0.0))
        )
        begun |= usable[:, i]
    return out

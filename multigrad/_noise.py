"""Noise: what f's values jitter by, measured from difference tables.

Along a short line, k-th differences of the smooth part of f die out with k while those of its noise do not
(J. J. Moré and S. M. Wild, "Estimating computational noise", SIAM J. Sci. Comput. 33(3), 2011). A few lines serve
all the directions of a check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from multigrad._directions import signed
from multigrad.backends import Array

POINTS = 9
ORDERS = (4, 5, 6)
# Below this many inputs one line suffices: each costs as many evaluations as six directions.
ONE_LINE_BELOW = 12


@dataclass(frozen=True)
class Noise:
    """Noise of each output.

    Attributes:
        sigma: standard deviation of the noise, shape (m,).
        level: largest absolute value seen while measuring, shape (m,): noise is taken to grow with abs(f) beyond it.
    """

    sigma: Array
    level: Array

    def of(self, magnitude: Array, eps: float) -> Array:
        """Bound the error of values as large as ``magnitude``, shape (..., m)."""
        growth = np.maximum(1.0, magnitude / np.where(self.level > 0, self.level, np.inf))
        return np.maximum(2 * eps * magnitude, 4 * self.sigma * growth)

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
    count = 1 if x.size < ONE_LINE_BELOW else 2
    direction = signed(rng, 0.5, 1.0, (count, 1, 1, x.size)) * scale
    along = spacings(eps)[:, None] * np.arange(POINTS // 2 - POINTS + 1, POINTS // 2 + 1)
    return np.asarray(x + along[:, :, None] * direction).reshape(-1, x.size)


@cache
def _differences() -> tuple[Array, Array]:
    """Two matrices: of all differences of ``ORDERS``, normalised to the noise of a point; of means over each order."""
    rows, means = [], []
    for order in ORDERS:
        unit = math.factorial(order) / math.sqrt(math.factorial(2 * order))
        table = unit * np.diff(np.eye(POINTS), n=order, axis=0)
        rows.append(table)
        means.append(np.full(len(table), 1 / len(table)))
    spread = np.zeros((len(ORDERS), sum(map(len, rows))))
    start = 0
    for i, mean in enumerate(means):
        spread[i, start : start + len(mean)] = mean
        start += len(mean)
    return np.concatenate(rows), spread


def measure(values: Array, eps: float) -> Noise:
    """Read the noise off f's values at ``lines``, shape (lines * spacings * POINTS, m)."""
    m = values.shape[-1]
    table = values.reshape(-1, len(spacings(eps)), POINTS, m)
    size = np.abs(values)
    level = np.where(np.isfinite(size), size, 0.0).max(axis=0, initial=0.0)
    flat = (table[:, :, 1:] == table[:, :, :-1]).sum(axis=2)
    differences, means = _differences()
    drawn = differences @ table
    sigma = np.sqrt((means @ (drawn * drawn)).min(axis=2))
    # A line on which f hardly changes shows its quantum, not its noise. The smallest usable spacing has the
    # least of f's smooth part in it.
    usable = np.isfinite(sigma) & (flat <= 0.3 * (POINTS - 1))
    out = np.zeros((len(table), m))
    for i in range(sigma.shape[1]):
        out = np.where(usable[:, i], sigma[:, i], out)
    return Noise(out.max(axis=0, initial=0.0), level)

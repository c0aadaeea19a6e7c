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
        return np.maximum(eps * magnitude, 4 * self.sigma * growth)

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
    direction = rng.choice([-1.0, 1.0], (count, 1, 1, x.size)) * rng.uniform(0.5, 1.0, (count, 1, 1, x.size)) * scale
    along = spacings(eps)[:, None] * np.arange(POINTS // 2 - POINTS + 1, POINTS // 2 + 1)
    return np.asarray(x + along[:, :, None] * direction).reshape(-1, x.size)


def measure(values: Array, eps: float) -> Noise:
    """Read the noise off f's values at ``lines``, shape (lines * spacings * POINTS, m)."""
    table = values.reshape(-1, len(spacings(eps)), POINTS, values.shape[-1])
    level = np.max(np.abs(table), axis=(0, 1, 2), initial=0.0, where=np.isfinite(table))
    step = table[:, :, 1:] - table[:, :, :-1]
    flat = np.mean(step == 0, axis=2)
    sigma = np.full(flat.shape, np.inf)
    for order in range(2, max(ORDERS) + 1):
        step = step[:, :, 1:] - step[:, :, :-1]
        if order in ORDERS:
            unit = math.factorial(order) ** 2 / math.factorial(2 * order)
            sigma = np.minimum(sigma, np.sqrt(unit * np.mean(step * step, axis=2)))
    # A line on which f hardly changes shows its quantum, not its noise. The smallest usable spacing has the
    # least of f's smooth part in it.
    usable = np.isfinite(sigma) & (flat <= 0.3)
    out = np.zeros((table.shape[0], table.shape[-1]))
    for i in range(sigma.shape[1]):
        out = np.where(usable[:, i], sigma[:, i], out)
    return Noise(out.max(axis=0, initial=0.0), level)

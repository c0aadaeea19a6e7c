"""Acceptance: the entries of the short ladder that are plainly right, at the price of a few dozen passes.

This is what ``estimate`` and ``judge`` say of three rungs, written out: three candidates have neighbours there.
It accepts; whatever it does not accept is looked at by the general rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multigrad._comparison.context import Context
from multigrad._comparison.verdict import Rules
from multigrad._differences.directions import Mask
from multigrad._differences.estimate import CENTRAL
from multigrad._differences.ladder import Samples
from multigrad._differences.noise import Noise
from multigrad.backends import Array


@dataclass(frozen=True)
class Acceptance:
    """Estimates along C directions and the entries that are right by them; shapes (C, m)."""

    value: Array
    bar: Array
    accepted: Mask


def accept(
    samples: Samples,
    h: Array,
    here: Array,
    noise: Noise,
    analytical: Array,
    context: Context,
    rules: Rules,
) -> Acceptance:
    """Accept what is plainly right.

    Args:
        samples: f on three rungs, (3, C, m) on each side.
        h: the steps, but for rounding, shape (3,).
        here: f(x), shape (m,).
        noise: of f.
        analytical: the derivatives along the directions, shape (C, m).
        context: what they are judged against; that of a row is the same in all directions.
        rules: the constants.
    """
    error = noise.of(_magnitude(samples, here), rules.eps)
    value, bar = _estimate(samples, h, error)
    claimed, size = np.abs(analytical), np.abs(value)
    no_value = size <= bar
    np.maximum(size, claimed, out=size)
    tolerance = rules.rtol * size
    tolerance += rules.atol + 4 * context.noise * context.scale
    difference = np.abs(np.subtract(analytical, value))
    difference -= bar
    right = difference <= tolerance
    right &= bar <= np.maximum(tolerance, np.multiply(size, 1e-6, out=size), out=tolerance)
    right &= (claimed > context.negligible) & (claimed < np.inf)
    right |= (claimed == 0) & no_value & (bar <= context.nothing) & context.tells_zero(bar, rules.resolution)
    return Acceptance(value, bar, right & ~_bent(samples, here, h, error, rules.rtol * context.scale))


def _magnitude(samples: Samples, here: Array) -> Array:
    """The largest absolute value of each output, shape (m,)."""
    sides = (samples.plus, samples.minus)
    high = np.fmax(*(np.fmax.reduce(side, axis=(0, 1)) for side in sides))
    low = np.fmin(*(np.fmin.reduce(side, axis=(0, 1)) for side in sides))
    return np.asarray(np.fmax(np.fmax(high, -low), np.abs(here)))


def _estimate(samples: Samples, h: Array, error: Array) -> tuple[Array, Array]:
    """The candidate of smallest bar; NaN bars where a value is NaN."""
    w = samples.ratio ** CENTRAL[0] - 1
    quotients = samples.plus - samples.minus
    quotients /= samples.up + samples.down
    coarse, fine = quotients[1] - quotients[0], quotients[2] - quotients[1]
    value, finest = quotients[1], quotients[2]
    once = fine / w
    gap = (fine - coarse) / w
    gap += fine
    once += finest
    coarse, fine, gap = (np.abs(a, out=a) for a in (coarse, fine, gap))
    bar = np.maximum(coarse, fine - error / h[2])
    bar += error / h[1]
    fine += error / h[2]
    gap += error * ((w + 1) / h[2] + 1 / h[1]) / w
    for candidate, its_bar in ((finest, fine), (once, gap)):
        np.copyto(value, candidate, where=its_bar < bar)
        np.minimum(bar, its_bar, out=bar)
    return value, bar


def _bent(samples: Samples, here: Array, h: Array, error: Array, importance: Array) -> Mask:
    """As ``kinks.suspected``."""
    first, last = (np.abs(samples.plus[k] + samples.minus[k] - 2 * here) for k in (0, -1))
    bent = last > np.maximum(4 * error, h[-1] * importance)
    bent &= last > 0.5 * h[-1] / h[0] * first
    return np.asarray(bent)

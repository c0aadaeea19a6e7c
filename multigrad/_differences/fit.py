"""Fit: a derivative from many steps at once, where rounding hides it from difference quotients.

An entry far below the size of the values that it moves is lost in their rounding at every single step. Rounding errors
at different steps are unrelated, so that an odd polynomial fitted to f(x + h) - f(x - h) by least squares averages
them out, and its residual tells how large they are.
"""

from __future__ import annotations

import numpy as np

from multigrad._differences.estimate import Estimate
from multigrad._differences.noise import root_mean_square
from multigrad.backends import Array

STEPS = 32
REACHES = (1.0, -1.0, -3.0, -5.0, -7.0)  # exponents of the longest step of each fit
TERMS = 5  # h, h^3, ..., h^9
SIGMAS = 5.0
# Directions worth so many evaluations.
AT_MOST = 512


def exponents(rng: np.random.Generator, farthest: float) -> Array:
    """The steps of all fits as exponents of two, none of them beyond ``farthest``, shape (fits * STEPS,).

    They crowd towards the longest step, where a polynomial is least well determined, and have random mantissas.
    """
    reaches = np.array([reach for reach in REACHES if 2.0**reach <= farthest])
    nodes = np.sin(0.5 * np.pi * (np.arange(STEPS) + rng.uniform(0.25, 0.75, (len(reaches), STEPS))) / STEPS)
    return np.ravel(reaches[:, None] + np.log2(nodes))


def fit(values: Array, up: Array, down: Array, at: Array, eps: float, limit: Array) -> Estimate:
    """Fit f's values at ``ladder.points``, shape (2 * K * C, m), and keep the fit of smallest bar for each entry.

    Only fits count whose longest step is below ``limit``, shape (C, m).
    """
    plus, minus = values.reshape(2, len(at), up.shape[1], values.shape[-1])
    # The steps taken differ from those wanted by the rounding of x; the slope is what to correct for.
    delta = (plus - minus) * (2 * np.exp2(at)[:, None, None] / (up + down))
    floor = 0.25 * eps * np.maximum(np.abs(plus), np.abs(minus))
    fits = [
        _fit_one(delta[k : k + STEPS], floor[k : k + STEPS].max(axis=0), np.exp2(at[k : k + STEPS]))
        for k in range(0, len(at), STEPS)
    ]
    reaches = np.exp2(at).reshape(-1, STEPS).max(axis=1)
    bars = np.stack([np.where(reach < limit, one.bar, np.inf) for one, reach in zip(fits, reaches, strict=True)])
    best = np.argmin(bars, axis=0)[None]
    slopes = np.stack([one.value for one in fits])
    return Estimate(np.take_along_axis(slopes, best, 0)[0], np.take_along_axis(bars, best, 0)[0])


def _fit_one(delta: Array, floor: Array, h: Array) -> Estimate:
    reach = h.max()
    basis = (h / reach)[:, None] ** (2 * np.arange(TERMS) + 1)
    solve = np.linalg.pinv(basis)
    shorter = np.linalg.pinv(basis[:, :-1])[0]
    coefficients = np.tensordot(solve, delta, axes=1)
    residual = delta - np.tensordot(basis, coefficients, axes=1)
    rms = root_mean_square(residual, 0, len(h) - TERMS)
    slope = coefficients[0] / (2 * reach)
    truncation = np.abs(np.tensordot(shorter, delta, axes=1) / (2 * reach) - slope)
    bar = SIGMAS * np.maximum(rms, floor) * np.linalg.norm(solve[0]) / (2 * reach) + truncation
    # Where no value changes there is no rounding to be averaged.
    return Estimate(slope, np.where(np.isfinite(bar) & delta.any(axis=0), bar, np.inf))

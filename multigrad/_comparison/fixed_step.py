"""One central difference of a given step, for who asks for just that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multigrad._comparison import verdict
from multigrad._comparison.context import Context
from multigrad._comparison.entries import Entries
from multigrad._comparison.verdict import Rules
from multigrad._differences.directions import Directions
from multigrad._differences.estimate import Estimate
from multigrad._differences.kinks import Kinks
from multigrad._differences.sampler import Sampler
from multigrad.backends import Array, Leaf

# The step, and the one before it that the bar is read off.
EXPONENTS = np.array([1.0, 0.0])


def compare_at(sampler: Sampler, eps: float, J: Array, outputs: Sequence[Leaf], rules: Rules) -> Entries:
    """Compare the Jacobian, shape (m, n), with one central difference of the absolute step ``eps``.

    The bar is how much the difference changes when the step is doubled.
    """
    n = sampler.x.size
    directions = Directions(n, np.arange(n + 1), np.arange(n), np.full(n, eps))
    analytical = directions.times(J)
    with np.errstate(all="ignore"):
        q = sampler.quotients(sampler.climb(directions, EXPONENTS))
        value = q.central[-1]
        best = Estimate(value, np.abs(value - q.central[0]) + q.central_noise[-1])
        reach = np.where(np.isfinite(value), np.abs(value), 0.0).max(axis=0, initial=0.0)
        context = Context.along(directions, analytical, sampler.share, sampler.here, outputs, rules.eps)
        context = replace(context, noise=sampler.excusable, reach=reach)
        status = verdict.judge(analytical, best, context, rules).status
        gap = np.abs(q.forward - q.backward)
        kink = (gap[-1] > 4 * q.forward_noise[-1]) & (gap[-1] > 0.9 * gap[0])
        low, high = np.minimum(q.forward[-1], q.backward[-1]), np.maximum(q.forward[-1], q.backward[-1])
        never = np.zeros_like(kink)
        kinks = Kinks(kink, never, low - best.bar, high + best.bar, best, best, never)
        status = verdict.admit_kinks(status, analytical, kinks)
    return Entries(directions, analytical, value, best.bar, status, kink, np.full_like(value, np.inf))

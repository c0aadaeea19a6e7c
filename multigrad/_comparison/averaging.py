"""Averaging: another look at entries that rounding hides, where both sides agree but the bar is too wide to say so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multigrad._comparison.context import Context
from multigrad._comparison.entries import Entries
from multigrad._comparison.verdict import Rules, Status, judge
from multigrad._differences import fit
from multigrad._differences.directions import Index
from multigrad._differences.sampler import BLOCK, Sampler


def average(sampler: Sampler, found: Entries, own: Callable[[Index], Context], rules: Rules) -> None:
    """Settle such entries with a fit to many steps, if it is sharper than what was read off a ladder. In place.

    Args:
        sampler: f around x.
        found: the comparison.
        own: what the entries of some directions are judged against.
        rules: the constants.
    """
    close = np.abs(found.analytical - found.value) <= 2 * found.bar
    hidden = (found.status == Status.INCONCLUSIVE) & close & np.isfinite(found.bar) & ~found.broken
    chosen = np.flatnonzero(hidden.any(axis=1))
    if found.unexplored or not 0 < len(chosen) <= fit.AT_MOST:
        return
    size = max(1, BLOCK // max(found.analytical.shape[1], sampler.x.size, 1))
    for start in range(0, len(chosen), size):
        some = chosen[start : start + size]
        at = fit.exponents(sampler.rng, rules.farthest)
        values, up, down = sampler.along(found.directions.take(some), at)
        fitted = fit.fit(values, up, down, at, rules.eps, found.smooth[some])
        status = judge(found.analytical[some], fitted, own(some), rules).status
        # The fit has larger steps than what it is to sharpen, which it must not contradict.
        within = np.abs(fitted.value - found.value[some]) <= found.bar[some] + fitted.bar
        sharp = (status < Status.INCONCLUSIVE) | (fitted.bar <= rules.resolution * np.abs(fitted.value))
        better = hidden[some] & within & sharp & (fitted.bar < found.bar[some]) & (status != Status.INCONCLUSIVE)
        c, i = np.nonzero(better)
        found.record((some[c], i), fitted.value[c, i], fitted.bar[c, i], status[c, i])

"""Nothing: entries that may be what rounding leaves of terms that cancel, where f shows no derivative at all."""

from __future__ import annotations

import numpy as np

from multigrad._comparison.dust import ULPS
from multigrad._comparison.entries import Entries
from multigrad._comparison.verdict import Rules, Status
from multigrad._differences.directions import Mask
from multigrad._differences.ladder import short_ladder
from multigrad._differences.sampler import Sampler
from multigrad._differences.steepness import Steepness
from multigrad.backends import Array

# Of values that are rounding, the largest is at most so many times the smallest, and no larger than this.
QUANTA, LARGEST = 2.0**16, 2.0**-30


def are_nothing(found: Entries, sampler: Sampler, steepness: Steepness, rules: Rules) -> tuple[Mask, Mask]:
    """Where f is 0 all around, or no more than its noise, and a derivative as small as rounding; shapes (C, m).

    The terms that cancel show nowhere: they are taken to be of size 1, as those of a softmax that is summed up are. What
    f is where it is 0 here and not farther away may be another thing than rounding: the second mask says where.
    """
    noise, rounding = sampler.noise, ULPS * rules.eps
    near = np.maximum(np.abs(sampler.here), noise.level)
    largest = np.maximum(near, steepness.largest * np.exp2(short_ladder(rules.eps)[-1]))
    small = (largest <= rounding) & (np.abs(found.analytical) <= rounding)
    noisy = near <= ULPS * noise.sigma
    # Values that are 0 at nearly all points show no noise: what rounding makes of them shows farther away.
    silent = (noise.sigma == 0) & (small & (found.analytical != 0)).any(axis=0)
    if not silent.any():
        return small & noisy, np.zeros_like(small)
    few = np.zeros_like(silent)
    few[silent] = _are_of_few_bits(sampler.afar(rules.farthest)[:, silent])
    return small & np.where(silent, few, noisy), small & silent & ~few & (largest == 0)


def _are_of_few_bits(values: Array) -> Mask:
    """Whether all values, (b, m), are multiples of one power of two, as sums of rounded terms are; shape (m,)."""
    largest = np.max(np.abs(values), axis=0, initial=0.0, where=np.isfinite(values))
    quantum = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0)))) / QUANTA
    return np.asarray((largest <= LARGEST) & (values % quantum == 0).all(axis=0))


def are_all(found: Entries, hidden: Mask) -> Mask:
    """The unresolved entries, if no other was resolved but zeros; shape (C, m).

    Of those that are 0 the ones count that are ``hidden`` by the values of f.
    """
    unresolved = (found.status == Status.UNRESOLVED) & ((found.analytical != 0) | hidden)
    return np.asarray(unresolved & ~((found.analytical != 0) & ~unresolved).any())


def are_dust(found: Entries, dust: Array) -> Mask:
    """The unresolved entries that are no larger than ``dust``, and neither are their bars; shape (C, m)."""
    return np.asarray((found.status == Status.UNRESOLVED) & (np.maximum(np.abs(found.analytical), found.bar) <= dust))

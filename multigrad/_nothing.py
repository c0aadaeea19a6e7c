"""Nothing: entries that may be what rounding leaves of terms that cancel, where f shows no derivative at all."""

from __future__ import annotations

import numpy as np

from multigrad._dust import ULPS
from multigrad._entries import Entries
from multigrad._kinks import Mask
from multigrad._ladder import short_ladder
from multigrad._sampler import Sampler
from multigrad._steepness import Steepness
from multigrad._verdict import Rules, Status
from multigrad.backends import Array


def are_nothing(found: Entries, sampler: Sampler, steepness: Steepness, rules: Rules) -> Mask:
    """Where f is 0 all around, or no more than its noise, and a derivative as small as rounding; shape (C, m).

    The terms that cancel show nowhere: they are taken to be of size 1, as those of a softmax that is summed up are.
    """
    noise, rounding = sampler.noise, ULPS * rules.eps
    near = np.maximum(np.abs(sampler.here), noise.level)
    beside = steepness.largest * np.exp2(short_ladder(rules.eps)[-1])
    nothing = (np.maximum(near, beside) <= rounding) & (near <= ULPS * noise.sigma)
    nothing = nothing & (np.abs(found.analytical) <= rounding)
    # Rounding shows wherever one looks; what begins farther away is something else.
    still = (np.maximum(near, beside) == 0) & (nothing & (found.analytical != 0)).any(axis=0)
    if still.any():
        nothing &= ~(still & (sampler.travel(rules.farthest) > 0))
    return np.asarray(nothing)


def are_all(found: Entries, hidden: Mask) -> Mask:
    """The unresolved entries, if no other was resolved but zeros; shape (C, m).

    Of those that are 0 the ones count that are ``hidden`` by the values of f.
    """
    unresolved = (found.status == Status.UNRESOLVED) & ((found.analytical != 0) | hidden)
    return np.asarray(unresolved & ~((found.analytical != 0) & ~unresolved).any())


def are_dust(found: Entries, dust: Array) -> Mask:
    """The unresolved entries that are no larger than ``dust``, and neither are their bars; shape (C, m)."""
    return np.asarray((found.status == Status.UNRESOLVED) & (np.maximum(np.abs(found.analytical), found.bar) <= dust))

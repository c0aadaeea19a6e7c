"""Estimate: the derivative read off a ladder, with a bar on its error.

Difference quotients at every rung are extrapolated (Richardson; C. J. F. Ridders, Adv. Eng. Software 4(2), 1982) and
each candidate gets a bar: how far its neighbours on the ladder are, plus the noise that its formula lets through.
Ridders keeps the candidate of least error, which trusts two large steps that agree by accident. Here three rungs
must agree, and no smaller step may contradict a candidate beyond its own noise.

The functions are written against the Array API: ``xp`` is the namespace of the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from multigrad._differences.ladder import Samples
from multigrad._differences.noise import Noise, root_mean_square
from multigrad.backends import Array

CENTRAL = (2, 4)  # orders of the error of (f(x+h) - f(x-h)) / 2h: h^2, h^4, ...
ONE_SIDED = (1, 2)


@dataclass(frozen=True)
class Quotients:
    """Difference quotients at K rungs along C directions, each with the noise in it; all (K, C, m).

    Attributes:
        central: (f(x+h) - f(x-h)) / 2h.
        forward: (f(x+h) - f(x)) / h.
        backward: (f(x) - f(x-h)) / h.
        noise: the error of a value of f at the rung.
        central_noise: of ``central``.
        forward_noise: of ``forward``.
        backward_noise: of ``backward``.
    """

    central: Array
    forward: Array
    backward: Array
    noise: Array
    central_noise: Array
    forward_noise: Array
    backward_noise: Array


@dataclass(frozen=True)
class Estimate:
    """A derivative and the bound on its error, entry by entry; shape (C, m)."""

    value: Array
    bar: Array


def quotients(samples: Samples, here: Array, noise: Noise, eps: float, xp: Any = np) -> Quotients:
    """Form the difference quotients; ``here`` is f(x)."""
    plus, minus, up, down = samples.plus, samples.minus, samples.up, samples.down
    magnitude = xp.fmax(xp.fmax(xp.abs(plus), xp.abs(minus)), xp.abs(here))
    value_noise = noise.of(magnitude, eps)
    return Quotients(
        central=(plus - minus) / (up + down),
        forward=(plus - here) / up,
        backward=(here - minus) / down,
        noise=value_noise,
        central_noise=2 * value_noise / (up + down),
        forward_noise=2 * value_noise / up,
        backward_noise=2 * value_noise / down,
    )


def estimate(
    quotient: Array,
    noise: Array,
    ratio: float,
    orders: tuple[int, int] = CENTRAL,
    least: Array | None = None,
    xp: Any = np,
) -> Estimate:
    """Choose, entry by entry, the candidate of smallest bar from a ladder of quotients, shape (K, C, m).

    ``least``, of that shape, is what the bar of a candidate at a rung is at least.
    """
    once, once_noise = extrapolate(quotient, noise, ratio ** orders[0])
    twice, twice_noise = extrapolate(once, once_noise, ratio ** orders[1])
    value, bar = quotient[-1], xp.full_like(quotient[-1], xp.inf)
    for skip, (a, n) in enumerate([(quotient, noise), (once, once_noise), (twice, twice_noise)]):
        power = ratio ** (orders[0] + skip * (orders[1] - orders[0]))
        bars = _bars(a, n, once, once_noise, skip, power, ratio, xp) if len(a) > 1 else ()
        for k in range(1, len(bars)):  # a first rung has nothing to be compared with
            wide = bars[k] if least is None else xp.maximum(bars[k], least[k])
            value, bar = xp.where(wide < bar, a[k], value), xp.where(wide < bar, wide, bar)
    return Estimate(value, bar)


def extrapolate(a: Array, noise: Array, power: float) -> tuple[Array, Array]:
    """Cancel the error term that falls by ``power`` from a rung to the next; returns the values and their noise."""
    w = power - 1
    return a[1:] + (a[1:] - a[:-1]) / w, ((w + 1) * noise[1:] + noise[:-1]) / w


def _bars(
    a: Array, noise: Array, tail: Array, tail_noise: Array, skip: int, power: float, ratio: float, xp: Any
) -> Any:
    """Bar of each rung of a column of the tableau; infinite where a rung has no neighbours or is contradicted.

    ``tail`` is the column whose smaller steps may contradict; ``skip`` is how many rungs more than one a candidate
    of ``a`` uses, whose error falls by ``power`` from a rung to the next.
    """
    gap = xp.abs(a[1:] - a[:-1])
    following = _following(gap, noise, power, xp)
    following = xp.where(following > 0, following, 0.0)  # a following step below the rounding of x is NaN
    spread = xp.concatenate([xp.full_like(a[:1], xp.inf), xp.maximum(gap[:-1], following), gap[-1:]])
    # Where neighbours part more and more as steps get smaller, a limit is not in sight.
    parting = gap[1:] - noise[2:] - noise[1:-1] > gap[:-1]
    parting = xp.concatenate([xp.zeros_like(a[:2], dtype=xp.bool), parting])
    bars = xp.maximum(spread, _beyond(gap, noise, ratio, xp)) + noise
    bars = xp.where(xp.isfinite(bars) & xp.isfinite(a) & ~parting, bars, xp.inf)
    if len(tail) <= 2:
        return bars
    first = max(skip, 1)
    lowest, highest = tail - 2 * tail_noise, tail + 2 * tail_noise
    # The tightest that the rungs from each on ask for. A rung that is NaN (outside the domain) asks for nothing.
    floor = _from_below(xp.where(xp.isnan(lowest), -xp.inf, lowest), xp.maximum)[first:]
    ceiling = _from_below(xp.where(xp.isnan(highest), xp.inf, highest), xp.minimum)[first:]
    held = slice(0, len(floor))
    against = (floor > a[held] + bars[held]) | (ceiling < a[held] - bars[held])
    return xp.concatenate([xp.where(against, xp.inf, bars[held]), bars[len(floor) :]])


def _following(gap: Array, noise: Array, power: float, xp: Any) -> Any:
    """How far each rung but the first and the last is from the next, less what noise may make of that.

    Two steps that agree better than the step before them lets expect do so by accident, as where the error changes its
    sign between them. What the next step is off by is no noise then, as far as that expectation goes.
    """
    expected = xp.concatenate([xp.full_like(gap[:1], xp.inf), gap[:-2] / power])
    accident = xp.where(expected < gap[1:], expected, gap[1:])
    return xp.maximum(gap[1:] - noise[2:], accident)


def _beyond(gap: Array, noise: Array, ratio: float, xp: Any) -> Array:
    """How far each rung may be from the limit, where neighbours part until noise hides how they go on; else 0.

    As at a distance from x**1.5 at 0 that no step resolves. They may go on parting down to the smallest step, at the
    rate at which they were last seen to part, but no faster than a jump makes them; until they are seen to be nearer.
    """
    if len(gap) < 3:
        return np.zeros_like(noise)
    both = noise[1:] + noise[:-1]
    sure = gap - both
    parts = sure[1:] > gap[:-1]
    # Two that agree by accident have the next ones part, but not twice.
    parts = xp.concatenate([xp.zeros_like(gap[:2], dtype=xp.bool), parts[1:] & parts[:-1]])
    falls = gap + both < np.fmax.accumulate(xp.concatenate([xp.zeros_like(gap[:1]), sure[:-1]]), axis=0)
    rungs = xp.arange(len(gap))[:, None, None]
    parted, fallen = (np.maximum.accumulate(xp.where(mask, rungs, -1), axis=0) for mask in (parts, falls))
    last = xp.maximum(parted, 1)
    widest, before = np.take_along_axis(gap, last, axis=0), np.take_along_axis(gap, last - 1, axis=0)
    rate = xp.where(before > widest / ratio, widest / xp.where(before > 0, before, 1.0), ratio)
    far = xp.where(parted > fallen, widest * rate ** (len(gap) - last), 0.0)
    return np.asarray(xp.concatenate([xp.zeros_like(gap[:1]), far]))


def _from_below(rungs: Array, combine: Any) -> Array:
    """Accumulate along the rungs, from the smallest step up."""
    return np.asarray(combine.accumulate(rungs[::-1], axis=0)[::-1])


def tail_noise(samples: Samples, rungs: int = 7, powers: tuple[int, ...] = (0, 1, 3)) -> Array:
    """Noise seen in the smallest steps themselves, shape (C, m).

    f(x+h) - f(x-h) over the smallest rungs is c + d h + e h^3 for a smooth f, and also across a jump; what a
    least-squares fit of that leaves over is noise. Fewer rungs are less likely to reach a kink or jump beside x.
    """
    delta = samples.plus - samples.minus
    usable = np.flatnonzero(np.isfinite(samples.up * delta).any(axis=(1, 2)))[-rungs:]
    if len(usable) < rungs:
        return np.zeros(delta.shape[1:])
    basis = (samples.ratio ** -np.arange(float(rungs)))[:, None] ** np.array(powers)
    annihilator = np.eye(rungs) - basis @ np.linalg.pinv(basis)
    used = delta[usable]
    finite = np.isfinite(used)
    residual = np.tensordot(annihilator, np.where(finite, used, 0.0), axes=1)
    rms = root_mean_square(residual, 0, rungs - len(powers))
    return np.asarray(np.where(finite.all(axis=0), rms, 0.0))

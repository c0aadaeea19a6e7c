"""Slips: what two arrays of values that ought to be the same have in common, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from multigrad.consistency.conventions import Difference, Numbers

Test = Callable[[Difference], str | None]

SINGLE = 2.0**-23


def diagnose(difference: Difference) -> str:
    """Say how the first array differs from the second, if it does so in a way that has a name; else nothing."""
    with np.errstate(all="ignore"):
        if difference.same(difference.a, difference.b):  # no other pairing would explain the numbers better
            return ""
        return next((words for test in TESTS if (words := test(difference))), "")


def _where(d: Difference) -> str | None:
    finite = np.isfinite(d.a) != np.isfinite(d.b)
    return f"{int(finite.sum())} of {d.a.size} values are finite on one side alone" if finite.any() else None


def _factor(d: Difference) -> str | None:
    used = d.b != 0
    ratio = d.a[used] / d.b[used]
    if not ratio.size or not d.same(ratio, np.full_like(ratio, ratio[0])):
        return None
    if not ratio[0]:
        return None
    factor = complex(ratio[0]) if np.iscomplexobj(ratio) else float(ratio[0])
    sizes = sorted({n for x in d.inputs for n in (*x.shape, x.size) if n > 1})
    hints = [
        f"{n} is the size of an input or of an axis"
        for n in sizes
        if _near(abs(factor), n) or _near(abs(factor), 1 / n)
    ]
    hints += [f"the square root of {n}" for n in sizes if _near(abs(factor), n**0.5) or _near(abs(factor), n**-0.5)]
    hints += ["the sign is wrong"] if factor == -1 else []
    if ratio.size < 3 and not hints:
        return None
    return f"a constant factor of {factor:.9g}" + (f": {hints[0]}" if hints else "")


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * b


def _offset(d: Difference) -> str | None:
    gap = d.b - d.a
    for i, x in enumerate(d.inputs):
        for sign, words in ((1, "lacks"), (-1, "has too much by")):
            alike = x.ndim <= gap.ndim and x.size > 1 and x.shape == gap.shape[gap.ndim - x.ndim :]
            if alike and d.same(d.a + sign * x, d.b):
                return f"it {words} input leaf {i}, added once"
    constant = np.median(gap) if gap.dtype.kind == "f" else gap.flat[0] if gap.size else 0
    if gap.size > 2 and d.same(d.a + constant, d.b):
        return f"a constant offset of {-constant:.{_digits(d, abs(constant))}g}"
    return None


def _digits(d: Difference, number: float) -> int:
    """How many digits of a difference of that size are not rounding."""
    size = np.max(np.abs(d.b), initial=0.0, where=np.isfinite(d.b))
    return int(np.clip(np.log10(number / (size * d.tolerance)), 1, 9))


def _shift(d: Difference) -> str | None:
    for axis, size in enumerate(d.a.shape):
        for step in (1, -1):
            cut = slice(1, None) if step == 1 else slice(None, -1)
            other = slice(None, -1) if step == 1 else slice(1, None)
            here, there = _take(d.a, cut, axis), _take(d.b, other, axis)
            if size > 2 and np.ptp(np.abs(there)) > 0 and d.same(here, there):
                return f"off by one along axis {axis}: entry i is the other's entry i {'-' if step == 1 else '+'} 1"
    return None


def _flip(d: Difference) -> str | None:
    for axis, size in enumerate(d.a.shape):
        if size > 1 and d.same(d.a, np.flip(d.b, axis)):
            return f"the entries run backwards along axis {axis}"
    return None


def _part(d: Difference) -> str | None:
    differ = np.abs(d.a - d.b) > d.tolerance * np.abs(d.b)
    for axis, size in enumerate(differ.shape):
        rows = np.flatnonzero(differ.any(axis=tuple(k for k in range(differ.ndim) if k != axis)))
        if 0 < len(rows) <= size // 3:
            return f"they differ at {', '.join(map(str, rows[:4]))} of {size} along axis {axis} alone"
    return None


def _order(d: Difference) -> str | None:
    if not np.iscomplexobj(d.a) and d.a.size > 2 and d.same(np.sort(d.a.ravel()), np.sort(d.b.ravel())):
        return "the same numbers in another order"
    return None


def _single(d: Difference) -> str | None:
    """Float32 somewhere in code that is given float64: the difference is of the size of its rounding."""
    gap = np.abs(d.a - d.b) / np.max(np.abs(d.b), initial=0.0)
    if d.tolerance > SINGLE / 4 or not SINGLE / 32 < gap.max(initial=0.0) < 2 * SINGLE:
        return None
    return "the difference is of the size of float32's rounding: a constant or a part of one of them may be in float32"


def _take(a: Numbers, cut: slice, axis: int) -> Numbers:
    return a[(slice(None),) * axis + (cut,)]


TESTS: Sequence[Test] = (_where, _offset, _single, _factor, _shift, _flip, _order, _part)

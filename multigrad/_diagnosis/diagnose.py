"""Diagnosis: what the wrong entries have in common, in words, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from multigrad._comparison.verdict import Status, Verdict
from multigrad._diagnosis.symptoms import explain
from multigrad._diagnosis.wrong_block import CLOSE, WrongBlock
from multigrad._differences.directions import Mask
from multigrad._report.leg import Leg
from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.findings import Finding

MOST = 4


def diagnose(legs: Sequence[Leg], broken: Sequence[Mask], f: FlatFunction, y: Array) -> list[Finding]:
    """Say what is wrong with the legs that are; nothing where no pattern explains it.

    Args:
        legs: the comparisons, shape (m, n) each.
        broken: where f has no derivative, for each of them: an estimate is none there.
        f: the flat function.
        y: f(x), shape (m,).
    """
    wrong = [leg for leg in legs if leg.verdict is Verdict.MISMATCH]
    found = list(_which_leg(legs, wrong))
    for leg, kinks in zip(legs, broken, strict=True):
        if leg is wrong[0]:
            smooth = replace(leg, bar=np.where(kinks & np.isfinite(leg.analytical), np.inf, leg.bar))
            found += _of_leg(smooth, f.inputs, f.outputs, f.x, y)
    return found


def _which_leg(legs: Sequence[Leg], wrong: Sequence[Leg]) -> Iterator[Finding]:
    if len(legs) < 2 or not wrong:
        return
    one, other = legs[:2]
    if len(wrong) == 1:
        right = next(leg for leg in legs if leg is not wrong[0])
        if right.verdict is Verdict.OK:
            yield _finding(
                f"{wrong[0].mode} mode is wrong and {right.mode} mode is right: the error is in its rule alone",
                wrong[0],
            )
    elif _alike(one.analytical, other.analytical):
        yield _finding(
            "both modes agree with each other, and not with the function: what is differentiated is not what is "
            "evaluated, as where a path is detached or a gradient stopped",
            one,
        )


def _of_leg(leg: Leg, inputs: Sequence[Leaf], outputs: Sequence[Leaf], x: Array, y: Array) -> Iterator[Finding]:
    swapped = _swapped(leg, inputs)
    if swapped:
        yield _finding(swapped, leg)
        return
    said: dict[str, list[str]] = {}
    for block in _blocks(leg, inputs, outputs, x, y):
        said.setdefault(explain(block), []).append(f"d {block.output.path} / d {block.input.path}")
    said.pop("", None)
    for text, places in list(said.items())[:MOST]:
        yield Finding("diagnosis", text, f"{leg.mode}, {_listed(places)}")
    yield from _right_blocks(leg, inputs)


def _blocks(leg: Leg, inputs: Sequence[Leaf], outputs: Sequence[Leaf], x: Array, y: Array) -> Iterator[WrongBlock]:
    wrong = leg.status == Status.MISMATCH
    for output in outputs:
        for leaf in inputs:
            part = output.slice, leaf.slice
            if wrong[part].any():
                sides = leg.analytical[part], leg.numeric[part], leg.bar[part], wrong[part]
                yield WrongBlock(output, leaf, *sides, x[leaf.slice], y[output.slice])


def _swapped(leg: Leg, inputs: Sequence[Leaf]) -> str:
    for i, one in enumerate(inputs):
        for other in inputs[i + 1 :]:
            if one.size != other.size or not (leg.status[:, one.slice] == Status.MISMATCH).any():
                continue
            claimed, true = leg.analytical, leg.numeric
            crossed = _alike(claimed[:, one.slice], true[:, other.slice]) and _alike(
                claimed[:, other.slice], true[:, one.slice]
            )
            if crossed and not _alike(true[:, one.slice], true[:, other.slice]):
                return f"the gradients of {one.path} and {other.path} are exchanged"
    return ""


def _right_blocks(leg: Leg, inputs: Sequence[Leaf]) -> Iterator[Finding]:
    """Say so if all that is wrong belongs to some of the inputs, and the others are known to be right."""
    parts = {leaf.path: leg.status[:, leaf.slice] for leaf in inputs if leaf.size}
    wrong = [path for path, status in parts.items() if (status == Status.MISMATCH).any()]
    told = [path for path, status in parts.items() if (status <= Status.UNRESOLVED).all()]
    right = [path for path in told if (parts[path] == Status.OK).any()]
    if wrong and right and leg.unexplored == 0:
        only = "only " if len(wrong) + len(told) == len(parts) else ""
        yield _finding(f"{only}the gradient of {_listed(wrong)} is wrong; that of {_listed(right)} is right", leg)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST]) + (", ..." if len(names) > MOST else "")


def _alike(one: Array, other: Array) -> bool:
    size = max(float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a))) for a in (one, other))
    return bool(np.allclose(one, other, rtol=CLOSE, atol=1e-9 * size, equal_nan=True))


def _finding(text: str, leg: Leg) -> Finding:
    return Finding("diagnosis", text, leg.mode)


def of_cotangent(u: Array, product: Array, J: Array, outputs: Sequence[Leaf]) -> str:
    """Say what a backward pass does to the cotangent ``u`` (m,), if its product (n,) shows that; empty if not.

    ``J`` is the Jacobian that it gives for one-hot cotangents.
    """
    for name, seen in _misuses(u, outputs):
        expected = seen @ J
        slack = CLOSE * (np.abs(seen) @ np.abs(J))
        if (np.abs(product - expected) <= slack).all():
            return name
    return ""


def _misuses(u: Array, outputs: Sequence[Leaf]) -> Iterator[tuple[str, Array]]:
    yield "it takes the absolute value of the cotangent", np.abs(u)
    yield "the cotangent is multiplied in twice", u * u
    yield "the cotangent is not multiplied in", np.ones_like(u)
    yield "it takes the sign of the cotangent" + ("" if (np.abs(u) < 1).any() else ", or clips it at 1"), np.sign(u)
    yield "it normalises the cotangent", u / np.linalg.norm(u)
    yield "it normalises the cotangent by its largest entry", u / np.max(np.abs(u))
    for bound in (1.0, 5.0, 10.0, 0.5, 2.0):
        yield f"it clips the cotangent at {bound:g}", np.clip(u, -bound, bound)
    for sign, name in ((1.0, "negative"), (-1.0, "positive")):
        yield f"it drops {name} cotangents", np.where(sign * u > 0, u, 0.0)
    yield "it uses the mean of the cotangents for each of them", np.full_like(u, u.mean())
    yield "it uses the first cotangent for all of them", np.full_like(u, u[0])
    for leaf in outputs if len(outputs) > 1 else ():
        left_out = u.copy()
        left_out[leaf.slice] = 0.0
        yield f"the cotangent of {leaf.path} is not used where those of other outputs are not zero", left_out

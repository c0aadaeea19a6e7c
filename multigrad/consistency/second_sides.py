"""The second order of a comparison: the gradients of the sides, as sides of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multigrad._differences.directions import signed
from multigrad.backends import Array, Leaf
from multigrad.consistency.evidence import Evidence
from multigrad.consistency.matching import Pair
from multigrad.consistency.sides import Side, vector
from multigrad.errors import Defect, Unsupported
from multigrad.findings import Finding


def second_order(first: Evidence, names: Sequence[str], seed: int) -> tuple[Evidence | None, list[Finding]]:
    """Compare the gradients u^T J of the named sides, which are functions of x and of a change of u.

    Returns:
        What was found; None if fewer than two sides can be differentiated twice. And what was noticed.
    """
    rng = np.random.default_rng((seed, 2))
    m = first.lead.rows.size
    u, w = signed(rng, 1.0, 2.0, (m,)), signed(rng, 1.0, 2.0, (m,))
    made: dict[str, Side] = {}
    findings = []
    for name in names:
        try:
            made[name] = _gradient(first.sides[name], u, w)
        except (Unsupported, Defect) as error:
            findings.append(Finding("mode_unavailable", f"{name}: {error}", "order 2"))
    if len(made) < 2:
        return None, findings
    second = Evidence(first.call, made, made.get(first.lead.name) or next(iter(made.values())))
    second.compare_values()
    second.group(())
    second.differentiate()
    second.lend()
    return second, findings


def _gradient(side: Side, u: Array, w: Array) -> Side:
    make = getattr(side.f, "gradient", None)
    if make is None:
        raise Unsupported("this backend has no second order")
    g = make(vector(side, u), vector(side, w))
    number = {leaf.path: k for k, leaf in enumerate(side.f.inputs)}
    inputs = [replace(pair, leaf=g.inputs[number[pair.leaf.path]]) for pair in side.inputs]
    outputs = [Pair(_named(pair.reference), g.outputs[number[pair.leaf.path]], pair.axes) for pair in side.inputs]
    cotangent = g.inputs[-1]
    return Side(side.name, g, side.layout, [*inputs, Pair(cotangent, cotangent)], outputs)


def _named(leaf: Leaf) -> Leaf:
    return replace(leaf, path=f"grad({leaf.path})")

"""The call: what the user wants compared, and how the functions of it are made flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multigrad.backends import Array, Backend, FlatFunction, Leaf, Options, accept_options
from multigrad.consistency.handover import hand_over, is_array
from multigrad.consistency.layouts import Orders, named, search
from multigrad.consistency.matching import Layout, Pair, match_inputs, match_outputs
from multigrad.consistency.sides import ROUNDOFF, Side, flatten
from multigrad.findings import Finding
from multigrad.tree import walk


@dataclass(frozen=True)
class Call:
    """What is to be compared; the attributes are ``check_consistency``'s arguments, by backend.

    Attributes:
        shared: the inputs are one and the same for all.
        wide: floating inputs of low precision are handed over in float64.
    """

    functions: Mapping[str, Callable[..., Any]]
    backends: Mapping[str, Backend]
    inputs: Mapping[str, tuple[Any, ...]]
    shared: bool
    layouts: Mapping[str, Layout]
    jac: Mapping[str, Callable[..., Any]]
    params: Mapping[str, Any]
    options: Mapping[str, Mapping[str, Any]]
    modes: tuple[str, ...]
    rtol: float | None
    accept: frozenset[str]
    reference: str | None
    seed: int
    order: int
    wide: bool = False

    @property
    def leaves(self) -> list[Any]:
        """All leaves of all inputs."""
        return [leaf for tree in self.inputs.values() for _, leaf in walk(tree)]

    def make(self, name: str, orders: Orders) -> FlatFunction:
        """The flat function of one backend, its inputs' axes in these orders."""
        backend = self.backends[name]
        inputs = hand_over(self.inputs[name], backend, orders, self.wide)
        extra = accept_options(backend, self.options.get(name, {}))
        options = Options(jac=self.jac.get(name), params=self.params.get(name), seed=self.seed, extra=extra)
        return flatten(backend, self.functions[name], inputs, options)

    def side(self, name: str) -> Side:
        """One backend's side, as declared; raises what its function raises."""
        layout = self.layouts[name]
        return Side(name, self.make(name, layout.axes if self.shared else {}), layout)

    def in_another_layout(self, name: str, target: Side) -> tuple[Side, Finding] | None:
        """The same with the axes of inputs and outputs in other orders, so that it agrees with ``target``."""
        if not self.shared:
            return None
        layout = self.layouts[name]
        shapes = [(path, np.shape(value)) for path, value in walk(self.inputs[name], "inputs") if is_array(value)]
        free = [(path, shape) for path, shape in shapes if path not in layout.axes]
        found = search(target.f, free, lambda orders: self.make(name, {**layout.axes, **orders}), _about_equal(target))
        if found is None:
            return None
        f, inputs, outputs = found
        orders = {**inputs, **outputs}
        return Side(name, f, layout.reordered(orders)), _said(name, target, orders, dict(shapes))


def _said(name: str, target: Side, orders: Orders, shapes: Mapping[str, tuple[int, ...]]) -> Finding:
    own = {leaf.path: leaf.shape for leaf in target.f.outputs}
    where = "; ".join(f"{path} {named(axes, {**own, **shapes}.get(path, ()))}" for path, axes in orders.items())
    return Finding(
        "layout",
        f"{name} agrees with {target.name} if it has {where}",
        ", ".join(orders),
        f"if that is meant, mapping={{{name!r}: {dict(orders)!r}}}; otherwise look for an axis or a transpose",
    )


def _about_equal(target: Side) -> Callable[[Array, Array], bool]:
    rtol = max(1e-9, 64 * max(ROUNDOFF.get(leaf.dtype, target.f.eps) for leaf in target.f.outputs))

    def agree(a: Array, b: Array) -> bool:
        size = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        return bool(np.allclose(a, b, rtol=rtol, atol=rtol * float(size), equal_nan=True))

    return agree


def match(sides: Mapping[str, Side], lead: Side) -> list[Finding]:
    """Pair the leaves of all sides with the lead's; keep those that all have, and report the rest."""
    for side in sides.values():
        side.inputs = match_inputs(lead.f.inputs, lead.f.x, side.f.inputs, side.f.x, side.layout)
        side.outputs = match_outputs(lead.f.outputs, side.f.outputs, side.layout)
        found = frozenset(pair.reference.path for pair in side.outputs)
        side.outline = found, len(side.f.outputs) - len(found)
    findings = [
        _other_order(side, pair, lead) for side in sides.values() for pair in side.inputs if _noticed(side, pair)
    ]
    findings += [finding for side in sides.values() for finding in _reshaped(side, lead)]
    for kind in ("inputs", "outputs"):
        common = set.intersection(*({p.reference.path for p in getattr(side, kind)} for side in sides.values()))
        for side in sides.values():
            kept = [p for p in getattr(side, kind) if p.reference.path in common]
            setattr(side, kind, kept)
            findings += _unmatched(kind, side, kept, [other for other in sides.values() if other is not side])
    return findings


def _noticed(side: Side, pair: Pair) -> bool:
    return pair.axes is not None and pair.leaf.path not in side.layout.axes


def _reshaped(side: Side, lead: Side) -> list[Finding]:
    """Outputs that hold the numbers in one order but in another shape, which may broadcast otherwise later on."""
    return [
        Finding(
            "layout", f"{side.name} returns it in shape {p.leaf.shape}, {lead.name} in {p.reference.shape}", p.leaf.path
        )
        for p in side.outputs
        if p.axes is None and p.leaf.shape != p.reference.shape
    ]


def _other_order(side: Side, pair: Pair, lead: Side) -> Finding:
    axes = named(pair.axes or (), pair.leaf.shape)
    return Finding("layout", f"holds the numbers of {lead.name}'s {pair.reference.path}, {axes}", pair.leaf.path)


def _unmatched(kind: str, side: Side, kept: Sequence[Any], others: Sequence[Side]) -> list[Finding]:
    matched = {pair.leaf.path for pair in kept}
    left: list[Leaf] = [leaf for leaf in getattr(side.f, kind) if leaf.path not in matched]
    return [_held_fixed(side, leaf, others) or _without_counterpart(kind, side, leaf, others) for leaf in left]


def _held_fixed(side: Side, leaf: Leaf, others: Sequence[Side]) -> Finding | None:
    holding = [other.name for other in others if any(text.startswith(f"{leaf.path} (") for text in other.f.fixed)]
    if not holding:
        return None
    evidence = f"{' and '.join(holding)} holds it fixed, so that {side.name}'s derivatives by it are not compared"
    return Finding("held_fixed", evidence, leaf.path)


def _without_counterpart(kind: str, side: Side, leaf: Leaf, others: Sequence[Side]) -> Finding:
    lacking = [o for o in others if leaf.path not in {own.path for own in getattr(o.f, kind)}] or others
    return Finding(
        "unmatched",
        f"{side.name} has {leaf.path}, {leaf.dtype} of shape {leaf.shape}; "
        f"there is no {kind[:-1]} like it in {' and '.join(_listing(other, kind) for other in lacking)}",
        leaf.path,
        "say which is which, mapping={backend: {its path: the reference's path}}",
    )


def _listing(side: Side, kind: str) -> str:
    leaves: Sequence[Leaf] = getattr(side.f, kind)
    return f"{side.name} ({', '.join(f'{leaf.path} {leaf.shape}' for leaf in leaves[:6])})"

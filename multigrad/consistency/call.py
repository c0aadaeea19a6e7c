"""The call: what the user wants compared, and how the functions of it are made flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from multigrad.backends import Array, Backend, FlatFunction, Options, accept_options
from multigrad.consistency.counterparts import reshaped, unmatched
from multigrad.consistency.handover import hand_over, is_array
from multigrad.consistency.layouts import Orders, as_inputs_lie, declaration, named, search
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
        """The same with the axes of inputs and outputs in other orders, so that it agrees with ``target``.

        Inputs of its own lie as the user gave them.
        """
        layout, given = self.layouts[name], self.layouts[name].axes if self.shared else {}
        shapes = [(path, np.shape(value)) for path, value in walk(self.inputs[name], "inputs") if is_array(value)]
        free = [(path, shape) for path, shape in shapes if path not in layout.axes] if self.shared else []
        found = search(target.f, free, layout, lambda o: self.make(name, {**given, **o}), _about_equal(target))
        if found is None:
            return None
        f, inputs, outputs = found
        leads = name == (self.reference or next(iter(self.functions)))
        said = _said(name, target, inputs, outputs, dict(shapes), f"reference={target.name!r}, " if leads else "")
        return Side(name, f, layout.reordered(inputs).with_pairs(outputs)), said


def _said(
    name: str,
    target: Side,
    inputs: Orders,
    outputs: Sequence[Pair],
    shapes: Mapping[str, tuple[int, ...]],
    reference: str,
) -> Finding:
    own = {pair.leaf.path: pair.leaf.shape for pair in outputs}
    orders = {**inputs, **{pair.leaf.path: pair.axes for pair in outputs if pair.axes is not None}}
    where = "; ".join(f"{path} {named(axes, {**own, **shapes}[path])}" for path, axes in orders.items())
    return Finding(
        "layout",
        f"{name} agrees with {target.name} if it has {where}",
        ", ".join(orders),
        f"if that is meant, {reference}{declaration(name, orders, outputs)}; otherwise look for an axis or a transpose",
    )


def _about_equal(target: Side) -> Callable[[Array, Array], bool]:
    rtol = max(1e-9, 64 * max(ROUNDOFF.get(leaf.dtype, target.f.eps) for leaf in target.f.outputs))

    def agree(a: Array, b: Array) -> bool:
        size = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        return bool(np.allclose(a, b, rtol=rtol, atol=rtol * float(size), equal_nan=True))

    return agree


def match(sides: Mapping[str, Side], lead: Side) -> list[Finding]:
    """Pair the leaves of all sides with the lead's; keep those that all have, and report the rest."""
    findings: list[Finding] = []
    for side in sides.values():
        side.inputs = match_inputs(lead.f.inputs, lead.f.x, side.f.inputs, side.f.x, side.layout)
        side.outputs = match_outputs(lead.f.outputs, side.f.outputs, side.layout)
        found = frozenset(pair.reference.path for pair in side.outputs)
        side.outline = found, len(side.f.outputs) - len(found)
        findings += [_other_order(side, pair, lead) for pair in side.inputs if _noticed(side, pair)]
    for side in sides.values():
        side.outputs, said = as_inputs_lie(side, lead)
        findings += [*said, *reshaped(side, lead)]
    for kind in ("inputs", "outputs"):
        paired = {name: {pair.leaf.path for pair in getattr(side, kind)} for name, side in sides.items()}
        common = set.intersection(*({p.reference.path for p in getattr(side, kind)} for side in sides.values()))
        for side in sides.values():
            setattr(side, kind, [p for p in getattr(side, kind) if p.reference.path in common])
        findings += unmatched(kind, list(sides.values()), lead, paired)
    return findings


def _noticed(side: Side, pair: Pair) -> bool:
    return pair.axes is not None and pair.leaf.path not in side.layout.axes


def _other_order(side: Side, pair: Pair, lead: Side) -> Finding:
    axes = named(pair.axes or (), pair.leaf.shape)
    return Finding("layout", f"holds the numbers of {lead.name}'s {pair.reference.path}, {axes}", pair.leaf.path)

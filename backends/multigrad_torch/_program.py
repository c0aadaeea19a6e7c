"""The user's function on tensors made of a flat row: the one place where it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from multigrad._findings import Finding
from multigrad.backends import Array, Options
from multigrad.errors import InvalidUse
from multigrad_torch import _captures, _params
from multigrad_torch._dtypes import WIDE, nominal_dtype
from multigrad_torch._leaves import Fixed, Slot, copied, sort_out
from multigrad_torch._outputs import Outputs, pack
from multigrad_torch._params import Params
from multigrad_torch._promote import AsWritten, Promotion
from multigrad_torch._state import State
from multigrad_torch._tree import Tree


class Program:
    """The user's function, the leaves it takes, and the state around it.

    Attributes:
        slots: the checked leaves, inputs first, then params, in the order of the flat vector.
        arguments: the slots that are inputs.
        params: the slots that are not.
        fixed: the inputs that are held fixed.
        state: the context that every call runs in.
        outputs: the pattern of what it returns; set by the first call.
        promoted: whether it is evaluated in float64 instead of the precision that it is written for.
        findings: what was noticed; grows.
        rewritten: fixed inputs that the first call has written to, by path, as it has left them.
    """

    outputs: Outputs

    def __init__(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> None:
        if torch.is_inference_mode_enabled():
            raise InvalidUse("inference_mode", "gradients are off inside torch.inference_mode(); check outside of it")
        self._fn = fn
        self._tree = Tree(inputs, "inputs")
        self._places = sort_out(self._tree.leaves)
        self.arguments = [place for place in self._places if isinstance(place, Slot)]
        self.fixed = [place for place in self._places if isinstance(place, Fixed)]
        reached = _captures.reached(fn)
        known = [*reached.values(), *(place.value for place in self.fixed), options.params]
        self.state = State(*_stateful(known))
        start = self.arguments[-1].leaf.slice.stop if self.arguments else 0
        extra: list[Slot] = []
        for path, tensor in _params.wanted(fn, options.params, reached).items():
            extra.append(Slot(path, tensor, start))
            start = extra[-1].leaf.slice.stop
        self.params = Params(extra, known)
        self.slots = (*self.arguments, *extra)
        if not self.slots:
            raise InvalidUse("no_differentiable_input", _nothing_to_check(self.fixed))
        self.findings: list[Finding] = []
        self.rewritten: dict[str, Any] = {}
        self.promoted = False
        self._nominal = nominal_dtype(slot.given for slot in self.slots)

    def promote(self, on: bool) -> None:
        """Evaluate it in float64, or as it is written."""
        self.promoted = on
        for slot in self.slots:
            slot.dtype = WIDE.get(slot.given, slot.given) if on else slot.given
        self.outputs.promote(on)

    def evaluation(self) -> Promotion | AsWritten:
        """The arithmetic of one evaluation and of the backward passes that belong to it."""
        return Promotion(self._nominal) if self.promoted else AsWritten()

    def values(self, row: Array) -> list[Tensor]:
        """Fresh dense numbers for every slot: (n,) or (b, n)."""
        return [slot.values(row) for slot in self.slots]

    def split(self, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Those of the arguments, and those of the params."""
        count = len(self.arguments)
        return values[:count], values[count:]

    def arrange(self, tensors: Sequence[Tensor]) -> list[Any]:
        """All leaves of the inputs: tensors in the places of the checked arguments, fresh copies of the fixed ones."""
        given = iter(tensors)
        return [next(given) if isinstance(place, Slot) else place.copy() for place in self._places]

    def as_left(self, leaves: Sequence[Any]) -> list[Any]:
        """The same leaves, the fixed ones as the first call has left them."""
        pairs = zip(self._places, leaves, strict=True)
        return [self.rewritten.get(p.path, one) if isinstance(p, Fixed) else one for p, one in pairs]

    def call(self, leaves: Sequence[Any], evaluation: Promotion | AsWritten | None = None) -> Any:
        """Call the user's function on leaves that ``arrange`` has made."""
        evaluation = evaluation or self.evaluation()
        with evaluation.active():
            for place, leaf in zip(self._places, leaves, strict=True):
                if isinstance(place, Slot):
                    evaluation.take(leaf, place.given)
            for slot, tensor in zip(self.params.slots, self.params.current, strict=True):
                if tensor.dtype is not slot.given:
                    evaluation.take(tensor, slot.given)
            return self._fn(*self._tree.build(iter(leaves)))

    def plain(self, row: Array) -> Array:
        """One call as the user would make it: (n,) -> (m,). The state must be open."""
        return pack(self.outputs.take(self.returned(row)))

    def repeated(self, row: Array) -> Array:
        """Such a call on what the first call has left of the fixed inputs. The state must be open."""
        values, others = self.split(self.values(row))
        with torch.enable_grad(), self.params.at(others):
            handed = [_as_users(slot, v) for slot, v in zip(self.arguments, values, strict=True)]
            return pack(self.outputs.take(self.call(self.as_left(self.arrange(handed)))))

    def returned(self, row: Array, thorough: bool = False) -> Any:
        """What a call as the user would make it returns. Notes the inputs that it changed; the state must be open.

        Args:
            row: the flat point.
            thorough: compare all inputs with what they were, and not only those whose version has moved.
        """
        values, others = self.split(self.values(row))
        with torch.enable_grad(), self.params.at(others):
            leaves = self.arrange([_as_users(slot, v) for slot, v in zip(self.arguments, values, strict=True)])
            versions = [_version(leaf) for leaf in leaves]
            returned = self.call(leaves)
        for place, leaf, version in zip(self._places, leaves, versions, strict=True):
            if thorough or _version(leaf) != version:
                self._note_change(place, leaf, row, thorough)
        return returned

    def tracked(self, row: Array, evaluation: Promotion | AsWritten | None = None) -> tuple[list[Tensor], list[Tensor]]:
        """A call in which every checked leaf requires a gradient: these leaves, and the outputs with their graph.

        The state must be open, ``params.tracked()`` too.
        """
        values, _ = self.split(self.values(row))
        leaves = [slot.hand(value).requires_grad_(True) for slot, value in zip(self.arguments, values, strict=True)]
        # A leaf of the graph refuses in-place writes, so the user gets one only where the user's own is one.
        handed = [
            leaf if slot.tensor.is_leaf and slot.tensor.requires_grad else copied(leaf)
            for slot, leaf in zip(self.arguments, leaves, strict=True)
        ]
        params = [slot.tensor for slot in self.params.slots]
        evaluation = evaluation or self.evaluation()
        with torch.enable_grad():
            outputs = self.outputs.take(self.call(self.arrange(handed), evaluation))
            evaluation.evaluated(params)
        return [*leaves, *params], outputs

    def _note_change(self, place: Slot | Fixed, leaf: Any, row: Array, first: bool) -> None:
        if isinstance(place, Fixed):
            if place.path not in self.rewritten and place.changed(leaf):
                if first:
                    self.rewritten[place.path] = leaf
                else:
                    self.note_written(place.path)
            return
        changed = leaf.shape != place.tensor.shape or leaf.layout != place.tensor.layout
        if changed or not np.array_equal(place.numbers(leaf), row[place.slice], equal_nan=True):
            self.note_written(place.leaf.path)

    def note_written(self, path: str) -> None:
        """Report an input that is not what it was before the call."""
        evidence = "the function writes to this input in place: after the call it is not what was passed"
        self.note(Finding("mutates_input", evidence, where=path, remedy="work on a clone of the input"))

    def note(self, finding: Finding) -> None:
        """Keep a finding, unless there is one of its kind at its place."""
        if (finding.kind, finding.where) not in {(known.kind, known.where) for known in self.findings}:
            self.findings.append(finding)


def _as_users(slot: Slot, values: Tensor) -> Tensor:
    """A tensor that requires a gradient, or is a leaf of the graph, where the user's is so."""
    tensor = slot.hand(values)
    if not slot.tensor.requires_grad:
        return tensor
    tensor.requires_grad_(True)
    return tensor if slot.tensor.is_leaf else copied(tensor)


def _version(leaf: Any) -> int:
    return leaf._version if isinstance(leaf, Tensor) else 0


def _stateful(roots: Sequence[Any]) -> tuple[list[torch.nn.Module], list[Tensor], list[torch.Generator]]:
    modules = [root for root in roots if isinstance(root, torch.nn.Module)]
    tensors = [root for root in roots if isinstance(root, Tensor)]
    generators = [root for root in roots if isinstance(root, torch.Generator)]
    return modules, tensors, generators


def _nothing_to_check(fixed: Sequence[Fixed]) -> str:
    listed = ", ".join(str(one) for one in fixed) or "there are no inputs"
    return (
        f"no input can be differentiated: {listed}. Pass at least one floating or complex tensor, "
        "a module whose parameters require grad, or params=..."
    )

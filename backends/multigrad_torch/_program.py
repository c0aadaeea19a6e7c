"""The user's function on tensors made of a flat row: the one place where it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from multigrad.backends import Array, Options
from multigrad.errors import InvalidUse
from multigrad.findings import Finding
from multigrad_torch import _params
from multigrad_torch._data import captures
from multigrad_torch._data.dtypes import WIDE, nominal_dtype
from multigrad_torch._data.leaves import Fixed, Slot, copied, sort_out
from multigrad_torch._data.outputs import Outputs, pack
from multigrad_torch._data.state import State
from multigrad_torch._data.tree import Tree
from multigrad_torch._params import Params
from multigrad_torch._promotion.promote import AsWritten, Promotion


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
        rewritten: fixed inputs that the first call or its backward has written to, by path, as it has left them.
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
        reached = captures.reached(fn)
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
        self._only_copies = False
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

    @property
    def template(self) -> tuple[Any, ...]:
        """The inputs, with a ``Leaf`` in every checked place and None in the others."""
        return tuple(self._tree.build(iter([p.leaf if isinstance(p, Slot) else None for p in self._places])))

    def arguments_at(self, row: Array) -> Sequence[Any]:
        """The arguments of a call as the user would make it."""
        values, _ = self.split(self.values(row))
        return tuple(self._tree.build(iter(self.arrange(self._as_users(values)))))

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
            handed = self.arrange(self._as_users(values))
            return pack(self.outputs.take(self.call(self.as_left(handed))))

    def first(self, row: Array) -> Any:
        """What the first call returns. The state must be open.

        A leaf of the graph refuses to be written to; a copy does not, and shows that this is what was tried. From then
        on the function gets copies.
        """
        try:
            return self.returned(row, thorough=True)
        except RuntimeError as error:
            self.state.restore()
            self._only_copies = True
            with suppress(Exception):
                returned = self.returned(row, thorough=True)
                if self.findings:
                    return returned
            self._only_copies = False
            if "storage" in str(error) and any(slot.is_part for slot in self.slots):
                part = next(slot.path for slot in self.slots if slot.is_part)
                error.add_note(
                    f"{part} is a part of a larger tensor, and check_grad calls the function with copies of that part "
                    "alone: make a view that reaches beyond it (as_strided) inside the function, of the larger tensor"
                )
            raise

    def returned(self, row: Array, thorough: bool = False) -> Any:
        """What a call as the user would make it returns. Notes the inputs that it changed; the state must be open.

        Args:
            row: the flat point.
            thorough: compare all inputs with what they were, and not only those whose version has moved.
        """
        values, others = self.split(self.values(row))
        with torch.enable_grad(), self.params.at(others):
            leaves = self.arrange(self._as_users(values))
            versions = [_version(leaf) for leaf in leaves]
            returned = self.call(leaves)
        for place, leaf, version in zip(self._places, leaves, versions, strict=True):
            moved = _version(leaf) != version
            if moved and self._only_copies and isinstance(place, Slot):
                self.note_written(place.path)  # a leaf refuses to be written to, be it with the same numbers
            elif thorough or moved:
                self._note_change(place, leaf, row, thorough)
        return returned

    def tracked(
        self, row: Array, evaluation: Promotion | AsWritten | None = None
    ) -> tuple[list[Tensor], list[Any], list[Tensor]]:
        """A call in which every checked leaf requires a gradient: these, all that was handed in, and the outputs.

        The state must be open, ``params.tracked()`` too.
        """
        values, _ = self.split(self.values(row))
        leaves = [slot.hand(value).requires_grad_(True) for slot, value in zip(self.arguments, values, strict=True)]
        # A leaf of the graph refuses in-place writes, so the user gets one only where the user's own is one.
        pairs = zip(self.arguments, leaves, strict=True)
        handed = self.arrange([leaf if self.is_leaf(slot) else copied(leaf) for slot, leaf in pairs])
        params = [slot.tensor for slot in self.params.slots]
        evaluation = evaluation or self.evaluation()
        with torch.enable_grad():
            outputs = self.outputs.take(self.call(handed, evaluation))
            evaluation.evaluated(params)
        return [*leaves, *params], handed, outputs

    def is_leaf(self, slot: Slot) -> bool:
        """Whether the function gets a leaf of the graph there: where the user's is one, unless it writes to it."""
        return slot.tensor.is_leaf and slot.tensor.requires_grad and not self._only_copies

    def _as_users(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The checked arguments; each requires a gradient, or is a leaf of the graph, where the user's is so."""
        handed = []
        for slot, value in zip(self.arguments, values, strict=True):
            tensor = slot.hand(value).requires_grad_(slot.tensor.requires_grad)
            handed.append(tensor if self.is_leaf(slot) or not tensor.requires_grad else copied(tensor))
        return handed

    def note_changes(self, handed: Sequence[Any], row: Array) -> None:
        """Report, or keep among the rewritten, the inputs that are not what was handed in at the flat point ``row``."""
        for place, leaf in zip(self._places, handed, strict=True):
            self._note_change(place, leaf, row, first=True)

    def _note_change(self, place: Slot | Fixed, leaf: Any, row: Array, first: bool) -> None:
        # A fixed input that the first call has left so may be a record, which the value does not depend on.
        if place.path in self.rewritten or not place.changed(leaf, row):
            return
        if first and isinstance(place, Fixed):
            self.rewritten[place.path] = leaf
        else:
            self.note_written(place.path)

    def note_written(self, path: str) -> None:
        """Report an input that is written to."""
        evidence = "the function or its backward writes to this input in place: afterwards it is not what was passed"
        self.note(Finding("mutates_input", evidence, where=path, remedy="work on a clone of the input"))

    def note(self, finding: Finding) -> None:
        """Keep a finding, unless there is one of its kind at its place."""
        if (finding.kind, finding.where) not in {(known.kind, known.where) for known in self.findings}:
            self.findings.append(finding)


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

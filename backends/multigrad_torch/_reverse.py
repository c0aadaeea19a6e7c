"""Reverse mode: the user's own backward, run by torch's engine at the point."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor

from multigrad.backends import Array, Leaf
from multigrad.findings import Finding
from multigrad_torch._autograd.cotangents import Cotangent, several
from multigrad_torch._autograd.refusals import explained
from multigrad_torch._autograd.vmap import vmap
from multigrad_torch._data.outputs import pack
from multigrad_torch._graph import Graph, engine, trace
from multigrad_torch._program import Program
from multigrad_torch._repeats import note_rewritten
from multigrad_torch._undefined import has_users_code, undefined_gradients

# Of the largest entry: an iteration that goes on from where it stood (spectral norm) changes it by no more once it is done.
ROUNDING = 2.0**-40


class Reverse:
    """Products u^T J at the point."""

    def __init__(self, program: Program, x: Array, graph: Graph | None = None) -> None:
        self._program = program
        self._x = x
        self._graph = graph
        self._keeps = True
        self._first: tuple[Array, Array] | None = None
        self._compared = False
        self._inspected = self._recalled = False
        self._vectorised = False
        self._drawn: list[Tensor] | None = None  # where a backward that draws random numbers has left the generators

    @property
    def _attached(self) -> list[Leaf]:
        return [leaf for leaf in self._program.outputs.leaves if leaf.attached]

    def __call__(self, U: Array) -> Array:
        """(k, m) -> (k, n)."""
        if not self._attached:
            return np.zeros((len(U), len(self._x)))
        rewritten = set(self._program.rewritten)
        product = self._one(U[0])[None] if len(U) == 1 else self._several(U)
        if new := self._program.rewritten.keys() - rewritten:
            note_rewritten(self._program, self._x, self._program.state.random, new)
        if not self._recalled and (self._program.state.written or self._program.state.rebound):
            self._recalled = True
            self._note_memory(np.ones_like(U[0]))
        if not self._keeps or self._program.state.written:
            self._graph = None  # what the graph has saved may have been put back since
        return product

    def _one(self, u: Array) -> Array:
        try:
            gradient = self._run_on_any_graph(u)
        except RuntimeError as error:
            raise explained(error) from error
        if self._compared:
            return gradient
        if self._first is None:
            self._first = u.copy(), gradient
            if self._vectorised:
                return gradient
            gradient = self._run_on_any_graph(u)  # whatever comes next, the graph must have survived this
        if np.array_equal(u, self._first[0]):
            self._compared = True
            return self._repeated(u, gradient)
        return gradient

    def _run_on_any_graph(self, u: Array) -> Array:
        kept = self._graph is not None and self._graph.used
        try:
            return self._run(u)
        except Exception:
            self._graph = None
            if not kept:
                raise
        self._keeps = False
        return self._run(u)

    def _repeated(self, u: Array, gradient: Array) -> Array:
        """What the first product is, asked for again; ``gradient`` comes of another backward, on the same graph."""
        assert self._first is not None
        first = self._first[1]
        if np.array_equal(first, gradient, equal_nan=True):
            return gradient
        self._graph = None
        fresh = self._run(u)
        if not np.array_equal(first, fresh, equal_nan=True):
            return gradient
        self._keeps = False  # it is the graph that does not survive a backward
        return fresh

    def _run(self, u: Array) -> Array:
        with self._program.state, self._point(), self._program.params.tracked():
            graph = self._graph = self._graph or self._forward()
            handed = self._hand(graph, u)
            try:
                gradients = self._drawing(graph, handed)
            except RuntimeError as error:
                # An expanded tensor refuses to be written to; another layout shows that this is what was tried.
                if "single memory location" not in str(error):
                    raise
                handed = self._hand(graph, u, expand=False)
                gradients = self._drawing(graph, handed)
            self._note_written(handed)
            self._inspect(graph)
            return self._read(gradients)

    def _drawing(self, graph: Graph, handed: Sequence[Cotangent]) -> Sequence[Tensor | None]:
        """Run the backward; one that draws random numbers gets new ones every time, as it does at the user's."""
        state = self._program.state
        if self._compared and self._drawn is None:
            return self._backward(graph, handed)
        if self._drawn:
            state.set_random(self._drawn)
        before = state.get_random()
        gradients = self._backward(graph, handed)
        after = state.get_random()
        if not all(map(torch.equal, before, after)):
            self._drawn = after
        return gradients

    def _backward(self, graph: Graph, handed: Sequence[Cotangent]) -> Sequence[Tensor | None]:
        cotangents = [one.tensor for one in handed]
        try:
            return engine(graph, cotangents)
        except RuntimeError as error:
            # Reentrant checkpoints refuse to be told whose gradient is wanted.
            if "incompatible with .grad()" not in str(error) or not all(leaf.is_leaf for leaf in graph.inputs):
                raise
        return _accumulated(graph, cotangents, self._program.state.tensors)

    def _several(self, U: Array) -> Array:
        with self._program.state, self._point(), self._program.params.tracked():
            graph = self._graph = self._graph or self._forward()
            rows = [several(l, o, U) for l, o in zip(self._attached, graph.outputs, strict=True)]
            reached: list[bool] = []

            def backward(*cotangents: Tensor) -> tuple[Tensor, ...]:
                gradients = engine(graph, cotangents)
                reached[:] = [gradient is not None for gradient in gradients]
                return tuple(gradient for gradient in gradients if gradient is not None)

            try:
                found = iter(vmap(backward, rows))
            except Exception:
                self._graph = None
                raise
            self._vectorised = True
            self._inspect(graph)
            return self._read([next(found) if some else None for some in reached], (len(U),))

    def _point(self) -> AbstractContextManager[None]:
        """The params have the values of the point, where these are not the user's own."""
        params = self._program.params
        return (
            nullcontext() if params.here(self._x) else params.at(self._program.split(self._program.values(self._x))[1])
        )

    def sample(self, u: Array) -> tuple[Array, Array]:
        """The value (m,) and the product with u (m,), shape (n,), by one call and one backward."""
        with self._program.state, self._point(), self._program.params.tracked():
            return self._sampled(u)

    def _sampled(self, u: Array) -> tuple[Array, Array]:
        graph, outputs = trace(self._program, self._x)
        gradients = self._backward(graph, self._hand(graph, u)) if graph.outputs else [None] * len(graph.inputs)
        return pack(outputs), self._read(gradients)

    def _note_memory(self, u: Array) -> None:
        """Sample twice without putting back what the first has changed, from the same random numbers."""
        fresh = np.concatenate(self.sample(u))
        with self._program.state as state, self._point(), self._program.params.tracked():
            first = np.concatenate(self._sampled(u))
            state.set_random(state.random)
            second = np.concatenate(self._sampled(u))
        rounding = ROUNDING * float(np.max(np.abs(first), initial=0.0, where=np.isfinite(first)))
        alike = np.allclose(first, second, rtol=0.0, atol=rounding, equal_nan=True)
        if alike or not np.array_equal(first, fresh, equal_nan=True):
            return
        evidence = (
            "a backward changes tensors or module attributes that the value or the gradient depends on: a second call "
            f"and backward at the same point differ by up to {float(np.nanmax(np.abs(second - first))):.3g}"
        )
        remedy = "keep what a backward remembers out of values and gradients; it was put back after every call here"
        self._program.note(Finding("mutates_state", evidence, remedy=remedy))

    def _forward(self) -> Graph:
        return trace(self._program, self._x)[0]

    def _hand(self, graph: Graph, u: Array, expand: bool = True) -> list[Cotangent]:
        pairs = zip(self._attached, graph.outputs, strict=True)
        return [Cotangent(leaf, output, u, expand) for leaf, output in pairs]

    def try_undefined(self, u: Array) -> None:
        """Note what goes wrong where cotangents are undefined; ``u`` (m,) is one that may be used.

        Only where code of the user's would see it: torch's own backward passes are written for it.
        """
        if self._graph is not None and not has_users_code(self._graph.outputs):
            return
        with self._program.state, self._point(), self._program.params.tracked():
            for finding in undefined_gradients(self._forward, self._hand_strided, u):
                self._program.note(finding)

    def _hand_strided(self, graph: Graph, u: Array) -> list[Cotangent]:
        return self._hand(graph, u, expand=False)

    def _inspect(self, graph: Graph) -> None:
        """Look once for inputs that a backward has written to. If there are any, each gets a graph of its own."""
        if self._inspected:
            return
        self._inspected = True
        known = len(self._program.findings), len(self._program.rewritten)
        self._program.note_changes(graph.handed, self._x)
        self._keeps &= known == (len(self._program.findings), len(self._program.rewritten))

    def _note_written(self, handed: Sequence[Cotangent]) -> None:
        for cotangent in handed:
            if cotangent.written:
                evidence = "the backward writes to the cotangent that it is given, which other nodes of the graph share"
                remedy = "work on a clone of the incoming gradient"
                self._program.note(Finding("mutates_cotangent", evidence, where=cotangent.leaf.path, remedy=remedy))

    def _read(self, gradients: Sequence[Tensor | None], rows: tuple[int, ...] = ()) -> Array:
        slots = self._program.slots
        return np.concatenate([s.gradient(g, rows) for s, g in zip(slots, gradients, strict=True)], axis=-1)


def _accumulated(graph: Graph, cotangents: Sequence[Tensor], others: Sequence[Tensor]) -> list[Tensor | None]:
    """What ``.backward()`` leaves in ``.grad``, which is put back for the inputs and for others that it may reach."""
    with graph.evaluation.active():
        kept = [(leaf, leaf.grad) for leaf in (*graph.inputs, *others) if leaf.is_leaf]
        for leaf, _ in kept:
            leaf.grad = None
        try:
            graph.evaluation.accumulate(graph.outputs, cotangents)
            return [leaf.grad for leaf in graph.inputs]
        finally:
            for leaf, gradient in kept:
                leaf.grad = gradient

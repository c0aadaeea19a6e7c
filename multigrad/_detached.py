"""Outputs that carry no derivative: saved statistics, indices, constants beside the outputs that are differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.findings import Finding


def only_attached(f: FlatFunction) -> FlatFunction:
    """Leave out the outputs that carry no derivative, unless none carries one: then all are compared with zero."""
    kept = [leaf for leaf in f.outputs if leaf.attached]
    return f if len(kept) in (0, len(f.outputs)) else _Attached(f, kept)


class _Attached:
    """A flat function without its detached outputs."""

    def __init__(self, f: FlatFunction, kept: Sequence[Leaf]) -> None:
        self._f = f
        self._rows = np.concatenate([np.arange(leaf.slice.start, leaf.slice.stop) for leaf in kept])
        starts = np.cumsum([0, *(leaf.size for leaf in kept)])
        self.x = f.x
        self.inputs = f.inputs
        self.outputs: Sequence[Leaf] = [
            replace(leaf, start=int(start)) for leaf, start in zip(kept, starts[:-1], strict=True)
        ]
        self.fixed = f.fixed
        self.eps = f.eps
        self.written: float = getattr(f, "written", 0.0)
        self.convention = getattr(f, "convention", "")
        self.repeats = f.repeats[:, self._rows]
        self._note = self._dependent()

    @property
    def findings(self) -> Sequence[Finding]:
        return [*self._f.findings, *self._note]

    def __call__(self, X: Array, /) -> Array:
        return self._f(X)[:, self._rows]

    def vjp(self, U: Array, /) -> Array:
        full = np.zeros((len(U), self._f.repeats.shape[1]))
        full[:, self._rows] = U
        return self._f.vjp(full)

    def jvp(self, V: Array, /) -> Array:
        return self._f.jvp(V)[:, self._rows]

    def _dependent(self) -> list[Finding]:
        """Note the outputs left out that depend on the inputs after all."""
        try:
            moved = self._f((self.x + 1e-3 * np.maximum(np.abs(self.x), 1.0))[None])[0]
        except Exception:  # noqa: BLE001 - the user's function, outside its domain: nothing can be said
            return []
        return [
            Finding(
                "detached_output",
                "carries no derivative though it depends on the inputs; it was not checked",
                leaf.path,
                "expected for saved statistics and the like; otherwise look for detach(), .data or no_grad",
            )
            for leaf in self._f.outputs
            if not leaf.attached
            and not np.array_equal(moved[leaf.slice], self._f.repeats[0, leaf.slice], equal_nan=True)
        ]

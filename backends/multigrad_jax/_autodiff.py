"""JAX's own derivatives of a function at a point, as rows of reals."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multigrad.backends import Array
from multigrad.errors import Defect
from multigrad.findings import Finding
from multigrad_jax._blocks import block_rows, compiling_pays, in_blocks
from multigrad_jax._rules import check_primals, translated
from multigrad_jax._trees import Arguments, Results, pack, unpack
from multigrad_jax._work import Work

Leafwise = Callable[..., list[Any]]
Rowwise = Callable[[Array], Array]

# The eager derivative of an operation takes as long as this many operations.
DERIVATIVE = 4


class Autodiff:
    """Reverse and forward mode at one point.

    One row is eager ``jax.vjp`` or ``jax.jvp``; several are one compiled, vmapped block where that pays, and share one
    eager forward pass where it doesn't.

    Complex leaves are pairs of reals (re, im). JAX's ``vjp`` is the transpose of the tangent map written with complex
    numbers, without a conjugate. With conj(u) as cotangent, conj(result) is u^T J over the pairs, for every kind of
    function (holomorphic or not, C -> R, R -> C); ``jvp`` needs no conjugate.

    Args:
        leafwise: the function from checked input leaves to a list of checked output leaves.
        arguments: the inputs.
        results: the outputs.
        plain: the value of a plain call there, shape (m,).
        work: the size of an evaluation; None for a function that can be run on concrete values alone.
        findings: where to report.
    """

    def __init__(
        self,
        leafwise: Leafwise,
        arguments: Arguments,
        results: Results,
        plain: Array,
        work: Work | None,
        findings: list[Finding],
    ) -> None:
        self._leafwise = leafwise
        self._arguments = arguments
        self._results = results
        self._plain = plain
        self._work = work
        self._findings = findings
        self._inspected: set[str] = set()
        self._compiled = cache(lambda products: jax.jit(partial(products, leafwise)))

    def at(self, arguments: Arguments, plain: Array) -> Autodiff:
        """The same at another point, where ``plain`` is the value: what was compiled is not compiled again."""
        other = copy.copy(self)
        other._arguments, other._plain = arguments, plain
        other._inspected = set()
        return other

    @property
    def _point(self) -> list[Any]:
        """The input leaves, new ones every time: jitted code may donate them."""
        return self._arguments.own(self._arguments.x)

    def vjp(self, U: Array) -> Array:
        """Reverse mode: (k, m) -> (k, n)."""
        return self._product(U, self._vjp_block, self._vjp_eager)

    def jvp(self, V: Array) -> Array:
        """Forward mode: (k, n) -> (k, m)."""
        return self._product(V, self._jvp_block, self._jvp_eager)

    def _product(self, rows: Array, block: Rowwise, eager: Rowwise) -> Array:
        if self._work and len(rows) > 1 and compiling_pays(len(rows) * DERIVATIVE, self._work):
            size = block_rows(self._work, self._arguments.x.size, self._plain.size)
            try:
                return in_blocks(block, rows, size, filler=np.zeros(rows.shape[1]))
            except Exception:  # noqa: BLE001, of any type: rules that can't be vectorised; what is wrong, eager calls tell
                self._work = None
        return eager(rows)

    def _vjp_eager(self, U: Array) -> Array:
        with translated("reverse"):
            primals, pull = jax.vjp(self._leafwise, *self._point)
            self._inspect(primals, "reverse")
            return np.concatenate([np.zeros((0, self._arguments.x.size)), *(self._pull(pull, primals, u) for u in U)])

    def _jvp_eager(self, V: Array) -> Array:
        with translated("forward"):
            return np.concatenate([np.zeros((0, self._plain.size)), *(self._push(v) for v in V)])

    def _pull(self, pull: Callable[[list[Any]], Sequence[Any]], primals: Sequence[Any], u: Array) -> Array:
        cotangents = unpack(u[None], self._results.leaves, conjugate=True)
        typed = [jnp.asarray(c[0], jnp.result_type(p)) for c, p in zip(cotangents, primals, strict=True)]
        return self._gradients([np.asarray(g)[None] for g in pull(typed)])

    def _push(self, v: Array) -> Array:
        tangents = [part[0] for part in unpack(v[None], self._arguments.leaves)]
        primals, out = jax.jvp(self._leafwise, tuple(self._point), tuple(tangents))
        self._inspect(primals, "forward")
        return pack([np.asarray(t)[None] for t in out])

    def _vjp_block(self, U: Array) -> Array:
        primals, gradients = self._compiled(_vjps)(self._point, unpack(U, self._results.leaves, conjugate=True))
        self._inspect(primals, "reverse")
        return self._gradients(gradients)

    def _jvp_block(self, V: Array) -> Array:
        primals, out = self._compiled(_jvps)(self._point, unpack(V, self._arguments.leaves))
        self._inspect(primals, "forward")
        return pack(out)

    def _gradients(self, gradients: Sequence[Any]) -> Array:
        for gradient, leaf in zip(gradients, self._arguments.leaves, strict=True):
            if np.iscomplexobj(gradient) and not leaf.complex:
                evidence = f"the gradient of {leaf.path} ({leaf.dtype}) is {np.asarray(gradient).dtype}"
                remedy = "a bwd rule must return the real part for a real input"
                raise Defect(Finding("wrong_shape", evidence, where=f"{leaf.path}, reverse rule", remedy=remedy))
        return pack(gradients, conjugate=True)

    def _inspect(self, primals: Sequence[Any], mode: str) -> None:
        if mode not in self._inspected:
            self._findings += check_primals(primals, self._plain, self._results.leaves, mode)
            self._inspected.add(mode)


def _vjps(leafwise: Leafwise, point: list[Any], cotangents: list[Any]) -> tuple[list[Any], Sequence[Any]]:
    primals, pull = jax.vjp(leafwise, *point)
    return primals, jax.vmap(pull)(cotangents)


def _jvps(leafwise: Leafwise, point: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
    primals, out = jax.vmap(lambda t: jax.jvp(leafwise, tuple(point), tuple(t)))(tangents)
    return [primal[0] for primal in primals], out

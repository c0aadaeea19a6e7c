"""The analytical side: the Jacobian that the framework, or the user, claims; by reverse and by forward mode.

Every entry of one mode is compared with the numerical side. That the other mode, and cotangents of other kinds than
one-hot, say the same is seen from random combinations: two derivatives by AD differ by rounding alone, so a single
product shows what a difference quotient would have to be repeated for every input to show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multigrad._batches import Batched
from multigrad._diagnose import of_cotangent
from multigrad._directions import signed
from multigrad._findings import Finding
from multigrad._purity import FEW_ULP, place
from multigrad._report import Entry
from multigrad._verdict import Rules, Status
from multigrad.backends import Array, FlatFunction
from multigrad.errors import Defect, Unsupported

# Two sums of the same terms, in another order and of derivatives that themselves carry a few ulp.
ROUNDING = 1e-11
# The largest cotangent tried, and the smallest: clipping of gradients is usually done at 1, 5 or 10.
LARGE, SMALL = 32.0, 0.25


@dataclass(frozen=True)
class Probe:
    """The product of one random vector with the Jacobian, as the mode itself gives it.

    Attributes:
        vector: the cotangent, shape (m,), or tangent, shape (n,).
        product: what the mode returned for it: (n,) or (m,).
        name: how the vector is called in the report.
    """

    vector: Array
    product: Array
    name: str

    def agrees(self, J: Array, eps: float) -> bool:
        """Whether the product is that of the Jacobian ``J`` whose rows meet the vector, but for rounding."""
        return self._worst(J, max(ROUNDING, FEW_ULP * eps)) is None

    def disagreement(self, J: Array, rules: Rules, noise: Array) -> int | None:
        """Where the product differs from that of ``J`` by more than the tolerance; None if nowhere.

        ``noise`` is the relative noise of each output, shape (m,), which the derivatives may share.
        """
        return self._worst(J, rules.rtol + FEW_ULP * rules.eps + 4 * float(np.max(noise, initial=0.0)))

    def _worst(self, J: Array, relative: float) -> int | None:
        with np.errstate(all="ignore"):
            expected, size = self.vector @ J, np.abs(self.vector) @ np.abs(J)
            difference = np.abs(self.product - expected)
            if (difference <= relative * size).all():
                return None
            excess = difference / np.maximum(relative * size, 1e-300)
        excess = np.where(np.isfinite(expected), np.nan_to_num(excess, nan=np.inf), 0.0)
        k = int(np.argmax(excess))
        return k if excess[k] > 1 else None

    def accuse(self, k: int, J: Array, f: FlatFunction, rules: Rules) -> tuple[Entry, Finding]:
        """Report a backward pass that is right for one-hot cotangents and wrong for this one."""
        expected = float(self.vector @ J[:, k])
        where = place(list(f.inputs), k)
        entry = Entry(
            self.name,
            where,
            "reverse",
            float(self.product[k]),
            expected,
            0.0,
            rules.rtol * float(np.abs(self.vector) @ np.abs(J[:, k])),
            Status.MISMATCH,
        )
        misuse = of_cotangent(self.vector, self.product, J, f.outputs)
        cause = f": {misuse}" if misuse else ""
        finding = Finding(
            "nonlinear_backward",
            f"backward is right for one-hot cotangents, but for {self.name} it gives {self.product[k]:.6g} "
            f"where the same combination of its own rows is {expected:.6g}{cause}",
            where,
            "backward must be linear in the cotangent, use those of all outputs, and not assume their memory layout",
        )
        return entry, finding


@dataclass(frozen=True)
class Reverse:
    """What reverse mode says.

    Attributes:
        jacobian: row by row from one-hot cotangents, shape (m, n).
        contradictions: those of other products, by plain calls, that are not the Jacobian's, but for rounding.
        findings: what was noticed.
        jitter: by how much two passes with one cotangent differ, as a fraction of the largest entry.
    """

    jacobian: Array
    contradictions: list[Probe]
    findings: list[Finding]
    jitter: float = 0.0


def reverse(f: FlatFunction, rng: np.random.Generator) -> Reverse:
    """Differentiate in reverse mode.

    Raises:
        Unsupported: the function has no reverse mode.
        Defect: its rule is broken in another way than by its values.
    """
    vjp = Batched(f.vjp, len(f.x), slack=0.0, lenient=False, compared=False)
    one_hot = np.eye(f.repeats.shape[1])
    J = vjp(one_hot)
    probes = cotangent_probes(f, rng)
    findings, jitter = _repeatable(f, probes[0].product, _one(f.vjp, probes[0].vector))
    contradictions = [probe for probe in probes if not probe.agrees(J, f.eps)]
    # The probes are plain calls: where they contradict rows that were vectorised, either may be at fault.
    if contradictions and not vjp.why_looped:
        J = vjp.one_by_one(one_hot)
    return Reverse(J, contradictions, findings, jitter)


def reverse_jacobian(f: FlatFunction) -> Array:
    """The Jacobian alone, shape (m, n); raises as ``reverse``."""
    return Batched(f.vjp, len(f.x), slack=0.0, lenient=False)(np.eye(f.repeats.shape[1]))


def forward_jacobian(f: FlatFunction) -> Array:
    """The Jacobian column by column from one-hot tangents, shape (m, n); raises as ``reverse_jacobian``."""
    columns = Batched(f.jvp, f.repeats.shape[1], slack=0.0, lenient=False)(np.eye(len(f.x)))
    return np.ascontiguousarray(columns.T)


def cotangent_probes(f: FlatFunction, rng: np.random.Generator) -> list[Probe]:
    """Products with the cotangents that users' code meets: of any size and both signs, all outputs at once; all ones."""
    m = f.repeats.shape[1]
    u = signed(rng, 1.0, 2.0, (m,))
    u[1:2], u[:1] = SMALL, -LARGE
    return [
        Probe(vector, _one(f.vjp, vector), name)
        for vector, name in ((u, "a random cotangent"), (np.ones(m), "a cotangent of ones"))
    ]


def tangent_probe(f: FlatFunction, rng: np.random.Generator) -> Probe:
    """The product with a random tangent, by forward mode."""
    n = len(f.x)
    v = signed(rng, 0.5, 1.0, (n,))
    return Probe(v, _one(f.jvp, v), "a random tangent")


def _one(method: object, row: Array) -> Array:
    return np.asarray(method(row[None])[0])  # type: ignore[operator]


def _repeatable(f: FlatFunction, first: Array, second: Array) -> tuple[list[Finding], float]:
    if np.array_equal(first, second, equal_nan=True):
        return [], 0.0
    moved = np.abs(second - first)
    size = np.max(np.abs(first), initial=0.0, where=np.isfinite(first))
    differs = (moved > FEW_ULP * f.eps * size) | (np.isfinite(first) != np.isfinite(second))
    if not differs.any():
        return [], 0.0
    k = int(np.argmax(np.where(differs, np.nan_to_num(moved, nan=np.inf), -1.0)))
    finding = Finding(
        "nondeterministic_backward",
        f"two backward passes with the same cotangent gave {first[k]:.6g} and {second[k]:.6g}",
        place(list(f.inputs), k),
        "look for random numbers or state in the backward pass",
    )
    return [finding], float(np.max(moved, initial=0.0, where=np.isfinite(moved))) / (size or 1.0)


def defect_or_note(mode: str, error: Defect | Unsupported) -> Finding:
    """What is to be reported of a mode that gave nothing."""
    if isinstance(error, Defect):
        return error.finding
    return Finding("mode_unavailable", str(error), mode, "")

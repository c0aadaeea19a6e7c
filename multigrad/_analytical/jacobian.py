"""The analytical side: the Jacobian that the framework, or the user, claims; by reverse and by forward mode.

Every entry of one mode is compared with the numerical side. That the other mode, and cotangents of other kinds than
one-hot, say the same is seen from random combinations: two derivatives by AD differ by rounding alone, so a single
product shows what a difference quotient would have to be repeated for every input to show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multigrad._comparison.verdict import Rules, Status
from multigrad._diagnosis.diagnose import of_cotangent
from multigrad._differences.directions import Mask, signed
from multigrad._purity import FEW_ULP
from multigrad._report.leg import Entry
from multigrad._sparsity.colouring import colours
from multigrad._sparsity.sparse import Pattern, Sparse
from multigrad.backends import Array, FlatFunction, place
from multigrad.batches import Batched
from multigrad.errors import Defect, Unsupported
from multigrad.findings import Finding

# Rows that are differentiated alone as well as in their groups.
SINGLES = 3
# Two sums of the same terms, in another order and of derivatives that themselves carry a few ulp.
ROUNDING = 1e-11
# Where a product is not what the rows make: looks at how both are rounded, for cotangents that differ by so many units
# of roundoff, and how many times what they show may be rounding.
LOOKS, BITS, ROUNDED = 3, 8, 32.0
# Further backward passes where two differ, to see by how much they do.
SAMPLES = 8
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

    def agrees(self, J: Array | Sparse, eps: float) -> bool:
        """Whether the product is that of the Jacobian ``J`` whose rows meet the vector, but for rounding.

        Nobody looks again at a sparse one: its entries that are small because larger terms cancel may have the rounding
        of those.
        """
        values = J.values if isinstance(J, Sparse) else np.empty(0)
        largest = float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))
        return self._worst(J, max(ROUNDING, FEW_ULP * eps), FEW_ULP * eps * largest) is None

    def is_within(self, J: Array, floor: Array) -> bool:
        """Whether it is what the rows of ``J`` make, give or take ``floor``, shape (n,)."""
        return self._worst(J, 0.0, floor) is None

    def disagreement(self, J: Array | Sparse, rules: Rules, noise: Array, dust: Array) -> int | None:
        """Where the product differs from that of ``J`` by more than the tolerance; None if nowhere.

        Args:
            J: the Jacobian by one-hot cotangents, shape (m, n).
            rules: the constants.
            noise: relative noise of each output, shape (m,), which its derivatives may share.
            dust: what rounding may leave in each entry of the product that should be 0, shape (n,).
        """
        return self._worst(J, rules.rtol + FEW_ULP * rules.eps + 4 * noise, dust)

    def _worst(self, J: Array | Sparse, relative: Array | float, floor: Array | float) -> int | None:
        """``relative`` is the tolerance for all rows of ``J`` or each, ``floor`` what is allowed besides."""
        with np.errstate(all="ignore"):
            expected = self.vector @ J
            difference = np.abs(self.product - expected)
            if (difference <= np.min(relative, initial=1.0) * np.abs(expected)).all():  # less than is allowed
                return None
            allowed = np.abs(relative * self.vector) @ abs(J) + floor
            if (difference <= allowed).all():
                return None
            excess = difference / np.maximum(allowed, 1e-300)
        excess = np.where(np.isfinite(expected), np.nan_to_num(excess, nan=np.inf), 0.0)
        k = int(np.argmax(excess))
        return k if excess[k] > 1 else None

    def accuse(self, k: int, J: Array, f: FlatFunction, rules: Rules) -> tuple[Entry, Finding]:
        """Report a backward pass that is right for one-hot cotangents and wrong for this one."""
        expected = float(self.vector @ J[:, k])
        where = place(f.inputs, k)
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
        jacobian: row by row from one-hot cotangents, shape (m, n); sparse where it is known to be.
        contradictions: those of other products, by plain calls, that are not the Jacobian's, but for rounding.
        findings: what was noticed.
        jitter: by how much two passes with one cotangent differ, as a fraction of an entry.
    """

    jacobian: Array | Sparse
    contradictions: list[Probe]
    findings: list[Finding]
    jitter: float = 0.0


class Incompressible(Exception):
    """The Jacobian does not have the pattern of f, and is too large to be made row by row."""


def reverse(
    f: FlatFunction, rng: np.random.Generator, pattern: Pattern | None = None, *, dense: bool = True
) -> Reverse:
    """Differentiate in reverse mode.

    Where f has the given sparsity pattern, rows that share no column share a cotangent. If the derivative turns out to
    have another pattern, or not to be linear, it is taken row by row.

    Raises:
        Unsupported: the function has no reverse mode.
        Defect: its rule is broken in another way than by its values.
        Incompressible: it would have to be taken row by row, but ``dense`` forbids it.
    """
    vjp = Batched(f.vjp, len(f.x), slack=0.0, lenient=False, compared=False)
    compressed = _compressed(vjp, pattern.transposed, rng) if pattern is not None else None
    if not (dense or compressed):
        raise Incompressible
    J: Array | Sparse = compressed or vjp(np.eye(f.repeats.shape[1]))
    probes, findings, jitter = _probed(f, rng)
    if isinstance(J, Sparse):
        if all(probe.agrees(J, f.eps) for probe in probes):
            return Reverse(J, [], findings, jitter)
        if not dense:
            raise Incompressible
        J = vjp(np.eye(f.repeats.shape[1]))
    contradictions = [probe for probe in probes if not probe.agrees(J, f.eps)]
    # The probes are plain calls: where they contradict rows that were vectorised, either may be at fault.
    if contradictions and not vjp.why_looped:
        J = vjp.one_by_one(np.eye(f.repeats.shape[1]))
    if contradictions:
        rounding = [_rounded_otherwise(f, vjp, J, contradictions, rng) for _ in range(LOOKS)]
        contradictions = [
            probe
            for probe, *moved in zip(contradictions, *rounding, strict=True)
            if not probe.is_within(J, ROUNDED * np.max(moved, axis=0))
        ]
    return Reverse(J, contradictions, findings, jitter)


def _rounded_otherwise(
    f: FlatFunction, vjp: Batched, J: Array, probes: list[Probe], rng: np.random.Generator
) -> list[Array]:
    """What other rounding makes of each probe's product and of the same combination of rows, together; shape (n,) each.

    Cotangents that differ in their last bits alone are rounded otherwise on their way through a backward pass.
    """
    m = len(J)
    rows = vjp(np.diag(1 + f.eps * rng.integers(1, BITS, m)))
    products = [_one(f.vjp, probe.vector * (1 + f.eps * rng.integers(1, BITS, m))) for probe in probes]
    with np.errstate(all="ignore"):
        return [
            np.abs(product - probe.product) + np.abs(probe.vector @ (rows - J))
            for probe, product in zip(probes, products, strict=True)
        ]


def _compressed(product: Batched, pattern: Pattern, rng: np.random.Generator) -> Sparse | None:
    """The matrix whose rows meet a vector in ``product``, from one vector for each group of rows.

    ``pattern`` is that of the transposed matrix: shape (inputs, rows of the matrix). None if something is found
    outside it, or a row alone is not what it is in its group.
    """
    n, m = pattern.shape
    group = colours(pattern)
    singles = rng.choice(m, min(m, SINGLES), replace=False)
    vectors = np.zeros((int(group.max()) + 1 + len(singles), m))
    vectors[group, np.arange(m)] = 1.0
    vectors[range(-len(singles), 0), singles] = 1.0
    products, alone = np.split(product(vectors), [-len(singles)])
    values = products[group[pattern.columns], pattern.rows].copy()
    products[group[pattern.columns], pattern.rows] = 0.0
    if products.any():  # also where it is NaN
        return None
    found = Sparse(Pattern((m, n), pattern.columns, pattern.rows), values)
    expected = np.stack([found.T[:, k] for k in singles.tolist()])
    return found if np.allclose(alone, expected, rtol=ROUNDING, atol=0.0, equal_nan=True) else None


def in_full(f: FlatFunction, mode: str, J: Sparse, places: Mask) -> Array:
    """The Jacobian as a matrix, with the rows (in forward mode columns) of some places, shape (m, n), taken anew.

    Entries that are too small for f to show them are in no pattern. In a group they add to others, which may be hardly
    larger.
    """
    full = J.dense()
    if mode == "reverse":
        rows = np.flatnonzero(places.any(axis=1))
        full[rows] = Batched(f.vjp, len(f.x), slack=0.0, lenient=False)(np.eye(len(full))[rows])
    else:
        columns = np.flatnonzero(places.any(axis=0))
        full[:, columns] = Batched(f.jvp, len(full), slack=0.0, lenient=False)(np.eye(len(f.x))[columns]).T
    return full


def reverse_jacobian(f: FlatFunction) -> Array:
    """The Jacobian alone, shape (m, n); raises as ``reverse``."""
    return Batched(f.vjp, len(f.x), slack=0.0, lenient=False)(np.eye(f.repeats.shape[1]))


def forward_jacobian(f: FlatFunction, rng: np.random.Generator, pattern: Pattern | None = None) -> Array | Sparse:
    """The Jacobian column by column from one-hot tangents, or tangents for groups of columns; raises as ``reverse``."""
    jvp = Batched(f.jvp, f.repeats.shape[1], slack=0.0, lenient=False)
    compressed = _compressed(jvp, pattern, rng) if pattern is not None else None
    if compressed and tangent_probe(f, rng).agrees(compressed, f.eps):
        return compressed.T
    return np.ascontiguousarray(jvp(np.eye(len(f.x))).T)


def _probed(f: FlatFunction, rng: np.random.Generator) -> tuple[list[Probe], list[Finding], float]:
    """Products with the cotangents that users' code meets: of any size and both signs, all outputs at once; all ones.

    The first is asked for twice, at once: what comes of that is returned as well.
    """
    m = f.repeats.shape[1]
    u, ones = signed(rng, 1.0, 2.0, (m,)), np.ones(m)
    u[1:2], u[:1] = SMALL, -LARGE
    first = Probe(u, _one(f.vjp, u), "a random cotangent")
    findings, jitter = _repeatable(f, u, first.product)
    return [first, Probe(ones, _one(f.vjp, ones), "a cotangent of ones")], findings, jitter


def tangent_probe(f: FlatFunction, rng: np.random.Generator) -> Probe:
    """The product with a random tangent, by forward mode."""
    n = len(f.x)
    v = signed(rng, 0.5, 1.0, (n,))
    return Probe(v, _one(f.jvp, v), "a random tangent")


def _one(method: object, row: Array) -> Array:
    return np.asarray(method(row[None])[0])  # type: ignore[operator]


def _repeatable(f: FlatFunction, u: Array, first: Array) -> tuple[list[Finding], float]:
    second = _one(f.vjp, u)
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
        place(f.inputs, k),
        "look for random numbers or state in the backward pass",
    )
    more = np.stack([first, second, *(_one(f.vjp, u) for _ in range(SAMPLES))])
    with np.errstate(all="ignore"):
        spread = np.ptp(more, axis=0) / np.max(np.abs(more), axis=0)
    return [finding], float(np.max(spread, initial=0.0, where=np.isfinite(spread)))


def defect_or_note(mode: str, error: Defect | Unsupported) -> Finding:
    """What is to be reported of a mode that gave nothing."""
    if isinstance(error, Defect):
        return error.finding
    return Finding("mode_unavailable", str(error), mode, "")

"""Probing: a Jacobian too large to be compared entry by entry, compared along a few random directions.

Random weights of size 1/2 to 1 hide no input. Forward mode is compared output by output, reverse mode by random
combinations of the outputs, whose gradients tell the product with every direction. Where a product differs, the input
to blame is searched for and compared by itself: only single entries are ever called wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from multigrad._comparison.entries import Entries
from multigrad._comparison.numerical import Numerical
from multigrad._comparison.verdict import Codes, Rules, Status
from multigrad._differences import noise
from multigrad._differences.directions import Directions, Index, scale_of, signed, weights_of
from multigrad._differences.estimate import Estimate
from multigrad._differences.sampler import Sampler
from multigrad._probing.search import search
from multigrad._report.probe_leg import Named, ProbeLeg
from multigrad.backends import Array, FlatFunction, Leaf
from multigrad.batches import Batched

# Directions over all inputs, and combinations of the outputs.
PROBES, COMBINATIONS = 3, 32
# Doubles in the gradients of the combinations: 256 MB.
GRADIENTS = 2**25
# Leaves that are also probed alone, each at its own scale.
LEAVES = 32
# What a product by AD, a sum of many terms, may lose of the largest product of its row by rounding.
ROUNDING = 1e-11
# And the rounding of f's values, in a derivative by differences.
DUST = 1e-13
# Rows as small as this beside their value stay unresolved.
NEGLIGIBLE = 1e-12
# Where some bars are wider than the first fraction of their row, or many than the second, the long ladder is tried.
SOME, MANY = 1e-3, 1e-7
# Columns tried at random, and outputs followed up where few are suspicious.
TRIED, FOLLOWED = 4, 3


class Forward:
    """Forward mode: products with directions, output by output."""

    mode = "forward"

    def __init__(self, f: FlatFunction) -> None:
        """Raises what ``jvp`` raises."""
        self.f = f
        self.outputs = f.outputs
        f.jvp(f.x[None] * 0)

    def values(self, Y: Array) -> Array:
        """What is compared, from the outputs: (b, m) -> (b, k)."""
        return Y

    def products(self, directions: Directions) -> Array:
        """Derivatives along the directions, shape (C, k)."""
        return np.concatenate([self.f.jvp(directions.take(np.array([c])).dense()) for c in range(len(directions))])

    def column(
        self, j: int, numeric: Array, bar: Array, suspects: Index, rng: np.random.Generator
    ) -> tuple[Index, Array]:
        """Rows of a column worth looking at, and its entries there."""
        return suspects, self.f.jvp(np.eye(1, len(self.f.x), j))[0, suspects]


class Backward:
    """Reverse mode: products with directions, for random combinations of the outputs."""

    mode = "reverse"

    def __init__(self, f: FlatFunction, rng: np.random.Generator) -> None:
        """Raises what ``vjp`` raises."""
        self.f = f
        m = f.repeats.shape[1]
        count = max(1, min(m, COMBINATIONS, GRADIENTS // max(m, len(f.x))))
        # Each output is in one combination: the fewer share one, the smaller an error still shows.
        self._mixed = signed(rng, 0.5, 1.0, (count, m)) * (rng.permutation(m) % count == np.arange(count)[:, None])
        self._gradients = self._vjp(self._mixed)
        self.outputs: Sequence[Leaf] = [Leaf("combination of outputs", (count,), "float64", 0)]

    def _vjp(self, U: Array) -> Array:
        return np.concatenate([self.f.vjp(u[None]) for u in U])

    def values(self, Y: Array) -> Array:
        """What is compared, from the outputs: (b, m) -> (b, k)."""
        return np.asarray(Y @ self._mixed.T)

    def products(self, directions: Directions) -> Array:
        """Derivatives along the directions, shape (C, k)."""
        each = (directions.take(np.array([c])) for c in range(len(directions)))
        # Of the columns that are moved alone: one that is NaN concerns no other.
        return np.array([[row[one.columns] @ one.weights for row in self._gradients] for one in each])

    def column(
        self, j: int, numeric: Array, bar: Array, suspects: Index, rng: np.random.Generator
    ) -> tuple[Index, Array]:
        """Rows of a column worth looking at, and its entries there.

        Of the column, its entries by differences are known with their bars, shape (m,); which of them differ from those
        by reverse mode is searched for.
        """
        m = len(numeric)

        def sums(pairs: Sequence[tuple[Index, Array]]) -> tuple[Array, Array]:
            U = np.zeros((len(pairs), m))
            for u, (rows, weights) in zip(U, pairs, strict=True):
                u[rows] = weights
            # Errors of the outputs are unrelated, for the most part; what is found is looked at again.
            return U @ numeric - self._vjp(U)[:, j], 2 * np.sqrt(U**2 @ bar**2)

        rows = search(sums, np.arange(m), rng)
        return rows, np.array([self.f.vjp(np.eye(1, m, row))[0, j] for row in rows.tolist()])


def _wide(bar: Array, norm: Array, dust: Array) -> bool:
    some, many = (~(bar <= np.maximum(fraction * norm, dust)) for fraction in (SOME, MANY))
    return bool(some.any() or many.mean() > 0.1)


def _told(entries: Entries) -> Codes:
    """The status of each output over all directions, mismatches apart: those are for single entries to decide."""
    status = np.where(entries.status == Status.MISMATCH, np.int8(Status.OK), entries.status)
    return np.asarray(status.max(axis=0, initial=0))


@dataclass
class Prober:
    """The probing of one mode of ``f`` at its point.

    Attributes:
        side: the mode.
        f: the function.
        values: evaluates it.
        here: f(x), shape (m,).
        rules: the constants.
        rng: draws the directions.
    """

    side: Forward | Backward
    f: FlatFunction
    values: Batched
    here: Array
    rules: Rules
    rng: np.random.Generator

    def __post_init__(self) -> None:
        x, eps, rng = self.f.x, self.rules.eps, self.rng
        self.single = Sampler(self.values, x, self.here, eps, rng)
        seen = self.side.values(self.single.measure_noise())
        mixed = Batched(lambda X: self.side.values(self.values(X)), seen.shape[1], compared=False)
        here = self.side.values(self.here[None])[0]
        self.mixed = Sampler(mixed, x, here, eps, rng, noise=noise.measure(seen, eps))

    def run(self) -> ProbeLeg:
        """Probe, and follow up what differs."""
        with np.errstate(all="ignore"):
            return self._run()

    def _run(self) -> ProbeLeg:
        directions = self._directions()
        analytical = self.side.products(directions)
        norm = np.max(np.abs(analytical), axis=0, initial=0.0, where=np.isfinite(analytical))
        told = np.zeros(len(norm), np.int8)
        found = self.mixed.slopes(directions)
        if _wide(found.bar, norm, self._dust):
            entries = Numerical(self.mixed, self.side.outputs, self.rules).compare(directions, analytical)
            found, told = Estimate(entries.value, entries.bar), _told(entries)
        excess = np.abs(analytical - found.value) - 2 * found.bar - ROUNDING * norm - self._dust
        excess[~np.isfinite(found.bar)] = 0.0
        excess[~np.isfinite(analytical)] = np.inf
        relative = np.where(excess > 0, excess / norm, 0.0)
        resolved = norm > NEGLIGIBLE * self.mixed.magnitude
        told = np.where(resolved, told, np.maximum(told, np.int8(Status.UNRESOLVED)))
        sees = np.where(resolved, 4 * found.bar[:PROBES] / norm + 2 * ROUNDING, 0.0).min(axis=0)
        named = tuple(self._follow_up(directions, relative))
        shape = len(self.here), self.f.x.size
        return ProbeLeg(self.side.mode, shape, named, told, relative.max(axis=0), sees, PROBES, self.rules.rtol)

    @property
    def _dust(self) -> Array:
        """What the rounding of the values may leave in a derivative, shape (k,)."""
        return DUST * self.mixed.magnitude

    def _directions(self) -> Directions:
        n = self.f.x.size
        leaves = [leaf for leaf in self.f.inputs if leaf.size][:LEAVES]
        parts = [np.arange(n)] * PROBES + [np.arange(n)[leaf.slice] for leaf in leaves if len(leaves) > 1]
        return self._along([(part, signed(self.rng, 0.5, 1.0, part.shape)) for part in parts])

    def _along(self, pairs: Sequence[tuple[Index, Array]]) -> Directions:
        size = scale_of(self.f.x) * np.isfinite(self.f.x)
        columns = np.concatenate([part for part, _ in pairs])
        starts = np.concatenate([[0], np.cumsum([len(part) for part, _ in pairs])])
        return Directions(self.f.x.size, starts, columns, np.concatenate([w for _, w in pairs]) * size[columns])

    def _follow_up(self, directions: Directions, relative: Array) -> list[Named]:
        """Look for entries to blame, worst output first; at random where the search finds none."""
        worst = relative.max(axis=0)
        outputs = np.argsort(-worst, kind="stable")[: np.count_nonzero(worst)]
        named: list[Named] = []
        for output in outputs[: FOLLOWED if len(outputs) <= FOLLOWED else 1]:
            clearest = int(np.argmax(relative[PROBES:, output])) + PROBES if len(directions) > PROBES else 0
            among = directions.columns[directions.starts[clearest] : directions.starts[clearest + 1]]
            named += self._name(self._search(int(output), among), np.array([output]))
        if named or not len(outputs) or worst[outputs[0]] <= self.rules.rtol:
            return named
        tried = self.rng.choice(self.f.x.size, min(TRIED, self.f.x.size), replace=False)
        return list(self._name(tried, outputs))

    def _search(self, output: int, among: Index) -> Index:
        def sums(pairs: Sequence[tuple[Index, Array]]) -> tuple[Array, Array]:
            directions = self._along(pairs)
            found = self.mixed.slopes(directions)
            return self.side.products(directions)[:, output] - found.value[:, output], found.bar[:, output]

        return search(sums, among, self.rng)

    def _name(self, columns: Index, outputs: Index) -> Iterator[Named]:
        """Compare entries of a few columns by themselves."""
        single = Numerical(self.single, self.f.outputs, self.rules)
        for j in np.sort(columns):
            weight = weights_of(self.f.x[[j]], self.rng)
            unit = Directions(self.f.x.size, np.array([0, 1]), np.array([j]), weight)
            first = self.single.slopes(unit)
            rows, entries = self.side.column(int(j), first.value[0] / weight, first.bar[0] / weight, outputs, self.rng)
            claimed = np.full_like(first.value, np.nan)  # of no interest
            claimed[0, rows] = entries * weight
            found = single.compare(unit, claimed)
            for i, entry in zip(rows, entries, strict=True):
                if found.status[0, i] > Status.UNRESOLVED:
                    numeric, bar = float(found.value[0, i] / weight[0]), float(found.bar[0, i] / weight[0])
                    yield int(i), int(j), float(entry), numeric, bar, Status(int(found.status[0, i]))

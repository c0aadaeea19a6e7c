"""One check of a flat function: both modes, compared with the numerical side, from the products to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TypeVar

import numpy as np

from multigrad import _purity
from multigrad._analytical.cancellation import Beside, excuse_cancellation, excuse_named, leave_dust
from multigrad._analytical.gauge import excuse_phases
from multigrad._analytical.inexact import excuse_inexact, inexactness, not_exact
from multigrad._analytical.jacobian import (
    Incompressible,
    Reverse,
    defect_or_note,
    forward_jacobian,
    in_full,
    reverse,
    tangent_probe,
)
from multigrad._analytical.symmetric import compare_symmetric
from multigrad._arguments import MODES
from multigrad._comparison.dust import dust_of_product
from multigrad._comparison.entries import Entries
from multigrad._comparison.fixed_step import compare_at
from multigrad._comparison.hidden import admit_hidden_kinks
from multigrad._comparison.numerical import Numerical
from multigrad._comparison.reading import DROWNED
from multigrad._comparison.ties import check_ties
from multigrad._comparison.verdict import Rules, Status, Verdict
from multigrad._conclusion import Seen, conclude
from multigrad._detached import only_attached
from multigrad._differences.directions import Directions, unit_vectors
from multigrad._differences.sampler import Sampler
from multigrad._doubt import dispute, doubt, may_stand_on_a_step
from multigrad._probing.probe import Backward, Forward, Prober
from multigrad._report.leg import Leg
from multigrad._report.probe_leg import ProbeLeg
from multigrad._report.report import GradReport
from multigrad._report.sparse_leg import MATRICES, SparseLeg
from multigrad._sparsity.sparse import Sparse
from multigrad._sparsity.structure import INPUTS_FROM, Structure, find_structure
from multigrad.backends import FARTHEST, Array, FlatFunction
from multigrad.batches import DOUBLES, Batched
from multigrad.errors import Defect, InvalidUse, Unsupported, first_line
from multigrad.findings import Finding

# n (n + m) of the largest Jacobian without sparsity that is compared in full unless asked for: half an hour's work.
FULL = 2**27
# Bytes that a full comparison needs for each entry, and those it may have unless more are allowed.
FULL_BYTES, MEMORY = 96, 2**31
# Coarser arithmetic than this has no structure to be seen in single values.
DOUBLE = 1e-12
# Jacobians up to this size are compared entry by entry where something is wrong with a group.
UNFOLDED = 2**21

T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """How a function is checked: no farther from x than ``farthest``; the others are arguments of ``check_grad``."""

    modes: Sequence[str] = MODES
    method: str = "auto"
    eps: float | None = None
    rtol: float | None = None
    atol: float = 0.0
    seed: int = 0
    max_memory: int = MEMORY
    farthest: float = FARTHEST
    progress: Callable[[str, int, int], None] = lambda what, done, total: None


def run_check(f: FlatFunction, settings: Settings = Settings()) -> GradReport:
    """Check a flat function."""
    first = _Check(f, settings)
    report = first.run()
    # Float64 all round may be coarser arithmetic inside, which an adapter may know how to avoid.
    suspicious = first.sampler.noise.is_foreign(first.f.outputs) or report.verdict is not Verdict.OK
    suspicious |= may_stand_on_a_step(report, getattr(f, "written", 0.0))
    reexamine = getattr(f, "reexamine", None)
    if reexamine is not None and suspicious and reexamine():
        report = dispute(_Check(f, settings).run(), report)
    return report if settings.rtol is not None else doubt(report, getattr(f, "written", 0.0))


@cache
def _entropy(seed: int) -> np.random.SeedSequence:
    """Hashing a seed takes longer than the random numbers of a small check."""
    return np.random.SeedSequence(seed)


@dataclass
class _Check:
    """One check in progress."""

    f: FlatFunction
    settings: Settings

    def run(self) -> GradReport:
        self.seen = Seen()
        self.inexact = 0.0
        workers, doubles = getattr(self.f, "workers", 1), getattr(self.f, "doubles", DOUBLES)
        self.at = getattr(self.f, "at", None)
        farthest = min(self.settings.farthest, getattr(self.f, "farthest", FARTHEST))
        self.f = only_attached(self.f)
        self.rng = np.random.Generator(np.random.PCG64(_entropy(self.settings.seed)))
        rules = Rules.for_eps(self.f.eps, self.settings.rtol, self.settings.atol, getattr(self.f, "written", 0.0))
        self.rules = replace(rules, farthest=farthest)
        self.values = Batched(self.f, self.f.repeats.shape[1], workers=workers, doubles=doubles)
        here, jitter, repeats = _purity.value_at_x(self.f, self.values)
        self.unsteady = bool(repeats)
        self.seen.findings += [*repeats, *_purity.check_finite(self.f, here)]
        self.sampler = Sampler(self.values, self.f.x, here, self.rules.eps, self.rng, jitter, inputs=self.f.inputs)
        self.numerical = Numerical(self.sampler, self.f.outputs, self.rules, self.settings.progress)
        self.structure = self._find_structure()
        if self.structure is None and self._too_large():
            self._probe_modes()
        else:
            self._compare_modes()
        return conclude(
            self.f, self.seen, self.values, self.sampler, self.rules, self.settings.seed, self.settings.eps is not None
        )

    def _too_large(self) -> bool:
        """Whether the Jacobian is to be probed, if it is not sparse."""
        n, m = self.f.x.size, self.values.width
        needed = FULL_BYTES * n * m
        if self.settings.method == "full" and needed > self.settings.max_memory:
            raise InvalidUse(
                "too_large",
                f"comparing all of {m} x {n} entries needs {needed / 2**30:.3g} GiB, and max_memory is "
                f"{self.settings.max_memory / 2**30:.3g} GiB; use method='probe', or raise max_memory",
            )
        large = self.settings.method == "auto" and (n * (n + m) > FULL or needed > self.settings.max_memory)
        return n * m > 0 and (large or self.settings.method == "probe")

    def _probe_modes(self) -> None:
        sides: dict[str, Callable[[FlatFunction], Forward | Backward]] = {
            "reverse": lambda f: Backward(f, self.rng),
            "forward": Forward,
        }
        for mode, make in sides.items():
            leg = self._mode(mode, partial(self._probe, make))
            if leg is not None and self.unsteady:
                leg = leg.without_mismatch()
            elif leg is not None and self.beside is not None:
                leg = excuse_named(leg, self.beside)
            if leg is not None:
                self.seen.probed.append(leg)

    @cached_property
    def beside(self) -> Beside | None:
        """The derivative around x, if the function can be made at another point."""
        at = self.at
        return Beside(lambda x: only_attached(at(x)), self.f.x) if at is not None else None

    def _probe(self, make: Callable[[FlatFunction], Forward | Backward], f: FlatFunction) -> ProbeLeg:
        return Prober(make(f), f, self.values, self.sampler.here, self.rules, self.rng).run()

    @cached_property
    def directions(self) -> Directions:
        """One for each input."""
        return unit_vectors(self.f.x, self.rng)

    def _find_structure(self) -> Structure | None:
        if self.settings.method == "probe" or self.settings.eps is not None or self.f.eps > DOUBLE:
            return None
        if self.f.x.size < INPUTS_FROM or not self.values.width:
            return None
        return find_structure(self.values, self.f.x, self.f.inputs, self.rng)

    def _compare_modes(self) -> None:
        pattern = self.structure.pattern if self.structure else None
        dense = not self._too_large()
        try:
            backward = self._mode("reverse", lambda f: reverse(f, self.rng, pattern, dense=dense))
        except Incompressible:
            self._probe_modes()
            return
        if backward is not None:
            self.seen.findings += backward.findings
            if not isinstance(backward.jacobian, Sparse):
                self.inexact = inexactness(backward.contradictions, backward.jacobian, self.rules.rtol)
            self._compare("reverse", backward.jacobian)
            self.seen.legs[-1] = _purity.allow_jitter(self.seen.legs[-1], backward.jitter)
            if not (backward.jitter or self.unsteady):
                self._judge_probes(backward)
        if backward is not None and self._forward_agrees(backward.jacobian):
            self.seen.agreeing.append("forward")
            return
        if any(finding.kind == "ill_defined" for finding in self.seen.findings):
            return  # what reverse mode refuses to differentiate, forward mode differentiates by a choice of its own
        forward = self._mode("forward", lambda f: forward_jacobian(f, self.rng, pattern))
        if forward is not None:
            self._compare("forward", forward)

    def _mode(self, mode: str, differentiate: Callable[[FlatFunction], T]) -> T | None:
        if mode not in self.settings.modes:
            return None
        try:
            return differentiate(self.f)
        except (Defect, Unsupported) as error:
            self.seen.findings.append(defect_or_note(mode, error))
        except Exception as error:
            if mode == "reverse":
                raise
            # The function itself works; forward mode is one that it need not have.
            self.seen.findings.append(Finding("mode_unavailable", f"{type(error).__name__}: {first_line(error)}", mode))
        return None

    def _compare(self, mode: str, J: Array | Sparse) -> None:
        leg = self._in_groups(mode, J) if isinstance(J, Sparse) else self._entry_by_entry(mode, J, None)
        self.seen.legs.append(leg)
        self._hear(leg)

    def _in_groups(self, mode: str, J: Sparse) -> Leg | SparseLeg:
        grouped = self._compare_groups(J)
        if not grouped.plain and J.shape[0] * J.shape[1] <= UNFOLDED:
            full = in_full(self.f, mode, J, grouped.statuses > Status.UNRESOLVED)
            return self._entry_by_entry(mode, full, grouped)
        check_ties(self.sampler, grouped)
        leg = SparseLeg(mode, J, grouped)
        return leg.without_mismatch() if self.unsteady else leg

    def _entry_by_entry(self, mode: str, J: Array, grouped: Entries | None) -> Leg:
        found = self._compare_inputs(mode, J, grouped)
        length = found.directions.weights[:, None]
        leg = Leg(mode, J, (found.value / length).T, (found.bar / length).T, found.status.T, found.unexplored)
        self.seen.broken[mode] = found.broken.T
        return self._reconsidered(leg) if leg.verdict.severity >= Verdict.INCONCLUSIVE.severity else leg

    def _compare_inputs(self, mode: str, J: Array, grouped: Entries | None) -> Entries:
        """The comparison along unit vectors; that along groups says where it need not be made again."""
        if self.settings.eps is not None:
            return compare_at(self.sampler, self.settings.eps, J, self.f.outputs, self.rules)
        if grouped is not None:
            found = self.numerical.unfold(grouped, self.directions, J)
        else:
            found = self.numerical.compare(self.directions, self.directions.times(J))
        self.seen.findings += compare_symmetric(self.f, self.numerical, found, J, mode)
        self.seen.findings += excuse_phases(self.f, self.sampler.here, found, self.rules)
        settled = admit_hidden_kinks(self.sampler, found, self.rules)
        check_ties(self.sampler, found, settled)
        return found

    def _hear(self, leg: Leg | SparseLeg) -> None:
        """An adapter that can differentiate fn by other means says what those think of a mismatch."""
        opinion = getattr(self.f, "second_opinion", None)
        if opinion is not None and leg.verdict is Verdict.MISMATCH and leg.size <= MATRICES:
            self.seen.findings += opinion(leg.analytical, leg.numeric, leg.status == Status.MISMATCH)

    def _compare_groups(self, J: Sparse) -> Entries:
        assert self.structure is not None
        return self.numerical.compare(self.structure.directions, self.structure.times(J))

    def _reconsidered(self, leg: Leg) -> Leg:
        """Take back mismatches that are no fault of the gradient."""
        if leg.mode == "reverse":
            leg, said = excuse_inexact(leg, self.inexact)
            self.seen.findings += said
        if self.unsteady:
            leg = leg.without_mismatch()
        elif self.beside is not None:
            broken = self.seen.broken[leg.mode]
            leg = leave_dust(leg, broken, self.sampler.here, self.f.outputs, self.beside)
            leg, said = excuse_cancellation(leg, broken, self.f.outputs, self.beside)
            self.seen.findings += said
        return _purity.allow_undefined(leg, self.sampler.here)

    def _judge_probes(self, backward: Reverse) -> None:
        J = backward.jacobian
        # A sparse one has been made of products that no other contradicts.
        leg = self.seen.legs[-1]
        if leg.verdict is Verdict.MISMATCH or not backward.contradictions or isinstance(J, Sparse):
            return
        here = self._terms(leg)
        for probe in backward.contradictions:
            dust = dust_of_product(probe.vector, J, here, self.f.inputs, self.f.outputs, self.rules.eps)
            wrong = probe.disagreement(J, self.rules, self.sampler.noise.relative, dust)
            if wrong is not None and self.inexact:
                self.seen.findings.append(not_exact(self.inexact))
                return
            if wrong is not None:
                entry, finding = probe.accuse(wrong, J, self.f, self.rules)
                self.seen.extra.append(entry)
                self.seen.findings.append(finding)
                return

    def _terms(self, leg: Leg | SparseLeg) -> Array:
        """How large the terms are, at the least, that each output is the sum of, shape (m,).

        Values that are all noise are what rounding leaves of larger terms; so are those of which no derivative was
        told from 0.
        """
        noise = self.sampler.noise
        here = self.sampler.magnitude
        told = (leg.status == Status.OK) & (leg.analytical != 0) if isinstance(leg, Leg) else np.ones((here.size, 1))
        nothing = (noise.relative > DROWNED) | ~told.any(axis=1)
        rounded = np.where(noise.relative > DROWNED, noise.level / self.rules.eps, 0.0)
        return np.where(nothing, np.maximum(np.maximum(here, 1.0), rounded), here)

    def _forward_agrees(self, J: Array | Sparse) -> bool:
        if "forward" not in self.settings.modes:
            return False
        try:
            return tangent_probe(self.f, self.rng).agrees(J.T, self.rules.eps)
        except Exception:  # noqa: BLE001 - said when the whole of it is asked for
            return False

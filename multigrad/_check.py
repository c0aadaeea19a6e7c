"""check_grad, from the call to the verdict."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from multigrad import _purity
from multigrad._analytical import (
    Reverse,
    defect_or_note,
    forward_jacobian,
    reverse,
    tangent_probe,
)
from multigrad._batches import Batched
from multigrad._detached import only_attached
from multigrad._directions import Directions, unit_vectors
from multigrad._findings import Finding
from multigrad._numerical import Numerical
from multigrad._pattern import Sparse
from multigrad._report import Entry, GradReport, Leg
from multigrad._structure import INPUTS_FROM, Structure, find_structure
from multigrad._ties import check_ties
from multigrad._tree import walk
from multigrad._verdict import Rules, Verdict
from multigrad.backends import (
    Array,
    Backend,
    FlatFunction,
    Options,
    accept_options,
    backend_of,
    get_backend,
)
from multigrad.errors import (
    Defect,
    GradientMismatch,
    InconclusiveCheck,
    InvalidUse,
    NonDifferentiableWarning,
    Unsupported,
)

MODES = ("reverse", "forward")
DOUBLE = 1e-12  # coarser arithmetic than this has no structure to be seen in single values

T = TypeVar("T")


def check_grad(
    fn: Callable[..., Any],
    inputs: Any,
    backend: str = "auto",
    *,
    jac: Callable[..., Any] | None = None,
    params: Any = None,
    modes: Sequence[str] = MODES,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float = 0.0,
    seed: int = 0,
    raise_exception: bool = True,
    **backend_options: Any,
) -> GradReport:
    """Tell whether the gradient of ``fn`` at ``inputs`` is right.

    The analytical Jacobian (the framework's, which runs the rules under test, or ``jac``) is compared with a
    numerical one built in float64, with an error bar on every entry; the bar decides.

    Args:
        fn: takes the inputs, returns arrays: one, or a tuple, list or dict of them.
        inputs: a tuple or list holds the positional arguments; anything else is the one argument. Each may be a
            pytree. Floating and complex leaves are perturbed (in torch: those that require grad, if any does).
        backend: the name of an adapter, or ``"auto"`` to tell by the inputs.
        jac: the derivative under test, where it is the user's own: called like ``fn``, it returns the gradient of a
            scalar function or a Jacobian of shape output + input; a tuple of them for several inputs.
        params: what is to be checked besides the inputs: ``"captured"``, a module, or a pytree.
        modes: ``"reverse"``, ``"forward"``; one that the function does not support is noted.
        eps: one fixed absolute step, in place of the ladder's choice.
        rtol: relative tolerance; 1e-7 for float64 arithmetic if left alone.
        atol: absolute tolerance. It hides every gradient below it.
        seed: of all random numbers in the check.
        raise_exception: whether to raise and warn, or only to return the report.
        **backend_options: what the adapter alone understands.

    Returns:
        The report; true in a condition if the gradient may be used.

    Raises:
        GradientMismatch: the gradient is wrong.
        InconclusiveCheck: it cannot be told.
        InvalidUse: nothing to differentiate, or arguments that make no sense.

    Example:
        >>> import numpy as np
        >>> report = check_grad(lambda x: np.sum(x**2), np.array([1.0, 2.0]), jac=lambda x: 2 * x)
        >>> print(report.verdict)
        ok
        >>> report = check_grad(
        ...     lambda x: np.sum(x**2), np.array([1.0, 2.0]), jac=lambda x: [2.0, 4.4], raise_exception=False
        ... )
        >>> report.worst[0].input, report.worst[0].analytical, round(report.worst[0].numeric, 9)
        ('inputs[0][1]', 4.4, 4.0)
    """
    started = time.perf_counter()
    arguments = as_arguments(inputs)
    _validate(fn, modes, eps, rtol, atol)
    adapter = choose_backend(backend, arguments)
    options = Options(jac=jac, params=params, seed=seed, extra=accept_options(adapter, backend_options))
    f = adapter.flatten(fn, arguments, options)
    # A matrix that the user returns has no second mode.
    modes = MODES[:1] if jac is not None else modes
    result = run_check(f, modes=modes, eps=eps, rtol=rtol, atol=atol, seed=seed)
    report = replace(result, backend=adapter.name, seconds=time.perf_counter() - started)
    if raise_exception:
        announce(report)
    return report


def run_check(
    f: FlatFunction,
    *,
    modes: Sequence[str] = MODES,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float = 0.0,
    seed: int = 0,
) -> GradReport:
    """Check a flat function; the arguments are those of ``check_grad``."""
    return _Check(f, tuple(modes), eps, rtol, atol, seed).run()


@cache
def _entropy(seed: int) -> np.random.SeedSequence:
    """Hashing a seed takes longer than the random numbers of a small check."""
    return np.random.SeedSequence(seed)


def as_arguments(inputs: Any) -> tuple[Any, ...]:
    """A tuple or list holds the positional arguments; anything else is the one argument."""
    if isinstance(inputs, list) or isinstance(inputs, tuple) and not hasattr(inputs, "_fields"):
        return tuple(inputs)
    return (inputs,)


def choose_backend(name: str, arguments: tuple[Any, ...]) -> Backend:
    """Return the adapter called ``name``, or the one that recognises the arguments."""
    return backend_of([leaf for _, leaf in walk(arguments)]) if name == "auto" else get_backend(name)


def announce(report: GradReport) -> None:
    """Raise or warn as the verdict says."""
    if report.verdict is Verdict.MISMATCH:
        raise GradientMismatch(report)
    if report.verdict is Verdict.INCONCLUSIVE:
        raise InconclusiveCheck(report)
    if report.verdict is Verdict.NONDIFFERENTIABLE:
        warnings.warn(NonDifferentiableWarning(str(report)), stacklevel=3)


def _validate(fn: object, modes: Sequence[str], eps: float | None, rtol: float | None, atol: float) -> None:
    if not callable(fn):
        raise InvalidUse("not_callable", f"fn must be callable, not {type(fn).__name__}")
    unknown = [mode for mode in modes if mode not in MODES]
    if isinstance(modes, str) or unknown or not modes:
        raise InvalidUse("unknown_mode", f"modes must be some of {MODES}, not {modes!r}")
    for name, value in (("eps", eps), ("rtol", rtol), ("atol", atol)):
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise InvalidUse("bad_tolerance", f"{name} must be a finite number that is not negative, not {value!r}")
    if eps == 0:
        raise InvalidUse("bad_tolerance", "eps, the step, must not be 0")


@dataclass
class _Check:
    """One check in progress."""

    f: FlatFunction
    modes: tuple[str, ...]
    eps: float | None
    rtol: float | None
    atol: float
    seed: int

    def run(self) -> GradReport:
        self.findings: list[Finding] = []
        self.legs: list[Leg] = []
        self.agreeing: list[str] = []
        self.extra: list[Entry] = []
        self.f = only_attached(self.f)
        self.rng = np.random.Generator(np.random.PCG64(_entropy(self.seed)))
        self.rules = Rules.for_eps(self.f.eps, self.rtol, self.atol)
        self.values = Batched(self.f, self.f.repeats.shape[1])
        here, jitter, repeats = _purity.value_at_x(self.f, self.values)
        self.findings += [*repeats, *_purity.check_finite(self.f, here)]
        self.numerical = Numerical(self.values, self.f.x, here, self.rules, self.rng, jitter)
        self.directions = unit_vectors(self.f.x, self.rng)
        self.structure = self._find_structure()
        self._compare_modes()
        return self._report()

    def _find_structure(self) -> Structure | None:
        if self.eps is not None or self.f.eps > DOUBLE or self.f.x.size < INPUTS_FROM:
            return None
        return find_structure(self.values, self.f.x, self.f.inputs, self.rng)

    def _compare_modes(self) -> None:
        pattern = self.structure.pattern if self.structure else None
        backward = self._mode("reverse", lambda f: reverse(f, self.rng, pattern))
        if backward is not None:
            self.findings += backward.findings
            self._compare("reverse", backward.jacobian)
            self._judge_probes(backward)
        if backward is not None and self._forward_agrees(backward.jacobian):
            self.agreeing.append("forward")
            return
        forward = self._mode("forward", lambda f: forward_jacobian(f, self.rng, pattern))
        if forward is not None:
            self._compare("forward", forward)

    def _mode(self, mode: str, differentiate: Callable[[FlatFunction], T]) -> T | None:
        if mode not in self.modes:
            return None
        try:
            return differentiate(self.f)
        except (Defect, Unsupported) as error:
            self.findings.append(defect_or_note(mode, error))
        except Exception as error:
            if mode == "reverse":
                raise
            # The function itself works; forward mode is one that it need not have.
            reason = str(error).strip().partition("\n")[0]
            self.findings.append(Finding("mode_unavailable", f"{type(error).__name__}: {reason}", mode))
        return None

    def _compare(self, mode: str, J: Array | Sparse) -> None:
        directions, analytical = self._products(J)
        if self.eps is None:
            found = self.numerical.compare(directions, analytical, self.f.inputs, self.f.outputs)
            check_ties(self.numerical, found)
        else:
            found = self.numerical.compare_at(self.eps, analytical, self.f.inputs, self.f.outputs)
        self.legs.append(Leg(mode, J, found))

    def _products(self, J: Array | Sparse) -> tuple[Directions, Array]:
        if self.structure and isinstance(J, Sparse):
            return self.structure.directions, self.structure.times(J)
        return self.directions, self.directions.times(J)

    def _judge_probes(self, backward: Reverse) -> None:
        if self.legs[-1].verdict is Verdict.MISMATCH:
            return
        for probe in backward.probes:
            wrong = probe.disagreement(backward.jacobian, self.rules, self.numerical.relative_noise)
            if wrong is not None:
                entry, finding = probe.accuse(wrong, backward.jacobian, self.f, self.rules)
                self.extra.append(entry)
                self.findings.append(finding)
                return

    def _forward_agrees(self, J: Array) -> bool:
        if "forward" not in self.modes:
            return False
        try:
            return tangent_probe(self.f, self.rng).agrees(J.T, self.rules.eps)
        except Exception:  # noqa: BLE001 - said when the whole of it is asked for
            return False

    def _report(self) -> GradReport:
        if isinstance(self.values.raised, Defect):
            self.findings.append(self.values.raised.finding)
        looped = self.values.why_looped
        if looped:
            self.findings.append(Finding("vmap_fallback", f"evaluated row by row: {looped}"))
        findings = tuple(dict.fromkeys((*self.f.findings, *self.findings)))
        parts = [leg.verdict for leg in self.legs]
        parts += [Verdict.MISMATCH] * bool(self.extra)
        parts += [Verdict.INCONCLUSIVE] * (not self.legs or any(f.severity == "error" for f in findings))
        verdict = max(parts, key=lambda v: v.severity)
        return GradReport(
            verdict=verdict,
            findings=findings,
            legs=tuple(self.legs),
            agreeing=tuple(self.agreeing),
            extra=tuple(self.extra),
            inputs=tuple(self.f.inputs),
            outputs=tuple(self.f.outputs),
            fixed=tuple(self.f.fixed),
            rules=self.rules,
            backend="",
            evaluations=self.values.rows + len(self.f.repeats),
            seconds=0.0,
            seed=self.seed,
            reason=self._reason(findings) if verdict is Verdict.INCONCLUSIVE else "",
        )

    def _reason(self, findings: tuple[Finding, ...]) -> str:
        errors = [f for f in findings if f.severity == "error"]
        if errors:
            return f"{errors[0].kind}: {errors[0].evidence}"
        if not self.legs:
            return "no mode gave a derivative: " + "; ".join(f.evidence for f in findings)
        if self.values.raised is not None:
            return f"the function raises near the inputs: {type(self.values.raised).__name__}: {self.values.raised}"
        noise = float(np.max(self.numerical.relative_noise, initial=0.0))
        return (
            f"the error bars are too wide; the function's values carry noise of {noise:.1g} of their size"
            if noise > 1e-12
            else "the error bars are too wide: difference quotients do not settle at any step around the inputs"
        )

"""check_grad, from the call to the verdict."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Executor

from multigrad import _arguments
from multigrad._arguments import MODES
from multigrad._belongings import Belongings
from multigrad._comparison.verdict import Verdict
from multigrad._nearby import look_nearby
from multigrad._progress import Progress
from multigrad._report.report import GradReport, refused
from multigrad._run import MEMORY, Settings, run_check
from multigrad._second import with_second_order
from multigrad.backends import (
    BESIDE,
    FARTHEST,
    Backend,
    FlatFunction,
    Options,
    accept_options,
    backend_of,
    get_backend,
    left_behind,
    recognising,
)
from multigrad.errors import (
    Defect,
    GradientMismatch,
    InconclusiveCheck,
    InvalidUse,
    MultigradError,
    NonDifferentiableWarning,
)
from multigrad.tree import walk


def check_grad(
    fn: Callable[..., Any],
    inputs: Any,
    backend: str = "auto",
    *,
    jac: Callable[..., Any] | None = None,
    params: Any = None,
    order: int = 1,
    modes: Sequence[str] = MODES,
    method: str = "auto",
    eps: float | None = None,
    rtol: float | None = None,
    atol: float = 0.0,
    seed: int = 0,
    raise_exception: bool = True,
    progress: bool | None = None,
    executor: Executor | None = None,
    max_memory: int = MEMORY,
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
        order: 2 to check the derivative of the derivative as well.
        modes: ``"reverse"``, ``"forward"``; one that the function does not support is noted.
        method: ``"full"`` compares every entry, ``"probe"`` products with a few random directions, from which wrong
            entries are located; ``"auto"`` probes where n inputs and m outputs with n (n + m) > 2**27 have no sparsity.
        eps: one fixed absolute step, in place of the ladder's choice.
        rtol: relative tolerance; if left alone 1e-7 for code in float64, and 1e-6 for what is written for less.
        atol: absolute tolerance. It hides every gradient below it.
        seed: of all random numbers in the check.
        raise_exception: whether to raise and warn, or only to return the report.
        progress: whether to show how far a long check is; left alone, on a terminal only.
        executor: evaluates ``fn`` in parallel; any ``concurrent.futures.Executor``, of processes or of a cluster. Processes
            are best spawned, ``ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"))``: forked ones
            inherit locks of torch's and JAX's threads, and may hang.
        max_memory: in bytes; what a full comparison must not need more of.
        **backend_options: what the adapter alone understands.

    Returns:
        The report; true in a condition if the gradient may be used.

    Raises:
        GradientMismatch: the gradient is wrong.
        InconclusiveCheck: it cannot be told.
        InvalidUse: nothing to differentiate, or arguments that make no sense.
        Unsupported: the adapter has no way to differentiate ``fn``; the message says what stands in the way.
        UnknownBackend, BackendUnavailable: there is no such adapter, or its framework is not installed.

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
    __tracebackhide__ = True  # for pytest: it is the call that fails
    started = time.perf_counter()
    arguments = as_arguments(inputs)
    _validate(fn, jac, modes, method, order, eps, rtol, atol, seed, executor, progress, raise_exception, max_memory)
    _arguments.refuse_keywords_of_others(backend_options)
    adapter = choose_backend(backend, arguments, beside=(params, fn))
    extra = accept_options(adapter, {"jac": jac, "params": params, **backend_options}, OPTIONS)
    options = Options(jac=jac, params=params, seed=seed, extra=extra)
    # A matrix that the user returns has no second mode.
    modes = MODES[:1] if jac is not None else modes
    flatten = partial(_flatten, adapter, fn, arguments, options, executor)
    called = partial(
        _call_in_words, arguments, adapter.name, auto=backend == "auto", listed=isinstance(inputs, list | tuple)
    )
    with Belongings(fn, jac) as belongings, Progress(progress) as shown:
        settings = Settings(
            modes=modes,
            method=method,
            eps=None if eps is None else float(eps),
            rtol=None if rtol is None else float(rtol),
            atol=float(atol),
            seed=int(seed),
            max_memory=max_memory,
            farthest=BESIDE if belongings.searches else FARTHEST,
            progress=shown,
        )
        check = partial(run_check, settings=settings)
        beside = partial(look_nearby, check=check, seed=seed, allow_constant=jac is not None)
        result = _check_at(flatten, called, belongings, check, beside, order, seed)
    report = replace(result, backend=adapter.name, seconds=time.perf_counter() - started)
    if raise_exception:
        announce(report)
    return report


OPTIONS = tuple(check_grad.__kwdefaults__ or ())


def _flatten(
    adapter: Backend, fn: Callable[..., Any], arguments: tuple[Any, ...], options: Options, executor: Executor | None
) -> FlatFunction:
    f = adapter.flatten(fn, arguments, options)
    if executor is None:
        return f
    from multigrad._remote import Recipe, Remote

    return Remote(f, Recipe(adapter.name, fn, arguments, options), executor)


def _check_at(
    flatten: Callable[[], FlatFunction],
    called: Callable[[], str],
    belongings: Belongings,
    check: Callable[[FlatFunction], GradReport],
    beside: Callable[[FlatFunction, GradReport], GradReport],
    order: int,
    seed: int,
) -> GradReport:
    try:
        f = flatten()
    except Defect as error:
        return refused(error.finding, seed)
    except MultigradError:
        raise
    except Exception as error:
        error.add_note(called())
        raise
    with left_behind(f):
        memory = belongings.memory(f)
        report = check(f)
        report = report.unfounded().with_findings(memory) if memory else beside(f, report)
        return report if order == 1 else with_second_order(f, report, check, seed)


def _call_in_words(arguments: tuple[Any, ...], backend: str, auto: bool, listed: bool) -> str:
    shown = ", ".join(map(_arguments.in_words, arguments))
    told = ", told by the inputs" if auto else ""
    several = "; each item of a tuple or list is passed as an argument; one array is np.array([...])" if listed else ""
    return f"check_grad called fn({shown}) for backend {backend!r}{told}{several}"


def as_arguments(inputs: Any) -> tuple[Any, ...]:
    """A tuple or list holds the positional arguments; anything else is the one argument."""
    if isinstance(inputs, list) or isinstance(inputs, tuple) and not hasattr(inputs, "_fields"):
        return tuple(inputs)
    return (inputs,)


def choose_backend(name: str, arguments: tuple[Any, ...], beside: tuple[Any, ...] = ()) -> Backend:
    """Return the adapter called ``name``, or the one that recognises the arguments, or else what is ``beside`` them."""
    if not isinstance(name, str):
        raise InvalidUse(
            "bad_backend",
            f"backend must be a name, not of type {type(name).__name__}; several inputs go into a tuple: check_grad(fn, (x, y))",
        )
    if name != "auto":
        return get_backend(name)
    leaves = [leaf for _, leaf in walk(arguments)]
    adapter = recognising(leaves) or recognising([leaf for _, leaf in walk(beside)])
    if adapter is None:
        _arguments.validate_leaves(leaves)
    return adapter or backend_of(leaves)


def announce(report: GradReport) -> None:
    """Raise or warn as the verdict says."""
    __tracebackhide__ = True
    if report.verdict is Verdict.MISMATCH:
        raise GradientMismatch(report)
    if report.verdict is Verdict.INCONCLUSIVE:
        raise InconclusiveCheck(report)
    if report.verdict is Verdict.NONDIFFERENTIABLE:
        warnings.warn(NonDifferentiableWarning(str(report)), stacklevel=3)


def _validate(
    fn: object,
    jac: object,
    modes: object,
    method: object,
    order: object,
    eps: object,
    rtol: object,
    atol: object,
    seed: object,
    executor: object,
    progress: object,
    raise_exception: object,
    max_memory: object,
) -> None:
    _arguments.validate_callable("fn", fn)
    if jac is not None:
        _arguments.validate_callable("jac", jac, "it is called as fn is; for numbers, jac=lambda *_: numbers")
    _arguments.validate_order(order)
    _arguments.validate_modes(modes)
    _arguments.validate_method(method)
    _arguments.validate_tolerances(atol=atol, **({} if rtol is None else {"rtol": rtol}))
    if eps is not None:
        _arguments.validate_step(eps)
    _arguments.validate_seed(seed)
    _arguments.validate_memory(max_memory)
    _arguments.validate_flags(raise_exception=raise_exception, **({} if progress is None else {"progress": progress}))
    if executor is not None:
        _arguments.validate_executor(executor)

"""check_consistency: whether one function, written for several frameworks, is the same with the same derivatives."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from multigrad import _arguments
from multigrad._arguments import MODES
from multigrad._check import as_arguments
from multigrad.backends import Backend, available_backends, get_backend
from multigrad.consistency.answers import Consistency
from multigrad.consistency.call import Call
from multigrad.consistency.comparison import compare
from multigrad.consistency.conventions import DEFINITIONS, LEGAL, Convention
from multigrad.consistency.handover import WIDER, is_array
from multigrad.consistency.matching import Declared, Layout
from multigrad.consistency.report import ConsistencyReport
from multigrad.errors import BackendUnavailable, ConventionWarning, InconsistentFunctions, InvalidUse, UnknownBackend


def check_consistency(
    functions: Mapping[str, Callable[..., Any]] | Callable[..., Any],
    inputs: Any,
    *,
    backends: Sequence[str] | None = None,
    reference: str | None = None,
    mapping: Mapping[str, Mapping[str, Declared]] | None = None,
    jac: Mapping[str, Callable[..., Any]] | None = None,
    params: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    modes: Sequence[str] = MODES,
    rtol: float | None = None,
    accept: Collection[str] = (),
    order: int = 1,
    seed: int = 0,
    raise_exception: bool = True,
) -> ConsistencyReport:
    """Tell whether several implementations are the same function with the same derivatives, and which is not.

    Values are compared pairwise within their measured rounding, Jacobians pairwise and each with the numerical one of
    its own function, which has an error bar on every entry.

    Args:
        functions: one function for each backend, by the backend's name; or one function for all of them.
        inputs: as for ``check_grad``, given once: arrays of NumPy or any framework, which are handed to each backend
            as its own. A dict whose keys are the backends' names gives each its own inputs; they must hold the same
            numbers, matched by path, by name, or in another order of their axes. Outputs are then compared in the
            order in which such inputs lie (channels last, time first), if they are more alike in it. What is not to be differentiated
            (and what a framework can't differentiate by, as running means), give as a tensor of torch that does not
            require grad beside others that do.
        backends: the names, if one function is given for all; all that are installed if left alone.
        reference: the backend that counts as right (the original of a port), and whose paths are used. Without it
            the majority is right, and the paths are those of the first.
        mapping: for a backend, what its leaves are in the reference's terms: by its own path (``inputs[0]["kernel"]``,
            ``output``) the reference's path, or the axes by which the reference's array is transposed to its own
            (``(0, 2, 3, 1)`` for a backend that wants NHWC of inputs in NCHW), or (path, axes).
        jac: derivatives that are the user's own, by backend. NumPy functions without one are compared by value, and
            their numerical Jacobian with the others' derivatives.
        params: by backend, what is checked besides the inputs, as for ``check_grad``.
        options: by backend, the keywords of ``check_grad`` that it alone understands.
        modes: ``"reverse"``, ``"forward"``.
        rtol: relative tolerance: of derivatives; of values, what is called different rather than not told.
        accept: conventions that may differ, though each is another definition: "ddof", "gelu", "conjugation",
            "padding"; and "stop_gradient": that derivatives are not those of the values, if they are the same in
            all; "symmetric_domain": that derivatives differ by what makes a symmetric matrix another one.
        order: 2 to compare the derivatives of the gradients as well, of backends that have them.
        seed: of all random numbers in the comparison.
        raise_exception: whether to raise and warn, or only to return the report.

    Returns:
        The report; true in a condition if the implementations may stand in for one another.

    Raises:
        InconsistentFunctions: they differ, or it cannot be told.
        InvalidUse: arguments that make no sense.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> x = np.array([0.5, -1.0, 2.0])
        >>> report = check_consistency({"jax": lambda x: jnp.tanh(x) ** 2, "numpy": lambda x: np.tanh(x) ** 2}, x)
        >>> print(report.verdict)
        ok
        >>> report = check_consistency({"jax": jnp.sum, "numpy": np.mean}, x, reference="numpy", raise_exception=False)
        >>> report.odd, report.worst[0].output
        (('jax',), 'output')
    """
    __tracebackhide__ = True  # for pytest: it is the call that fails
    started = time.perf_counter()
    named = {"mapping": mapping, "jac": jac, "params": params, "options": options}
    accept = (accept,) if isinstance(accept, str) else accept
    _validate_kinds(functions, backends, reference, named, accept)
    _arguments.validate_order(order)
    _arguments.validate_modes(modes)
    _arguments.validate_tolerances(**({} if rtol is None else {"rtol": rtol}))
    _arguments.validate_seed(seed)
    _arguments.validate_flags(raise_exception=raise_exception)
    by_name = _by_backend(functions, backends)
    _validate(by_name, reference, accept, named)
    call = Call(
        functions=by_name,
        backends={name: _backend(name) for name in by_name},
        inputs=_inputs(inputs, by_name),
        shared=not _is_by_backend(inputs, by_name),
        layouts={name: Layout.of((mapping or {}).get(name, {})) for name in by_name},
        jac=jac or {},
        params=params or {},
        options=options or {},
        modes=tuple(modes),
        rtol=rtol,
        accept=frozenset(accept),
        reference=reference,
        seed=seed,
        order=order,
    )
    report = replace(_in_both_precisions(call), seconds=time.perf_counter() - started)
    if raise_exception:
        announce(report)
    return report


def announce(report: ConsistencyReport) -> None:
    """Raise or warn as the verdict says."""
    __tracebackhide__ = True
    if not report:
        raise InconsistentFunctions(report)
    if report.verdict is Consistency.CONVENTION:
        warnings.warn(ConventionWarning(str(report)), stacklevel=3)


def _in_both_precisions(call: Call) -> ConsistencyReport:
    """Compare at the inputs' own precision; where that is low and the sides differ, in float64 as well."""
    own = compare(call)
    low = any(is_array(v) and _arguments.dtype_of(v) in WIDER for v in call.leaves)
    if not low or own:
        return own
    try:
        wide = compare(replace(call, wide=True))
    except Exception:  # noqa: BLE001, of any type: parameters or constants of low precision do not go with float64 inputs
        return own
    if wide.verdict.severity >= own.verdict.severity:
        return wide if wide.odd else own
    return _rounding_alone(own, wide)


def _rounding_alone(own: ConsistencyReport, wide: ConsistencyReport) -> ConsistencyReport:
    """The report of functions that are the same in float64 though they differ in low precision."""
    if not own.worst:  # low precision could not tell, float64 can
        return wide
    first = own.worst[0]
    numbers = ", ".join(f"{name} {value:.9g}" for name, value in first.numbers.items())
    names = tuple(own.table)[:2]
    convention = Convention(
        "float32_accumulation",
        f"{first.output}{f' by {first.input}' if first.input else ''}",
        (names[0], names[1]),
        f"in low precision: {numbers}; in float64 the functions agree to {wide.sharpness:.1g}",
    )
    return replace(
        wide,
        verdict=max(wide.verdict, Consistency.CONVENTION, key=lambda v: v.severity),
        worst=own.worst,
        conventions=(convention, *wide.conventions),
        findings=(convention.finding, *wide.findings),
    )


def _by_backend(
    functions: Mapping[str, Callable[..., Any]] | Callable[..., Any], backends: Sequence[str] | None
) -> Mapping[str, Callable[..., Any]]:
    if isinstance(functions, Mapping):
        absent = sorted(set(backends or ()) - set(functions))
        if absent:
            raise InvalidUse("unknown_backend", f"backends names {absent}; there are functions for {sorted(functions)}")
        return functions if backends is None else {name: functions[name] for name in backends}
    return dict.fromkeys(_installed() if backends is None else backends, functions)


def _backend(name: str) -> Backend:
    try:
        return get_backend(name)
    except UnknownBackend as error:
        raise UnknownBackend(f"{error}; functions are given by backend, one for each") from error


def _installed() -> list[str]:
    def loads(name: str) -> Backend | None:
        try:
            return get_backend(name)
        except BackendUnavailable:
            return None

    return [name for name in available_backends() if loads(name)]


def _is_by_backend(inputs: Any, names: Collection[str]) -> bool:
    return isinstance(inputs, Mapping) and set(inputs) == set(names)


def _inputs(inputs: Any, names: Collection[str]) -> Mapping[str, tuple[Any, ...]]:
    named = set(inputs) & set(names) if isinstance(inputs, Mapping) else set()
    if named and not _is_by_backend(inputs, names):
        missing, unknown = sorted(set(names) - named), sorted(set(inputs) - named)
        raise InvalidUse(
            "inputs_by_backend",
            f"inputs names backends, but none are given for {missing}"
            + (f", and {unknown} are not among the functions" if unknown else "")
            + "; give each of the functions its own, or all of them the same",
        )
    if _is_by_backend(inputs, names):
        return {name: as_arguments(inputs[name]) for name in names}
    return dict.fromkeys(names, as_arguments(inputs))


def _validate_kinds(
    functions: object, backends: object, reference: object, by_backend: Mapping[str, Any], accept: object
) -> None:
    if not isinstance(functions, Mapping):
        _arguments.validate_callable(
            "functions", functions, "or a dict of callables by backend, {'jax': f, 'torch': g}"
        )
    if backends is not None:
        _arguments.validate_names("backends", backends)
    if reference is not None:
        _arguments.validate_names("reference", (reference,))
    kinds = {"mapping": Mapping, "options": Mapping}
    for argument, value in by_backend.items():
        if value is not None:
            _arguments.validate_by_backend(argument, value, kinds.get(argument))
    for name, jac in (by_backend["jac"] or {}).items():
        _arguments.validate_callable(f"jac for {name!r}", jac)
    _arguments.validate_names("accept", accept)


def _validate(
    functions: Mapping[str, Any],
    reference: str | None,
    accept: Collection[str],
    by_backend: Mapping[str, Any],
) -> None:
    if len(functions) < 2:
        raise InvalidUse(
            "too_few_backends", f"a comparison needs two backends; there is {', '.join(functions) or 'none'}"
        )
    for name, fn in functions.items():
        _arguments.validate_callable(f"the function for {name!r}", fn)
    named = {"reference": [reference] if reference else [], **{k: list(v or {}) for k, v in by_backend.items()}}
    for argument, names in named.items():
        unknown = sorted(set(names) - set(functions))
        if unknown:
            raise InvalidUse("unknown_backend", f"{argument} names {unknown}; the backends are {sorted(functions)}")
    unknown = sorted(set(accept) - {*LEGAL, *DEFINITIONS})
    if unknown:
        raise InvalidUse("unknown_convention", f"accept takes names out of {(*DEFINITIONS, *LEGAL)}, not {unknown}")

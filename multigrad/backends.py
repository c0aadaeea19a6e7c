"""The contract between the core and a framework, and the register of adapters.

An adapter turns a user's function and inputs into a flat function f: R^n -> R^m in float64. That is its whole
job; what is done with f (steps, error bars, verdicts) is the core's. There is nothing to inherit: an object with
these members, registered under the entry-point group ``multigrad.backends``, is an adapter. See backends/README.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

from multigrad.errors import BackendUnavailable, DuplicateBackend, InvalidUse, UnknownBackend
from multigrad.findings import Finding

GROUP = "multigrad.backends"
# Keywords of check_grad itself that not every adapter has a use for.
OPTIONAL = ("jac", "params")
# How far from x f is evaluated, in units of the size of the inputs; and where it searches for what need not exist there.
FARTHEST, BESIDE = 4.0, 2.0**-4

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Leaf:
    """One array among the inputs or outputs, and its place in the flat vector.

    A complex leaf of k entries takes 2 k places: real part, imaginary part, real part, ...

    Attributes:
        path: how the user would write it, ``inputs[0]["w"]``.
        shape: its shape.
        dtype: its dtype as the user has it, by name (``"float32"``).
        start: where it begins in the flat vector.
        attached: False for an output that carries no derivative (torch: no ``grad_fn``).
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    start: int
    attached: bool = True

    @cached_property
    def complex(self) -> bool:
        """Whether each entry takes two places."""
        return self.dtype.startswith("complex")

    @cached_property
    def size(self) -> int:
        """The number of places that it takes in the flat vector."""
        return math.prod(self.shape) * (2 if self.complex else 1)

    @cached_property
    def slice(self) -> slice:
        """Its places in the flat vector."""
        return slice(self.start, self.start + self.size)

    def place(self, k: int) -> str:
        """Name the flat place ``k`` as path and index.

        >>> Leaf("inputs[0]", (2, 3), "float64", start=10).place(14)
        'inputs[0][1, 1]'
        """
        entry, imaginary = divmod(k - self.start, 2) if self.complex else (k - self.start, 0)
        index = ", ".join(str(i) for i in np.unravel_index(entry, self.shape)) if self.shape else ""
        part = (".imag" if imaginary else ".real") if self.complex else ""
        return f"{self.path}{f'[{index}]' if index else ''}{part}"


def place(leaves: Sequence[Leaf], k: int) -> str:
    """Name the flat place ``k`` among the leaves as path and index."""
    return next(leaf.place(k) for leaf in leaves if leaf.slice.start <= k < leaf.slice.stop)


@dataclass(frozen=True)
class Options:
    """What of ``check_grad``'s arguments concerns the adapter.

    Attributes:
        jac: the user's own derivative, if that is what is under test.
        params: what else is to be checked: "captured", a module, a pytree.
        seed: for whatever randomness the adapter needs.
        native: evaluate at the user's own precision, whatever it is: nothing is promoted to float64.
        extra: the options that this adapter alone understands (those in ``Backend.options``).
    """

    jac: Callable[..., Any] | None = None
    params: Any = None
    seed: int = 0
    native: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


class FlatFunction(Protocol):
    """The user's function seen as f: R^n -> R^m in float64, with its derivatives.

    The three methods take a batch of rows. **One row is the plain call**: exactly what the user's own call would do.
    Several rows may be vectorised; an adapter that cannot do so raises (anything), and the core goes on row by row.
    Results are fresh arrays; nothing of the user's is changed by a call, nor by an exception in one.

    It may also have ``as_written``, the value of the user's own call at x before anything was promoted to float64,
    shape (m,), which ``check_consistency`` compares in low precision.

    Attributes:
        x: the point, shape (n,).
        inputs: the leaves that x is made of, in order.
        outputs: the leaves of f(x), in order.
        fixed: the paths of the inputs that are held fixed, each with the reason: ``"inputs[1] (int64)"``.
        eps: the unit roundoff of the arithmetic inside f: 2**-52, unless low precision could not be avoided.
        repeats: the values of two plain calls at x, one after the other, random state not reset; shape (2, m).
        findings: what the adapter has noticed so far; it may grow with every call.

    An adapter may offer more, without which a check does without:

    * ``at(x) -> FlatFunction``, the same function at another point: points that can hide an error are left for one.
    * ``gradient(u, w) -> FlatFunction``, that of (x, t), n + 1 numbers: J(x)^T (u + t w), differentiable in its turn.
      Its outputs are named ``grad(<path of the input>)``, its last input ``cotangent``. Needed for ``order=2``.
    * ``convention``, a phrase: what a gradient with respect to complex numbers is.
    * ``doubles``, how many numbers a batch of rows should hold, if vectorised calls are fastest at another size than 2**17.
    * ``expect(rows)``, called when it is known that so many rows are to come: whether compiling pays is known then.
    * ``farthest``, how far from x it may be evaluated, in units of the size of the inputs: where a loop need not end
      farther away.
    * ``written``, the unit roundoff that the user's code is written for, if f evaluates it in a finer arithmetic.
    * ``reexamine() -> bool``, called once where values are noisy or the verdict is not ok: whether f is evaluated in
      another arithmetic from now on, so that the check is to be made again.
    * ``second_opinion(analytical, numeric, wrong) -> list[Finding]``, what a derivative by other means says of a
      mismatch; the Jacobians and the mask of wrong entries have shape (m, n).
    * ``leave()``, called when the check is over, however it ends: for what the framework itself remembers of it.
    """

    x: Array
    inputs: Sequence[Leaf]
    outputs: Sequence[Leaf]
    fixed: Sequence[str]
    eps: float
    repeats: Array

    @property
    def findings(self) -> Sequence[Finding]:
        """What the adapter has noticed so far."""

    def __call__(self, X: Array, /) -> Array:
        """Evaluate f at the rows of X: (b, n) -> (b, m).

        A ``Defect`` (another shape than at x, say) concerns the row; so does an exception of the user's function.
        """

    def vjp(self, U: Array, /) -> Array:
        """Reverse mode at x, the product u^T J for every row u of U: (k, m) -> (k, n).

        Raises:
            Unsupported: the function has no reverse mode.
        """

    def jvp(self, V: Array, /) -> Array:
        """Forward mode at x, the product J v for every row v of V: (k, n) -> (k, m).

        Raises:
            Unsupported: the function has no forward mode.
        """


@runtime_checkable
class Backend(Protocol):
    """An adapter: makes flat functions of one framework's functions.

    It may also have ``array(value)``, which makes the framework's array of a NumPy array or of anything that speaks
    DLPack, without a copy where that is possible, and returns its own arrays as they are: ``check_consistency`` hands
    over one set of inputs with it. An adapter without it is handed NumPy arrays.

    Attributes:
        name: what users call it.
        options: the keywords of ``check_grad`` that it understands: its own, and ``"jac"`` and ``"params"`` if it takes
            them. The core refuses all others.
    """

    name: str
    options: frozenset[str]

    def recognises(self, leaf: object) -> bool:
        """Whether this is an array of the framework. Decides ``backend="auto"``."""

    def flatten(self, fn: Callable[..., Any], inputs: tuple[Any, ...], options: Options) -> FlatFunction:
        """Make the flat function of ``fn(*inputs)``.

        Raises:
            InvalidUse: nothing to differentiate, or inputs or outputs that are not arrays.
            Exception: whatever ``fn`` raises at the inputs, as it is.
        """


@contextmanager
def left_behind(*functions: FlatFunction) -> Iterator[None]:
    """Have functions ``leave`` when the block ends, by an exception or not."""
    try:
        yield
    finally:
        for f in functions:
            leave = getattr(f, "leave", None)
            if leave is not None:
                leave()


@cache
def _registered() -> Mapping[str, tuple[EntryPoint, ...]]:
    from importlib.metadata import entry_points  # takes as long to import as the half of this package

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=GROUP):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return dict(sorted(found.items()))


def available_backends() -> tuple[str, ...]:
    """Names of the registered adapters, whether or not their frameworks are installed.

    >>> set(available_backends()) >= {"jax", "numpy", "torch"}
    True
    """
    return tuple(_registered())


@cache
def get_backend(name: str) -> Backend:
    """Load the adapter called ``name``.

    Raises:
        UnknownBackend: nothing is registered under that name.
        DuplicateBackend: two distributions register the same name.
        BackendUnavailable: the adapter's framework is not installed.
    """
    matches = _registered().get(name, ())
    if not matches:
        known = ", ".join(repr(n) for n in available_backends()) or "none is installed"
        raise UnknownBackend(f"unknown backend {name!r}; {_meant(name, available_backends(), 0.5)}known: {known}")
    entry, *others = matches
    if others:
        raise DuplicateBackend(
            f"backend {name!r} is registered twice: {', '.join(sorted(e.value for e in matches))}; uninstall one of them"
        )
    try:
        factory = entry.load()
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            f"backend {name!r} needs the package {error.name!r}, which is not installed: pip install {error.name}"
        ) from error
    backend: Backend = factory()
    return backend


def backend_of(leaves: Sequence[object]) -> Backend:
    """Find the adapter that recognises one of the leaves, as ``recognising`` does.

    Raises:
        UnknownBackend: there is none.
    """
    backend = recognising(leaves)
    if backend is None:
        names = ", ".join(map(repr, available_backends()))
        raise UnknownBackend(f"backend='auto' finds no array among the inputs; name the backend: {names}")
    return backend


def recognising(leaves: Sequence[object]) -> Backend | None:
    """Find the adapter that recognises one of the leaves; NumPy arrays and Python numbers alone go to numpy.

    Looking for a backend imports no framework: the bases of a leaf's type name the packages that it comes from. An
    adapter is loaded if it is registered under such a name; one of another name only if there is a foreign array.

    Raises:
        InvalidUse: arrays of several frameworks, each recognised by another adapter alone.
    """
    likely = [name for name in likely_backends(leaves) if name != "numpy"]  # its arrays go along with every framework's
    foreign = _packages(leaves) - {"builtins", "numpy"}
    others = [n for n in available_backends() if foreign and n not in (*likely, "jax", "numpy", "torch")]
    for names in (likely, others):
        claims = {name: {k for k, leaf in enumerate(leaves) if get_backend(name).recognises(leaf)} for name in names}
        if any(claims.values()):
            return get_backend(_owner(claims))
    numbers = any(isinstance(leaf, (int, float, complex, np.ndarray, np.generic)) for leaf in leaves)
    return get_backend("numpy") if numbers else None


def _owner(claims: Mapping[str, set[int]]) -> str:
    """Which adapter recognises all that any does."""
    every = set().union(*claims.values())
    for name, claim in claims.items():
        if claim == every:
            return name
    mixed = " and ".join(repr(name) for name, claim in claims.items() if claim)
    raise InvalidUse(
        "mixed_inputs", f"inputs mix arrays of {mixed}; convert them, or name the one that fn takes: backend="
    )


def likely_backends(leaves: Sequence[object]) -> list[str]:
    """Names of the adapters whose framework has made one of the leaves, by the names of the packages alone."""
    packages = _packages(leaves)
    return [name for name in available_backends() if packages & {name, f"{name}lib"}]


def _packages(leaves: Sequence[object]) -> set[str]:
    return {base.__module__.partition(".")[0] for leaf in leaves for base in type(leaf).__mro__}


def accept_options(backend: Backend, given: Mapping[str, Any], general: Sequence[str] = ()) -> Mapping[str, Any]:
    """Refuse the options that ``backend`` does not understand, by name; ``general`` are those of ``check_grad`` itself."""
    missing = [name for name in OPTIONAL if given.get(name) is not None and name not in backend.options]
    if missing:
        raise InvalidUse("unknown_option", f"the backend {backend.name!r} takes no {missing[0]}=")
    given = {name: value for name, value in given.items() if name not in OPTIONAL}
    unknown = sorted(set(given) - backend.options)
    if unknown:
        own = ", ".join(sorted(backend.options - set(OPTIONAL))) or "none"
        meant = _meant(unknown[0], {*general, *backend.options}, 0.6)
        every = f"for all backends: {', '.join(general)}; " if general else ""
        raise InvalidUse(
            "unknown_option",
            f"there is no option {', '.join(map(repr, unknown))}; {meant}{every}for {backend.name!r} alone: {own}",
        )
    return given


def _meant(name: str, known: Collection[str], alike: float) -> str:
    """Ask for the known name that is most like this one, if any is so much ``alike``."""
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1, cutoff=alike)
    return f"did you mean {close[0]!r}? " if close else ""

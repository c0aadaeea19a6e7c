"""What a function reaches besides its arguments, in plain Python and NumPy: put back after the check.

Closure cells, default arguments, the globals that the code names, the object of a bound method, the attributes of a
callable object, and functions found there; of these the arrays, the containers and the names themselves. What a
framework owns (modules, tensors) is its adapter's.
"""

from __future__ import annotations

import dis
import functools
import random
import types
from collections.abc import Callable, Hashable
from typing import Any, Self

import numpy as np

from multigrad._differences.directions import scale_of
from multigrad._purity import FEW_ULP
from multigrad.backends import FlatFunction
from multigrad.findings import Finding

# Arrays are copied as long as all of them together take no more bytes.
ROOM = 2**28
# Functions in functions, containers in containers.
DEEPEST = 3
_MISSING = object()


class Belongings:
    """A context after which what ``functions`` reach is as it was.

    Args:
        functions: those that the check calls; None counts for nothing.

    Attributes:
        searches: whether one of the functions has a ``while`` loop: far from the inputs it need not end at all.
    """

    def __init__(self, *functions: Callable[..., Any] | None) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._seen: set[int] = set()
        self._room = ROOM
        self._draws = False
        self.searches = False
        for function in functions:
            self._visit("", function, 0)
        self._random = (random.getstate(), np.random.get_state()) if self._draws else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for kept in self._kept.values():
            kept.restore()
        if self._random:
            random.setstate(self._random[0])
            np.random.set_state(self._random[1])

    def memory(self, f: FlatFunction) -> list[Finding]:
        """Tell whether the value of ``f`` depends on what calls have left behind.

        It is called beside the point twice: from the state that calls at the point have left, and from the first one.
        """
        changed = [kept for kept in self._kept.values() if kept.changed()]
        if not changed:
            return []
        left = [kept.again() for kept in changed]
        x = (f.x + 0.01 * scale_of(f.x))[None]
        try:
            after = f(x)[0]
            for kept in changed:
                kept.restore()
            fresh = f(x)[0]
        except Exception:  # noqa: BLE001, of any type: the function need not be defined there
            return []
        finally:
            for kept in left:
                kept.restore()
        size = np.fmax(np.abs(after), np.abs(fresh))
        moved = np.abs(after - fresh)
        if not (moved > FEW_ULP * f.eps * size).any():
            return []
        k = int(np.nanargmax(moved))
        names = ", ".join(dict.fromkeys(kept.name for kept in changed))
        evidence = (
            f"the value depends on what earlier calls have left in {names}: at one point it is {after[k]:.6g} after "
            f"calls elsewhere, and {fresh[k]:.6g} as a first call"
        )
        remedy = "keep what a call remembers out of its value, or key it by the inputs"
        return [Finding("mutates_state", evidence, names, remedy)]

    def _visit(self, name: str, value: Any, depth: int) -> None:
        if id(value) in self._seen or depth > DEEPEST:
            return
        self._seen.add(id(value))
        if isinstance(value, functools.partial):
            for inner in (value.func, *value.args, *value.keywords.values()):
                self._visit(name, inner, depth)
        elif isinstance(value, types.MethodType):
            self._visit("self", value.__self__, depth)
            self._visit(name, value.__func__, depth)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value, depth)
        elif isinstance(value, np.ndarray):
            if value.nbytes <= self._room and value.flags.writeable and not value.dtype.hasobject:
                self._room -= value.nbytes
                self._kept[id(value)] = _Array(name, value)
        elif type(value) in (dict, list, set, bytearray):
            self._keep_container(name, value, depth)
        elif _is_plain_object(value):
            self._keep_container(name, value.__dict__, depth)
            self._visit(name, getattr(type(value), "__call__", None), depth)  # noqa: B004 - the method itself

    def _keep_container(self, name: str, value: Any, depth: int) -> None:
        self._kept[id(value)] = _Container(name, value)
        inner = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
        for key, each in list(inner):
            self._visit(f"{name}[{key!r}]", each, depth + 1)

    def _visit_function(self, function: types.FunctionType, depth: int) -> None:
        if (function.__module__ or "").partition(".")[0] in ("torch", "jax", "numpy", "scipy"):
            return
        code = function.__code__
        names = _names(code)
        self._draws = self._draws or "random" in names
        self.searches = self.searches or _searches(code)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._kept[id(cell)] = _Cell(name, cell)
            self._visit(name, _contents(cell), depth + 1)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._visit(f"a default of {function.__name__}", value, depth + 1)
        for name in names & function.__globals__.keys():
            self._kept[id(function.__globals__), name] = _Global(name, function.__globals__)
            self._visit(name, function.__globals__[name], depth + 1)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty still
        return _MISSING


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*map(_names, inner))


@functools.cache
def _searches(code: types.CodeType) -> bool:
    """Whether the code jumps backward to anything but the next item of a ``for`` loop."""
    at = {instruction.offset: instruction for instruction in dis.get_instructions(code)}
    back = [instruction for instruction in at.values() if "JUMP_BACKWARD" in instruction.opname]
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return any(at[jump.argval].opname != "FOR_ITER" for jump in back) or any(map(_searches, inner))


def _is_plain_object(value: Any) -> bool:
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)) or not hasattr(value, "__dict__"):
        return False
    foreign = ("torch", "jax", "jaxlib", "numpy", "scipy", "itertools", "functools", "threading")
    return not any(base.__module__.partition(".")[0] in foreign for base in type(value).__mro__)


class _Kept:
    """One thing that is put back."""

    def __init__(self, name: str, thing: Any) -> None:
        self.name, self.thing = name, thing
        self.saved = self.now()

    def now(self) -> Any:
        """The state that it is in, as a copy."""
        raise NotImplementedError

    def changed(self) -> bool:
        """Whether it is in another state than the saved one."""
        raise NotImplementedError

    def put(self) -> None:
        """Bring it into the saved state."""
        raise NotImplementedError

    def restore(self) -> None:
        """Put it back if it has changed."""
        if self.changed():
            self.put()

    def again(self) -> _Kept:
        """The same thing with its present state as the saved one."""
        return type(self)(self.name, self.thing)


class _Array(_Kept):
    def now(self) -> Any:
        return self.thing.copy()

    def changed(self) -> bool:
        return not (self.thing.shape == self.saved.shape and self.thing.tobytes() == self.saved.tobytes())

    def put(self) -> None:
        if self.thing.shape == self.saved.shape and self.thing.flags.writeable:
            self.thing[...] = self.saved


class _Container(_Kept):
    def now(self) -> Any:
        return self.thing.copy()

    def changed(self) -> bool:
        return _identities(self.thing) != _identities(self.saved)

    def put(self) -> None:
        self.thing.clear()
        self.thing.extend(self.saved) if isinstance(self.thing, (list, bytearray)) else self.thing.update(self.saved)


class _Cell(_Kept):
    def now(self) -> Any:
        return _contents(self.thing)

    def changed(self) -> bool:
        return _contents(self.thing) is not self.saved

    def put(self) -> None:
        if self.saved is not _MISSING:
            self.thing.cell_contents = self.saved


class _Global(_Kept):
    def now(self) -> Any:
        return self.thing.get(self.name, _MISSING)

    def changed(self) -> bool:
        return self.now() is not self.saved

    def put(self) -> None:
        self.thing[self.name] = self.saved


def _identities(holder: Any) -> list[Any]:
    if isinstance(holder, dict):
        return [*holder, *map(id, holder.values())]
    return [*holder] if isinstance(holder, (bytearray, set)) else [*map(id, holder)]

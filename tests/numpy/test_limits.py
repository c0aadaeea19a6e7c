"""What cannot be traced is refused with file and line, the input, and what to write instead; never silently wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special

import multigrad
from multigrad import Verdict, check_grad
from multigrad.backends import Options
from multigrad.errors import InvalidUse, Unsupported
from multigrad_numpy import NumpyBackend
from multigrad_numpy._tracing.table import TABLE

X = np.array([0.4, 0.7, 1.2])


class Holder:
    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = np.zeros(3)


class Foreign(list):  # its layout is not Python's own, so that it is not copied
    def __init__(self) -> None:
        super().__init__([0.0])
        self.buffer = np.zeros(3)


FOREIGN = Foreign()


def _float(x: Any) -> Any:
    return float(x[0]) * x


def _complex(x: Any) -> Any:
    return np.real(complex(x[0])) * x


def _text(x: Any) -> Any:
    return float(f"{x[0]}") * x


def _float64(x: Any) -> Any:
    return np.float64(x[0]) * x


def _asarray_as_float(x: Any) -> Any:
    return np.frombuffer(np.ascontiguousarray(x).tobytes())


def _foreign_buffer(x: Any) -> Any:
    FOREIGN.buffer[0] = x[0]
    return FOREIGN.buffer * x


def _foreign_out(x: Any) -> Any:
    return np.multiply(x, 2, out=FOREIGN.buffer)


def _foreign_in_place(x: Any) -> Any:
    FOREIGN.buffer += x
    return FOREIGN.buffer


def _foreign_copyto(x: Any) -> Any:
    np.copyto(FOREIGN.buffer, x)
    return FOREIGN.buffer * 1.0


def _no_rule(x: Any) -> Any:
    return scipy.special.pbdv(1.0, x)[0]


def _order_of_a_bessel_function(x: Any) -> Any:
    return scipy.special.jv(x, 1.0)


def _compiled_solver(x: Any) -> Any:
    return scipy.integrate.quad(lambda t: x[0] * t, 0, 1)[0] * x


def _view(x: Any) -> Any:
    return x.view(np.int64).astype(float)


def _shape(x: Any) -> Any:
    x.shape = (3, 1)
    return x


def _masked(x: Any) -> Any:
    return np.asarray(np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]).filled(0) * np.add(x, np.ma.masked_array(X)))


def _longdouble(x: Any) -> Any:
    return (x.astype(np.longdouble) * 2).astype(float)


def _full_svd(x: Any) -> Any:
    return np.linalg.svd(np.outer(x, x)[:2] + np.eye(2, 3))[2]


def _iterator(x: Any) -> Any:
    return np.array([v * 1.0 for v in np.nditer(x)])


LIMITS: dict[Callable[[Any], Any], str] = {
    _float: r"float\(\) of a value that depends on `inputs\[0\]` would drop its gradient",
    _complex: r"complex\(\) of a value that depends on `inputs\[0\]`",
    _text: r"str\(\) or f'\{x\}' of a value",
    _float64: r"would drop its gradient",
    _asarray_as_float: r"`.tobytes` of an array is not traceable",
    _foreign_buffer: "would drop its gradient",
    _foreign_out: "allocate the array inside the function",
    _foreign_in_place: "allocate the array inside the function",
    _foreign_copyto: "allocate the array inside the function",
    _no_rule: r"scipy.special.pbdv has no derivative rule; pass jac=, or multigrad.register_numpy\(scipy.special.pbdv",
    _order_of_a_bessel_function: "scipy.special.jv has no derivative by argument 0 here",
    _compiled_solver: "would drop its gradient",
    _view: r"x.view\(\) with another type is not traceable; convert with x.astype",
    _shape: r"assignment to x.shape is not traceable; write x = x.reshape",
    _masked: "a MaskedArray meets a traced value; use a plain ndarray",
    _longdouble: "longdouble",
    _full_svd: "pass full_matrices=False",
    _iterator: "",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", LIMITS, ids=lambda f: f.__name__)
def test_a_limit_is_refused_with_the_users_line(function: Callable[[Any], Any]) -> None:
    with pytest.raises(Unsupported, match=LIMITS[function]) as refused:
        NumpyBackend().flatten(function, (X,), Options())
    first = function.__code__.co_firstlineno
    place = re.match(re.escape(__file__) + r":(\d+): ", str(refused.value))
    assert place is not None and first < int(place[1]) <= first + 3


@pytest.mark.parametrize("function", [_float, _text, _float64], ids=lambda f: f.__name__)
def test_a_limit_of_the_trace_is_none_of_a_check_with_jac(function: Callable[[Any], Any]) -> None:
    report = check_grad(function, X, jac=lambda x: x[0] * np.eye(3) + np.outer(x, np.eye(3)[0]))
    assert report.verdict is Verdict.OK


def test_the_input_that_is_concerned_is_named() -> None:
    with pytest.raises(Unsupported, match=r"depends on `inputs\[1\]\[\"b\"\]` would"):
        NumpyBackend().flatten(lambda x, d: x * float(d["b"][0] * 2), (X, {"a": X, "b": X}), Options())
    with pytest.raises(Unsupported, match=r"depends on `inputs\[0\]` and `inputs\[1\]` would"):
        NumpyBackend().flatten(lambda x, y: x * float(x @ y), (X, X), Options())


def test_no_derivative_without_trace_and_jac() -> None:
    with pytest.raises(InvalidUse, match="trace=False"):
        check_grad(np.sum, X, trace=False)


def test_a_function_that_is_not_deterministic_is_told() -> None:
    rng = np.random.default_rng(0)
    report = check_grad(lambda x: x * rng.normal(), X, raise_exception=False)
    assert report.verdict is Verdict.INCONCLUSIVE and "nondeterministic_forward" in report.reason


@pytest.fixture
def wrong_rule() -> Iterator[None]:
    ufunc = scipy.special.struve
    multigrad.register_numpy(ufunc, lambda v, x: jnp.sin(x))
    yield
    del TABLE[ufunc]


@pytest.mark.usefixtures("wrong_rule")
def test_a_rule_with_another_value_is_found_out() -> None:
    with pytest.raises(
        Unsupported, match=r"tracer fidelity: at the point the trace gives .* for output\[0\] and NumPy"
    ):
        NumpyBackend().flatten(lambda x: scipy.special.struve(1.0, x), (X,), Options())


def test_a_rule_that_agrees_at_the_point_alone_is_found_out() -> None:
    multigrad.register_numpy(
        scipy.special.struve, lambda v, x: jnp.asarray(scipy.special.struve(1.0, X)) + x - jnp.asarray(X)
    )
    with pytest.raises(Unsupported, match="tracer fidelity: near the point"):
        NumpyBackend().flatten(lambda x: scipy.special.struve(1.0, x), (X,), Options())
    del TABLE[scipy.special.struve]


def test_a_registered_rule_is_used() -> None:
    import jax

    square = jax.custom_jvp(lambda v, x: jnp.asarray(scipy.special.struve(v, np.asarray(x))))
    square.defjvp(lambda p, t: (square(*p), (2 / np.pi - square(p[0] + 1, p[1])) * t[1]))
    multigrad.register_numpy(scipy.special.struve, square)
    report = check_grad(lambda x: scipy.special.struve(0, x), X)
    del TABLE[scipy.special.struve]
    assert report.verdict is Verdict.OK


def test_the_trace_runs_a_copy_that_ends_with_the_call() -> None:
    kept: list[Any] = []

    def remembers(x: Any) -> Any:
        kept.append(x)
        return x * 2

    before = len(kept)
    f = NumpyBackend().flatten(remembers, (X,), Options())
    plain = len(kept)
    f.vjp(np.eye(3))
    f(np.stack([X, X]))
    assert before == 0 and len(kept) == plain and all(type(x) is np.ndarray for x in kept)


def test_code_of_another_framework_is_named():
    with pytest.raises(multigrad.errors.InvalidUse, match="backend='jax'"):
        multigrad.check_grad(lambda x: jnp.sin(x), np.ones(2))

"""The copy of the user's function: what it sees, and that it leaves no trace."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import weakref
from typing import Any

import array_api_compat
import numpy as np

from multigrad import Verdict, check_grad
from multigrad.backends import Options
from multigrad_numpy import NumpyBackend
from multigrad_numpy._batching.batched import BatchArray
from multigrad_numpy._ducks.rebind import rebind

X = np.array([0.4, 0.7, 1.2])
COUNTER = 0


def test_array_api_style() -> None:
    def softmax(x: Any) -> Any:
        xp = array_api_compat.array_namespace(x)
        e = xp.exp(x - xp.max(x))
        out = xp.zeros(e.shape)
        out[...] = e / xp.sum(e)
        return xp.concat([out, xp.asarray(out[:1])])

    assert check_grad(softmax, X).verdict is Verdict.OK


def test_a_global_that_is_written_stays_the_users() -> None:
    def counts(x: Any) -> Any:
        global COUNTER
        COUNTER += 1
        return x * 2

    copy = rebind(counts, BatchArray)
    copy(X)
    copy(X)
    assert COUNTER == 0 and copy.__globals__["COUNTER"] == 2


def test_a_copied_function_is_garbage_like_any_other() -> None:
    big = np.zeros(10)

    def uses(x: Any) -> Any:
        return x + big[:3]

    copy = rebind(uses, BatchArray)
    copy(X)
    gone = weakref.ref(uses), weakref.ref(copy)
    del uses, copy
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_numpy_itself_is_not_changed() -> None:
    before = {name: id(value) for name, value in vars(np).items()}
    check_grad(lambda x: np.linalg.norm(np.array([x[0], x[1]])) * np.zeros(1), X)
    assert {name: id(value) for name, value in vars(np).items() if name in before} == before


def test_recursion_and_classes_within() -> None:
    def power(x: Any) -> Any:
        class Node:
            def __init__(self, depth: int) -> None:
                self.child = Node(depth - 1) if depth else None

            def value(self) -> Any:
                out = np.zeros(3)
                out[:] = x if self.child is None else self.child.value() * x
                return out

        return Node(3).value()

    f = NumpyBackend().flatten(power, (X,), Options())
    np.testing.assert_allclose(f.vjp(np.eye(3)), np.diag(4 * X**3), rtol=1e-14)


def test_jax_is_imported_when_a_trace_is_needed() -> None:
    code = """
        import sys
        import numpy as np
        import multigrad
        x = np.array([0.4, 0.7])
        multigrad.register_numpy(np.spacing, abs)
        assert multigrad.check_grad(lambda x: x**2, x, jac=lambda x: np.diag(2 * x))
        assert "jax" not in sys.modules
        assert multigrad.check_grad(lambda x: x**2, x)
        assert "jax" in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)

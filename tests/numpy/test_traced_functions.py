"""Every function of NumPy through the trace: NumPy's values, and the derivatives of NumPy's own function.

Cases at one point are traced together, a few dozen at a time, since most of the time goes into compiling.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multigrad_numpy._trace import trace
from tests.numpy.differences import jacobian, reals
from tests.numpy.surface import CASES, Case

TOGETHER = 40
Matrix = np.ndarray[Any, Any]


def _as_reals(out: Any) -> Any:
    parts = [jnp.stack([jnp.real(o), jnp.imag(o)], -1) if jnp.iscomplexobj(o) else o for o in jax.tree.leaves(out)]
    return jnp.concatenate([p.reshape(-1).astype(float) for p in parts])


def _differentiate(cases: list[Case]) -> tuple[list[Matrix], list[Matrix], list[Matrix]]:
    """Values, and Jacobians by forward and reverse mode, of several functions of the same point."""
    functions, x = [trace(case.function) for case in cases], cases[0].x
    row = reals(x)

    def together(flat: Any) -> Any:
        point = (flat[0::2] + 1j * flat[1::2] if x.dtype.kind == "c" else flat).reshape(x.shape)
        return [_as_reals(function(point)) for function in functions]

    with jax.enable_x64(True), np.errstate(all="ignore"):
        values, linear = jax.linearize(together, jnp.asarray(row))
        forward = jax.jit(jax.vmap(linear))(jnp.eye(row.size))
        transposed = jax.linear_transpose(linear, jnp.asarray(row))
        rows = [jnp.eye(v.size) for v in values]
        total = sum(v.size for v in values)
        pulled = jax.jit(jax.vmap(lambda u: transposed(jnp.split(u, np.cumsum([v.size for v in values])[:-1]))[0]))(
            jnp.eye(total)
        )
    ends = np.cumsum([len(r) for r in rows])
    return (
        [np.asarray(v) for v in values],
        [np.asarray(f).T for f in forward],
        np.split(np.asarray(pulled), ends[:-1]),
    )


@cache
def _group(point: str, number: int) -> tuple[list[Case], Any]:
    cases = [case for case in CASES if case.point == point][number * TOGETHER : (number + 1) * TOGETHER]
    return cases, _differentiate(cases)


def _result(case: Case) -> tuple[Matrix, Matrix, Matrix]:
    place = [c for c in CASES if c.point == case.point].index(case)
    try:
        cases, (values, forward, reverse) = _group(case.point, place // TOGETHER)
    except Exception:  # noqa: BLE001 - another of the group: this one alone
        values, forward, reverse = _differentiate([case])
        return values[0], forward[0], reverse[0]
    k = cases.index(case)
    return values[k], forward[k], reverse[k]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_value_and_jacobian(case: Case) -> None:
    with np.errstate(all="ignore"):
        value, expected = reals(case.function(case.x)), jacobian(case.function, case.x)
    traced, forward, reverse = _result(case)
    np.testing.assert_allclose(
        traced, value, rtol=1e-9, atol=1e-9 * np.max(np.abs(value), initial=0, where=np.isfinite(value))
    )
    scale = 1 + np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(forward, expected, rtol=1e-8, atol=1e-8 * scale)
    np.testing.assert_allclose(reverse, expected, rtol=1e-8, atol=1e-8 * scale)

"""The second opinion on a user's ``jac``: JAX's derivative of the same code, exact to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multigrad.backends import Array, place
from multigrad.errors import Unsupported
from multigrad.findings import Finding

if TYPE_CHECKING:
    from multigrad_numpy._function import NumpyFunction

# Two derivatives by arithmetic alone: what rounding leaves between them.
_EXACT = 1e-9


def second_opinion(function: NumpyFunction, analytical: Array, numeric: Array, wrong: Any) -> list[Finding]:
    """Say which side of a mismatch the derivative of a trace agrees with, and how far off the user's is.

    Args:
        function: the flat function.
        analytical: the user's Jacobian, shape (m, n).
        numeric: the numerical one, likewise.
        wrong: the entries on which they disagree, likewise.

    Returns:
        One note; none where the function can't be traced.
    """
    try:
        exact = function.trace.matrix
    except Unsupported:
        return []
    with np.errstate(all="ignore"):
        off = np.abs(analytical - exact) / np.maximum(np.abs(exact), np.abs(analytical))
    i, j = np.unravel_index(np.argmax(np.where(wrong, np.nan_to_num(off, nan=np.inf), -1.0)), off.shape)
    where = f"{place(function.outputs, int(i))} by {place(function.inputs, int(j))}"
    seen = f"traced by JAX, fn has the derivative {exact[i, j]:.17g} there"
    if abs(analytical[i, j] - exact[i, j]) <= _EXACT * abs(exact[i, j]):
        return [Finding("diagnosis", f"{seen}: it agrees with jac, not with the numerical {numeric[i, j]:.6g}", where)]
    return [
        Finding(
            "diagnosis",
            f"{seen}: it agrees with the numerical side; jac's {analytical[i, j]:.17g} is off by "
            f"{abs(analytical[i, j] - exact[i, j]):.3g}, relative error {off[i, j]:.3g}",
            where,
        )
    ]


def refuse_wrong_trace(function: NumpyFunction, analytical: Array, numeric: Array, wrong: Any) -> list[Finding]:
    """Give up a trace whose own derivative, the only one under test, is not that of NumPy's values.

    Where the user registered rules, those are under test as well, and a mismatch is what it is.

    Raises:
        Unsupported: the trace is at fault, which says nothing of the user's code.
    """
    if function.trace.uses_registered:
        return []
    i, j = np.argwhere(wrong)[0]
    raise Unsupported(
        f"tracer fidelity: by the trace d {place(function.outputs, int(i))} / d {place(function.inputs, int(j))} is "
        f"{analytical[i, j]:.9g}, by NumPy's values {numeric[i, j]:.9g}, so the trace is not used: something hides the "
        "dependence from JAX, such as a search that ends by branches, numbers that go through text or rounding, "
        "cancellation, or a point where the function is singular; pass jac="
    )

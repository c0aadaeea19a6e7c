"""Every function of NumPy through the batched array: the values of the rows one by one."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad.backends import Options
from multigrad_numpy import NumpyBackend
from tests.numpy.surface import CASES, Case


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_together_are_rows_one_by_one(case: Case) -> None:
    with np.errstate(all="ignore"):
        f = NumpyBackend().flatten(case.function, (case.x,), Options(jac=lambda x: x))
        rows = f.x + 1e-4 * np.random.default_rng(0).normal(size=(5, f.x.size))
        one_by_one = np.concatenate([f(row[None]) for row in rows])
        together = f(rows)
    scale = np.max(np.abs(one_by_one), initial=0, where=np.isfinite(one_by_one))
    np.testing.assert_allclose(together, one_by_one, rtol=1e-13, atol=1e-13 * scale)

"""Inputs and outputs without entries: nothing to compare is nothing wrong."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad._run import Settings, run_check
from tests.flat import Flat


@pytest.mark.parametrize("modes", [("reverse",), ("forward",), ("reverse", "forward")])
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (1, 0), (20, 0), (40, 0)])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_nothing_to_compare(n, m, modes, value):
    f = Flat(lambda X: np.full((len(X), m), value), np.ones(n), np.zeros((m, n)))
    report = run_check(f, Settings(modes=modes))
    assert report.verdict == "ok"
    assert [leg.status.shape for leg in report.legs] == [(m, n)] * len(report.legs)
    assert report.legs

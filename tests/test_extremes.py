"""Values so small or large that their squares are beyond the range of a double."""

from __future__ import annotations

import numpy as np
import pytest

from tests.flat import check_flat

X = np.array([0.7, -0.4])
EXPONENTS = np.array([[3.0, 1.0], [-2.0, 5.0]])


def rounded(X, scale):
    """Sums of exponentials that carry a few hundred roundings each, as a softmax far from its maximum does."""
    z = X[:, None, :] * EXPONENTS + 400.0
    return scale * np.exp(z - 400.0).sum(axis=2)


@pytest.mark.parametrize("scale", [1e-280, 1e-170, 1e-154, 1.0, 1e154, 1e170, 1e280])
@pytest.mark.parametrize("seed", range(3))
def test_noise_is_seen_at_any_size(scale, seed):
    J = scale * EXPONENTS * np.exp(EXPONENTS * X)
    right = check_flat(lambda X: rounded(X, scale), X, J, seed)
    assert right.verdict == "ok"
    (leg,) = right.legs
    assert (np.abs(leg.numeric - J) <= 2 * leg.bar + 1e-9 * np.abs(J)).all()
    wrong = check_flat(lambda X: rounded(X, scale), X, J * (1 + 1e-4 * np.eye(2)), seed)
    assert wrong.verdict == "mismatch"


def test_at_the_end_of_the_range_it_cannot_be_told():
    x = np.array([709.6])
    report = check_flat(lambda X: np.exp(np.minimum(X, 709.7)), x, np.exp(x)[:, None], 0)
    assert report.verdict == "inconclusive"

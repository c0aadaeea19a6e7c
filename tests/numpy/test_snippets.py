"""Imperative code through the trace and through the batched array: same values, right derivatives, nothing changed."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from multigrad.backends import Options
from multigrad.errors import Unsupported
from multigrad_numpy import NumpyBackend
from tests.numpy import snippets
from tests.numpy.differences import jacobian
from tests.numpy.snippets import SNIPPETS, X, name_of


@pytest.mark.parametrize("function", SNIPPETS, ids=name_of)
def test_the_derivative_is_that_of_numpys_own_function(function: Any) -> None:
    expected = jacobian(function, X)
    f = NumpyBackend().flatten(function, (X,), Options())
    size = 1 + np.max(np.abs(expected))
    np.testing.assert_allclose(f.vjp(np.eye(len(expected))), expected, rtol=1e-9, atol=1e-9 * size)
    np.testing.assert_allclose(f.jvp(np.eye(4)).T, expected, rtol=1e-9, atol=1e-9 * size)


TAKE_TURNS_OF_THEIR_OWN = [snippets.newton_with_while]  # the number of steps differs from row to row


@pytest.mark.parametrize("function", [s for s in SNIPPETS if s not in TAKE_TURNS_OF_THEIR_OWN], ids=name_of)
def test_rows_together_are_rows_one_by_one(function: Any) -> None:
    f = NumpyBackend().flatten(function, (X,), Options(jac=lambda x: x))
    rows = X + 1e-5 * np.random.default_rng(0).normal(size=(6, 4))
    one_by_one = np.concatenate([f(row[None]) for row in rows])
    np.testing.assert_allclose(f(rows), one_by_one, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("function", TAKE_TURNS_OF_THEIR_OWN, ids=name_of)
def test_rows_that_diverge_are_refused(function: Any) -> None:
    f = NumpyBackend().flatten(function, (X,), Options(jac=lambda x: x))
    with pytest.raises(Unsupported, match="differs from row to row"):
        f(X + 1e-3 * np.random.default_rng(0).normal(size=(6, 4)))


def test_nothing_of_the_users_is_changed() -> None:
    before = copy.deepcopy((snippets.WEIGHTS, snippets.TABLE, vars(snippets.MODEL), snippets.Layer.bias))
    for function in (snippets.constant_matrix_copied_and_changed, snippets.an_object_with_state):
        f = NumpyBackend().flatten(function, (X,), Options())
        plain = copy.deepcopy(vars(snippets.MODEL))  # what the plain calls themselves left
        f.vjp(np.eye(2))
        f(np.stack([X, X * 2, X * 3]))
        assert repr(vars(snippets.MODEL)) == repr(plain)
    after = (snippets.WEIGHTS, snippets.TABLE, vars(snippets.MODEL), snippets.Layer.bias)
    assert repr(before[0:2]) == repr(after[0:2]) and repr(before[3]) == repr(after[3])

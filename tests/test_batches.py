"""Batches: vectorised where that gives the same, one by one where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad.batches import DOUBLES, MOST, Batched
from multigrad.errors import Defect, Unsupported
from multigrad.findings import Finding


class Recorder:
    """A function of rows that writes down how many it was given at once."""

    def __init__(self, f):
        self.f, self.sizes = f, []

    def __call__(self, X):
        self.sizes.append(len(X))
        return self.f(X)


def rows(b, n=3):
    return np.random.default_rng(b).normal(size=(b, n))


@pytest.mark.parametrize("b", [0, 1, 2, 100, 3 * MOST + 5])
def test_rows_come_back_in_order(b):
    f = Recorder(np.sin)
    batched = Batched(f, 3)
    np.testing.assert_array_equal(batched(rows(b)), np.sin(rows(b)))
    assert not batched.why_looped and batched.raised is None
    assert sum(f.sizes) == batched.rows


def test_batches_are_bounded_and_of_equal_length():
    f = Recorder(np.sin)
    Batched(f, 1000, compared=False)(rows(1000, 1000))
    assert len(set(f.sizes)) <= 2 and max(f.sizes) - min(f.sizes) <= 1
    assert max(f.sizes) * 1000 <= DOUBLES


def test_what_the_batch_changes_is_done_row_by_row():
    batched = Batched(lambda X: X * len(X), 3)
    np.testing.assert_array_equal(batched(rows(50)), rows(50))
    assert "differ" in batched.why_looped


def test_a_batch_that_cannot_be_done_is_done_row_by_row():
    def f(X):
        if len(X) > 1:
            raise TypeError("no rows\nplease")
        return X

    batched = Batched(f, 3)
    np.testing.assert_array_equal(batched(rows(9)), rows(9))
    assert batched.why_looped == "TypeError: no rows" and batched.raised is None


def test_unsupported_says_why_in_its_own_words():
    def f(X):
        if len(X) > 1:
            raise Unsupported("not today")
        return X

    batched = Batched(f, 3)
    batched(rows(9))
    assert batched.why_looped == "not today"


def raises_where_negative(X):
    if (X < 0).any():
        raise ValueError("negative")
    return np.sqrt(X)


def test_rows_at_which_the_function_raises_are_nan():
    batched = Batched(raises_where_negative, 1)
    values = batched(np.array([[4.0], [-1.0], [9.0]]))
    np.testing.assert_array_equal(values, [[2.0], [np.nan], [3.0]])
    assert isinstance(batched.raised, ValueError)
    assert not batched.why_looped  # the points are at fault, not the vectorisation


def test_unless_that_is_not_wanted():
    with pytest.raises(ValueError, match="negative"):
        Batched(raises_where_negative, 1, lenient=False)(np.array([[4.0], [-1.0]]))


def test_a_defect_is_remembered_before_other_errors():
    def f(X):
        if (X < 0).any():
            raise ValueError("negative")
        raise Defect(Finding("wrong_shape", "another shape"))

    batched = Batched(f, 1)
    batched(np.array([[-1.0], [2.0], [-3.0]]))
    assert isinstance(batched.raised, Defect)


def test_nan_and_infinity_count_as_equal():
    batched = Batched(np.log, 1)
    with np.errstate(all="ignore"):
        values = batched(np.array([[-1.0], [0.0], [1.0]]))
    np.testing.assert_array_equal(values, [[np.nan], [-np.inf], [0.0]])
    assert not batched.why_looped


def test_an_infinite_value_hides_nothing():
    batched = Batched(lambda X: np.where(X > 0, X * len(X), -np.inf), 3)
    X = np.abs(rows(9))
    X[:, 0] = -1.0
    np.testing.assert_array_equal(batched(X), np.where(X > 0, X, -np.inf))
    assert "differ" in batched.why_looped

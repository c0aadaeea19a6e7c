import warnings

import numpy as np
import pytest
import torch
from torch import nn

from .flattening import flatten, real


def rows(f, count=3):
    return f.x + 0.01 * np.random.default_rng(0).standard_normal((count, len(f.x)))


REFUSED = {
    "item": lambda x: x * 2 if x[0].item() > 0 else x * 3,
    "if": lambda x: x * 2 if x[0] > 0 else x * 3,
    "mask": lambda x: x[x > -100],
    "numpy": lambda x: torch.from_numpy(np.sin(x.detach().numpy())),
    "new tensor": lambda x: torch.zeros(2, dtype=torch.float64).index_put_((torch.tensor([0]),), x[:1]),
    "lstm": nn.LSTM(3, 2, dtype=torch.float64),
    "batch norm": nn.BatchNorm1d(3, dtype=torch.float64),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_vmap_refuses_is_raised_and_done_row_by_row(name):
    f = flatten(REFUSED[name], real(3) if name not in ("lstm", "batch norm") else real(2, 3))
    with pytest.raises(RuntimeError):
        f(rows(f))
    np.testing.assert_array_equal(f(f.x[None])[0], f.repeats[0])


def test_leaves_that_vary_and_leaves_that_do_not():
    shapes = []

    def fn(x, y):
        shapes.append(torch._C._functorch.is_batchedtensor(x))
        return x * y

    f = flatten(fn, real(2), real(2))
    X = np.repeat(f.x[None], 3, 0)
    X[:, 2:] += np.arange(3)[:, None]
    shapes.clear()
    np.testing.assert_array_equal(f(X), X[:, :2] * X[:, 2:])
    assert shapes == [False]
    np.testing.assert_array_equal(f(X[[0, 0]]), f.repeats[[0, 0]])


def test_writing_one_leaf_into_another():
    def fn(x, y):
        z = x.clone()
        z[0] = y[0]
        return z

    f = flatten(fn, real(2), real(1))
    X = np.repeat(f.x[None], 3, 0)
    X[:, 2] = range(3)
    np.testing.assert_array_equal(f(X), X[:, [2, 1]])


def test_random_functions_draw_the_same_in_every_row():
    f = flatten(lambda x: x * torch.rand(2), real(2))
    X = rows(f)
    np.testing.assert_array_equal(f(X), [f(x[None])[0] for x in X])


def test_warnings_about_speed_are_kept_quiet():
    f = flatten(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True, dtype=torch.float64), real(1, 3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = rows(f)
        np.testing.assert_allclose(f(X), [f(x[None])[0] for x in X], rtol=1e-12)
        f.vjp(np.eye(12))


def test_the_rows_that_come_in_are_not_written_to():
    f = flatten(lambda x: x.mul_(2), real(2))
    X = rows(f)
    before = X.copy()
    f(X)
    f(X[:1])
    X.flags.writeable = False
    f(X[::2])
    f(X[:1])
    np.testing.assert_array_equal(X, before)


def test_strided_leaves_keep_their_strides_under_vmap():
    seen = []

    def fn(x):
        seen.append(x.stride())
        return x * 2

    x = real(4, 6)[:, ::2]
    f = flatten(fn, x)
    X = rows(f)
    np.testing.assert_allclose(f(X), 2 * X)
    assert set(seen) == {x.stride()}

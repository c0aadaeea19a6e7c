import numpy as np
import pytest
import torch

from multigrad import check_grad
from multigrad.errors import Unsupported

from .flattening import flatten, numerical, real, reverse

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


def matrix():
    a = real(4, 4)
    a[0, 1] = a[3, 0] = 0
    a[2] = 0
    return a


LAYOUTS = {
    "coo": lambda a: a.to_sparse(),
    "csr": lambda a: a.to_sparse_csr(),
    "csc": lambda a: a.to_sparse_csc(),
    "bsr": lambda a: a.to_sparse_bsr((2, 2)),
    "bsc": lambda a: a.to_sparse_bsc((2, 2)),
    "hybrid": lambda a: torch.stack([a, a], -1).to_sparse(2),
    "duplicates": lambda a: torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], a.flatten()[4:7], (2, 2)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_stored_values_are_the_entries(name):
    s = LAYOUTS[name](matrix())
    layouts = set()

    def fn(s):
        layouts.add(s.layout)
        return (s.to_dense() ** 2).sum(0)

    f = flatten(fn, s)
    stored = s._values() if s.layout == torch.sparse_coo else s.values()
    assert f.inputs[0].path == "inputs[0].values()"
    assert f.inputs[0].shape == tuple(stored.shape)
    np.testing.assert_array_equal(f.x, stored.flatten().numpy())
    np.testing.assert_allclose(reverse(f), numerical(f), atol=1e-9)
    assert layouts == {s.layout}
    assert f.findings == []
    with pytest.raises(Unsupported):
        f.jvp(np.ones((1, len(f.x))))


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_stored_values_in_low_precision(name, dtype):
    s = LAYOUTS[name](matrix().to(dtype))
    assert check_grad(lambda s: (s.to_dense().float() ** 2).sum(0), s, raise_exception=False)


def test_sparse_times_dense():
    f = flatten(torch.sparse.mm, matrix().to_sparse(), real(4, 2))
    np.testing.assert_allclose(reverse(f), numerical(f), atol=1e-9)


def test_a_fixed_sparse_input_is_handed_out_as_a_copy():
    s, x = matrix().to_sparse(), real(4, 2).requires_grad_()
    f = flatten(torch.sparse.mm, s, x)
    assert list(f.fixed) == ["inputs[0] (no requires_grad)"]
    np.testing.assert_allclose(reverse(f), numerical(f), atol=1e-9)
    assert f.findings == []


def test_stored_values_written_to():
    f = flatten(lambda s: s.mul_(2).to_dense(), matrix().to_sparse())
    assert [(x.kind, x.where) for x in f.findings] == [("mutates_input", "inputs[0].values()")]

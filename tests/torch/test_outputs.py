import numpy as np
import pytest
import torch

from multigrad import check_grad
from multigrad.errors import Defect, InvalidUse

from .flattening import flatten, imaginary, real, reverse


def test_leaves_of_nested_outputs():
    def fn(x):
        return {"a": x * 2, "b": [x.sum(), None, 3, 2.5, "s", x > 0], "z": x * 1j}

    f = flatten(fn, real(2))
    assert [(o.path, o.shape, o.dtype, o.start, o.attached) for o in f.outputs] == [
        ('output["a"]', (2,), "float64", 0, True),
        ('output["b"][0]', (), "float64", 2, True),
        ('output["b"][3]', (), "float64", 3, False),
        ('output["z"]', (2,), "complex128", 4, True),
    ]
    x = f.x
    np.testing.assert_allclose(f(x[None])[0], [*(2 * x), x.sum(), 2.5, 0, x[0], 0, x[1]])
    jacobian = [[2, 0], [0, 2], [1, 1], [0, 0], [0, 0], [1, 0], [0, 0], [0, 1]]
    np.testing.assert_allclose(reverse(f), jacobian)
    np.testing.assert_allclose(f.vjp(np.eye(8)), jacobian)
    np.testing.assert_allclose(f.jvp(np.eye(2)), np.transpose(jacobian))


@pytest.mark.parametrize(
    ("returned", "words"), [(None, "returned None"), ((), "returned ()"), (3, "int"), ({"k": "s"}, "dict of str")]
)
def test_no_output(returned, words):
    with pytest.raises(InvalidUse, match="no floating or complex tensor") as caught:
        flatten(lambda x: returned, real(2))
    assert caught.value.kind == "no_output"
    assert words in str(caught.value)


def test_integer_outputs_are_no_outputs_and_the_text_says_so():
    with pytest.raises(InvalidUse, match=r"torch\.int64 tensor"):
        flatten(lambda x: x.argmax(), real(3))


def view_without_a_graph(x):
    y = x * 2
    with torch.no_grad():
        return y[:2]


class HandsOutViews(torch.autograd.Function):
    """Its backward has no graph, and returns views of what has one."""

    @staticmethod
    def forward(ctx, x, y):
        return torch.cat([x, y])

    @staticmethod
    def backward(ctx, g):
        with torch.no_grad():
            return g[:2], g[2:]


def test_views_made_without_a_graph_are_detached():
    assert check_grad(view_without_a_graph, real(3), raise_exception=False).verdict == "mismatch"
    report = check_grad(HandsOutViews.apply, (real(2), real(1)), order=2, raise_exception=False)
    assert report.second.verdict == report.verdict == "mismatch"
    assert not [leg for leg in report.legs if leg.verdict == "mismatch"]


def test_detached_outputs_have_no_gradient():
    f = flatten(lambda x: (x * 2, x.detach() * 3), real(2))
    assert [leaf.attached for leaf in f.outputs] == [True, False]
    np.testing.assert_array_equal(reverse(f)[2:], 0)
    g = flatten(lambda x: x.detach() * 3, real(2))
    np.testing.assert_array_equal(g.vjp(np.ones((3, 2))), np.zeros((3, 2)))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[x > 0],
        lambda x: x.float() if x[0] < 0 else x,
        lambda x: (x, x) if x[0] < 0 else x,
        lambda x: None if x[0] < 0 else x,
    ],
    ids=["shape", "dtype", "structure", "nothing"],
)
def test_shape_depends_on_value(fn):
    f = flatten(fn, torch.tensor([1.0, 2.0], dtype=torch.float64))
    with pytest.raises(Defect) as caught:
        f(np.array([[-1.0, 2.0]]))
    assert caught.value.kind == "shape_depends_on_value"
    assert "float64 [2]" in caught.value.finding.evidence
    np.testing.assert_array_equal(f(f.x[None])[0], f.x)


def test_results_share_no_memory_with_anything():
    kept = real(2)
    f = flatten(lambda x: (x, kept), real(2))
    value = f(f.x[None])
    value[:] = 0
    f.x[:] = f.x
    assert kept.abs().min() > 0
    assert f(f.x[None]).all()


def test_sparse_outputs_count_as_dense():
    x = real(2, 2)
    f = flatten(lambda x: x.to_sparse(), x)
    np.testing.assert_array_equal(f.repeats[0], x.flatten().numpy())
    np.testing.assert_array_equal(reverse(f), np.eye(4))


def test_numpy_and_python_numbers_are_outputs_without_a_graph():
    f = flatten(lambda x: (x.sum(), np.float64(2.0), 1 + 2j, np.ones(2)), real(2))
    assert [leaf.attached for leaf in f.outputs] == [True, False, False, False]
    np.testing.assert_array_equal(f.repeats[0][1:], [2, 1, 2, 1, 1])


def test_complex_views_are_resolved():
    z = imaginary(2)
    f = flatten(lambda z: (z.conj(), z.conj().imag), z)
    pairs = z.numpy().view(float).reshape(2, 2) * [1, -1]
    np.testing.assert_array_equal(f.repeats[0], [*pairs.flatten(), *pairs[:, 1]])

import numpy as np
import pytest
import torch

from multigrad.errors import InvalidUse

from .flattening import flatten, imaginary, real, reverse


def test_only_leaves_with_requires_grad_are_checked_if_any_has_it():
    f = flatten(lambda a, b, n: a * b * n, real(2).requires_grad_(), real(2), 3)
    assert [leaf.path for leaf in f.inputs] == ["inputs[0]"]
    assert list(f.fixed) == ["inputs[1] (no requires_grad)", "inputs[2] (int)"]


def test_all_floating_leaves_are_checked_if_none_requires_grad():
    f = flatten(
        lambda d, i, *_: d["a"][i] * d["b"].real, {"a": real(2), "b": imaginary(2)}, torch.tensor([1, 0]), None, "s"
    )
    assert [leaf.path for leaf in f.inputs] == ['inputs[0]["a"]', 'inputs[0]["b"]']
    assert [leaf.start for leaf in f.inputs] == [0, 2]
    assert list(f.fixed) == ["inputs[1] (int64)", "inputs[2] (None)", "inputs[3] (str)"]


def test_x_holds_complex_numbers_as_pairs():
    z = imaginary(2)
    f = flatten(lambda z: z, z)
    np.testing.assert_array_equal(f.x, torch.view_as_real(z).flatten().numpy())
    np.testing.assert_array_equal(f(f.x[None])[0], f.x)


@pytest.mark.parametrize(
    "x",
    [
        real(3).expand(4, 3),
        real(8).as_strided((3, 4), (1, 1)),
        real(4, 6)[:, ::2],
        real(4, 6).T,
        real(1, 2, 3, 3).to(memory_format=torch.channels_last),
        real(),
        real(0, 3),
        imaginary(3).conj(),
        imaginary(3).imag,
    ],
    ids=["expanded", "overlapping", "gaps", "transposed", "channels_last", "scalar", "empty", "conjugate", "part"],
)
def test_layouts(x):
    seen = []

    def square(x):
        seen.append((x.stride(), x.shape))
        return x * x

    before = x.clone()
    f = flatten(square, x)
    point = torch.view_as_real(x.resolve_conj()).flatten() if x.is_complex() else x.flatten()
    np.testing.assert_array_equal(f.x, point.numpy())
    overlapping = x.stride() in [(0, 1), (1, 1)]
    assert seen[0] == ((4, 1) if overlapping and x.shape == (3, 4) else (3, 1) if overlapping else x.stride(), x.shape)
    if not x.is_complex():
        np.testing.assert_allclose(reverse(f) if f.x.size else np.zeros((0, 0)), np.diag(2 * f.x), rtol=1e-15)
    assert torch.equal(x, before)


def test_one_tensor_passed_twice_is_two_leaves():
    x = real(2)
    f = flatten(lambda a, b: a * b.exp(), x, x)
    a = x.numpy()
    np.testing.assert_allclose(reverse(f), np.hstack([np.diag(np.exp(a)), np.diag(a * np.exp(a))]), rtol=1e-14)


def test_parameters_stay_parameters():
    def fn(p, q):
        assert isinstance(p, torch.nn.Parameter)
        assert p.requires_grad
        assert p.is_leaf
        assert not q.is_leaf
        return p * q

    base = real(2).requires_grad_()
    flatten(fn, torch.nn.Parameter(real(2)), base * 2)


def test_a_subclass_stays_one():
    class Metres(torch.Tensor):
        pass

    def fn(x):
        assert isinstance(x, Metres)
        return (x * x).as_subclass(torch.Tensor)

    x = real(3).as_subclass(Metres)
    np.testing.assert_allclose(reverse(flatten(fn, x)), np.diag(2 * x.as_subclass(torch.Tensor).numpy()))


class Imitation:
    requires_grad = True

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.empty(2, device="meta"), "meta tensor"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "quantized"),
        (lambda: torch.ones(2, 2).to_mkldnn(), "MKLDNN"),
        (lambda: torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged), "nested"),
        (Imitation, "Imitation"),
    ],
    ids=["meta", "quantized", "mkldnn", "nested", "imitation"],
)
def test_exotic_tensors_are_refused(make, words):
    with pytest.raises(InvalidUse, match=words) as caught:
        flatten(lambda x, y: x, real(2), make())
    assert caught.value.kind == "unsupported_tensor"
    assert "inputs[1]" in str(caught.value)


def test_nothing_to_differentiate():
    with pytest.raises(InvalidUse, match=r"inputs\[0\] \(int64\)") as caught:
        flatten(lambda x: x * 1.0, torch.tensor([1, 2]))
    assert caught.value.kind == "no_differentiable_input"
    with pytest.raises(InvalidUse, match="there are no inputs"):
        flatten(lambda: real(2))


def test_fixed_tensors_and_arrays_are_handed_out_as_copies():
    n, a = torch.tensor([1, 2]), np.ones(2)

    def fn(x, n, a):
        n.add_(1)
        a += 1
        return x * n

    f = flatten(fn, real(2), n, a)
    assert n.tolist() == [1, 2]
    assert a.tolist() == [1, 1]
    assert {(x.kind, x.where) for x in f.findings} == {("mutates_input", "inputs[1]"), ("mutates_input", "inputs[2]")}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_low_precision_is_evaluated_in_float64(dtype):
    f = flatten(lambda x, y: x * y, real(2).to(dtype), real(2))
    assert (f.eps, f.inputs[0].dtype) == (2**-52, str(dtype).removeprefix("torch."))
    assert [finding.kind for finding in f.findings] == ["promotion"] * (dtype != torch.float64)


def test_a_view_that_reaches_beyond_its_part_is_told_why_it_fails():
    part = real(6)[:3].requires_grad_()
    with pytest.raises(RuntimeError, match="storage") as caught:
        flatten(lambda x: torch.as_strided(x, (2, 2), (3, 1)), part)
    assert "inputs[0] is a part of a larger tensor" in caught.value.__notes__[0]

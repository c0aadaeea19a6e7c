import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from multigrad import check_grad
from multigrad.errors import InvalidUse
from multigrad_torch._data.captures import reached

from .flattening import flatten, forward, numerical, real, reverse

GLOBAL = nn.Linear(2, 2, dtype=torch.float64)
WEIGHT = real(2).requires_grad_()


def uses_global(x):
    return GLOBAL(x)


def paths(f):
    return [leaf.path for leaf in f.inputs]


def agrees(f):
    jacobian = numerical(f)
    np.testing.assert_allclose(reverse(f), jacobian, atol=1e-9)
    np.testing.assert_allclose(forward(f), jacobian, atol=1e-9)


def test_a_module_has_its_parameters_checked():
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    module[2].bias.requires_grad_(False)
    f = flatten(module, real(2, 2))
    assert paths(f) == ["inputs[0]", 'params["0.weight"]', 'params["0.bias"]', 'params["2.weight"]']
    agrees(f)
    np.testing.assert_allclose(f(f.x + np.eye(len(f.x))), [f((f.x + e)[None])[0] for e in np.eye(len(f.x))], rtol=1e-12)
    np.testing.assert_allclose(f.jvp(np.eye(len(f.x))).T, reverse(f), atol=1e-12)


def test_a_module_of_integers_needs_no_input():
    f = flatten(nn.Embedding(3, 2, dtype=torch.float64, sparse=True), torch.tensor([1, 1, 0]))
    assert paths(f) == ['params["weight"]']
    agrees(f)


class Holder:
    def __init__(self):
        self.scale = real(2).requires_grad_()

    def method(self, x):
        return x * self.scale

    def __call__(self, x):
        return self.method(x)


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (uses_global, ['params["GLOBAL.weight"]', 'params["GLOBAL.bias"]']),
        (lambda x: uses_global(x), ['params["uses_global.GLOBAL.weight"]', 'params["uses_global.GLOBAL.bias"]']),
        (partial(torch.mul, real(2).requires_grad_()), ['params["[0]"]']),
        (Holder().method, ['params["scale"]']),
        (Holder(), ['params["scale"]']),
        (lambda x, w=WEIGHT: x * w, ['params["w"]']),
        (lambda x, *, w=WEIGHT: x * w, ['params["w"]']),
        (GLOBAL.forward, ['params["self.weight"]', 'params["self.bias"]']),
    ],
    ids=["global", "helper", "partial", "method", "object", "default", "keyword", "bound"],
)
def test_captured(fn, expected):
    f = flatten(fn, real(2), params="captured")
    assert paths(f)[1:] == [path for path in expected]
    agrees(f)


def test_captured_in_closures_and_containers():
    w, layers = real(2).requires_grad_(), {"a": GLOBAL, "n": 3}
    f = flatten(lambda x: layers["a"](x) * w, real(2), params="captured")
    assert set(paths(f)[1:]) == {'params["w"]', 'params["layers["a"].weight"]', 'params["layers["a"].bias"]'}
    agrees(f)
    with pytest.raises(RuntimeError, match="one by one"):
        f(np.stack([f.x, f.x + 1]))


def test_a_parameter_held_twice_is_seen_by_both_holders():
    module = nn.Linear(2, 2, bias=False, dtype=torch.float64)
    w = module.weight
    f = flatten(lambda x: module(x) * w.sum(), real(2), params="captured")
    assert len(f.inputs) == 2
    agrees(f)


def test_a_pytree_of_tensors_without_requires_grad():
    w = {"k": real(2), "c": [real(1, seed=1)]}
    f = flatten(lambda x: x * w["k"] + w["c"][0], real(2), params=w)
    assert paths(f) == ["inputs[0]", 'params["k"]', 'params["c"][0]']
    agrees(f)
    assert not w["k"].requires_grad


def test_an_iterator_of_parameters_and_a_module():
    assert len(flatten(uses_global, real(2), params=GLOBAL.parameters()).inputs) == 3
    assert paths(flatten(uses_global, real(2), params=GLOBAL))[1:] == ['params["weight"]', 'params["bias"]']


@pytest.mark.parametrize("params", ["all", [3], {"n": torch.tensor(1)}])
def test_params_that_mean_nothing(params):
    with pytest.raises(InvalidUse) as caught:
        flatten(lambda x: x, real(2), params=params)
    assert caught.value.kind == "bad_params"


def test_captured_custom_function_sees_the_exchanged_weight():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, g * x * 3

    w = real(2).requires_grad_()
    f = flatten(lambda x: Scale.apply(x, w), real(2), params="captured")
    np.testing.assert_allclose(numerical(f)[:, 2:], np.diag(f.x[:2]), atol=1e-9)
    np.testing.assert_allclose(reverse(f)[:, 2:], np.diag(3 * f.x[:2]))


@pytest.mark.parametrize("wrap", [lambda apply: apply, lambda apply: lambda x: apply(x)], ids=["bare", "called"])
def test_what_a_custom_function_captures_is_found_and_gets_no_gradient(wrap):
    w = real(2).requires_grad_()

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g * w

    fn = wrap(Scale.apply)
    assert len(flatten(fn, real(2), params="captured").inputs) == 2
    assert check_grad(fn, real(2), params="captured", raise_exception=False).verdict == "mismatch"


def test_nonleaf_captures():
    base = real(2).requires_grad_()
    w = base * 2
    f = flatten(lambda x: x * w, real(2), params="captured")
    assert paths(f)[1:] == ['params["w"]']
    np.testing.assert_allclose(reverse(f)[:, 2:], np.diag(f.x[:2]))


class Hidden:
    """Keeps a module where looking through captures does not find it."""

    def __init__(self, module):
        self.box = [[[module]]]

    def __call__(self, x):
        return self.box[0][0][0](x)


def test_a_module_that_is_named_need_not_be_found():
    f = flatten(Hidden(GLOBAL), real(2), params=GLOBAL)
    agrees(f)
    X = f.x + np.eye(len(f.x))
    np.testing.assert_allclose(f(X), [f(x[None])[0] for x in X], rtol=1e-12)


def test_forward_rows_at_once_are_not_trusted_where_a_reference_is_hidden():
    holder = Hidden(nn.Linear(2, 2, bias=False, dtype=torch.float64))
    other = nn.Linear(2, 2, dtype=torch.float64)
    other.weight = holder.box[0][0][0].weight
    f = flatten(lambda x: holder(other(x)), real(2), params=other)
    agrees(f)
    with pytest.raises(RuntimeError, match="one by one"):
        f.jvp(np.eye(len(f.x))[2:])


def test_lazy_modules_and_inference_mode_are_refused():
    with warnings.catch_warnings(action="ignore"):
        module = nn.LazyLinear(2)
    with pytest.raises(InvalidUse, match="call it once"):
        flatten(module, real(3))
    with torch.inference_mode(), pytest.raises(InvalidUse, match="inference_mode"):
        flatten(torch.sin, real(2))


def test_reached_looks_not_into_classes_and_libraries():
    assert reached(lambda x: torch.sin(x) + np.pi) == {}

import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from multigrad import check_grad

from .flattening import flatten, real


def kinds(report):
    """Those of the errors that were found."""
    return {finding.kind for finding in report.findings if finding.severity == "error"}


def everything(f):
    """All that a check does with a flat function."""
    n, m = len(f.x), f.repeats.shape[1]
    for product, size in ((f, n), (f.vjp, m), (f.jvp, n)):
        for rows in (1, 2):
            try:
                product(np.ones((rows, size)))
            except Exception:  # noqa: BLE001, S112
                continue


def test_dropout_is_found_and_sees_common_noise():
    before = torch.get_rng_state()
    f = flatten(nn.Dropout(0.5), real(20))
    assert not np.array_equal(*f.repeats)
    (finding,) = f.findings
    assert finding.kind == "nondeterministic_forward"
    assert f"{np.abs(f.repeats[0] - f.repeats[1]).max():.3g}" in finding.evidence
    one = f(f.x[None])
    np.testing.assert_array_equal(one[0], f.repeats[0])
    np.testing.assert_array_equal(f(np.stack([f.x, f.x])), [one[0], one[0]])
    np.testing.assert_array_equal(f.vjp(np.ones((1, 20)))[0] * f.x, one[0])
    np.testing.assert_array_equal(f.jvp(f.x[None]), one)
    assert torch.equal(before, torch.get_rng_state())


def test_captured_generators_are_put_back():
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    f = flatten(lambda x: x * torch.rand(3, generator=generator), real(3))
    assert [x.kind for x in f.findings] == ["nondeterministic_forward"]
    np.testing.assert_array_equal(f(f.x[None]), f(f.x[None]))
    assert torch.equal(before, generator.get_state())


def test_noise_that_torch_does_not_explain_is_left_to_the_repeats():
    f = flatten(lambda x: x * random.random(), real(3))
    assert not np.array_equal(*f.repeats)
    assert f.findings == []


def test_batch_norm_buffers_stay_and_are_no_finding():
    module = nn.BatchNorm1d(3, dtype=torch.float64)
    before = [b.clone() for b in module.buffers()]
    f = flatten(module, real(4, 3))
    everything(f)
    assert all(torch.equal(a, b) for a, b in zip(before, module.buffers(), strict=True))
    assert f.findings == []
    np.testing.assert_array_equal(*f.repeats)


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.calls, self.seen = 0, []

    def forward(self, x):
        self.count += 1
        self.calls += 1
        self.seen.append(x)
        self.last = x
        return x * self.count


class Hidden:
    """Keeps a module where looking through captures does not find it."""

    def __init__(self, module):
        self.box = [[[module]]]

    def __call__(self, x):
        return self.box[0][0][0](x)


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: lambda x: m(x), Hidden], ids=["module", "closure", "hidden"])
def test_module_state_is_put_back(wrap):
    module = Remembers()
    f = flatten(wrap(module), real(2))
    everything(f)
    assert (module.count.item(), module.calls, module.seen, hasattr(module, "last")) == (0, 0, [], False)
    np.testing.assert_array_equal(*f.repeats)
    (finding,) = f.findings
    assert finding.kind == "mutates_state"


def test_state_that_the_value_does_not_depend_on_is_no_finding():
    class Counts(nn.Module):
        def forward(self, x):
            self.last = x
            return x * 2

    module = Counts()
    assert flatten(module, real(2)).findings == []
    assert not hasattr(module, "last")


@pytest.mark.parametrize("write", [lambda w: w.add_(1), lambda w: w.data.add_(1)], ids=["add_", "data"])
def test_captured_tensors_are_put_back(write):
    w = real(2)
    before = w.clone()

    def fn(x):
        write(w)
        return x * w

    f = flatten(fn, real(2))
    everything(f)
    assert torch.equal(w, before)
    assert [x.kind for x in f.findings] == ["mutates_state"]
    np.testing.assert_allclose(f.vjp(np.ones((1, 2)))[0], before + 1)
    np.testing.assert_allclose(f.vjp(np.eye(2)), np.diag(before + 1))


def test_mutated_inputs_are_found_and_the_users_stay():
    x = real(2)
    before = x.clone()
    f = flatten(lambda x: x.mul_(2).sum(), x)
    everything(f)
    assert torch.equal(x, before)
    assert [(o.kind, o.where) for o in f.findings] == [("mutates_input", "inputs[0]")]
    np.testing.assert_array_equal(f.vjp(np.ones((1, 1))), [[2, 2]])


WRITES = {
    "mul_": lambda x: x.mul_(2),
    "view": lambda x: x[0].mul_(2),
    "relu": lambda x: nn.functional.relu(x, inplace=True),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_leaf_that_refuses_to_be_written_to_is_found_as_well(write):
    def fn(x):
        write(x)
        return x.sin()

    x = (real(3).abs() + 1).requires_grad_()
    before = x.detach().clone()
    report = check_grad(fn, x, raise_exception=False)
    assert (report.verdict, kinds(report)) == ("inconclusive", {"mutates_input"})
    assert torch.equal(x, before)


def test_a_wrong_gradient_is_found_where_a_leaf_is_written_to():
    assert check_grad(lambda x: x.mul_(2).detach() * x, real(3).requires_grad_(), raise_exception=False).verdict == (
        "mismatch"
    )


def test_an_error_that_is_not_about_a_leaf_comes_through():
    def fn(x):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        flatten(fn, real(3).requires_grad_())


def test_writes_past_the_version_counter_are_found():
    def fn(x):
        x.detach().numpy()[0] = 5
        return x * 2

    assert [o.kind for o in flatten(fn, real(2)).findings] == ["mutates_input"]


def test_a_mutation_at_a_perturbed_point_only_is_found():
    f = flatten(lambda x: x * 2 if x[0] > 0 else x.mul_(2), torch.ones(2, dtype=torch.float64))
    assert f.findings == []
    f(np.array([[-1.0, 1.0]]))
    assert [o.kind for o in f.findings] == ["mutates_input"]


def test_an_exception_leaves_everything_as_it_was():
    module, x = Remembers(), real(2).requires_grad_()
    w = real(2).requires_grad_()
    data = w.data_ptr()

    def fn(x):
        module(x)
        torch.rand(1)
        if w[0] != before[0]:
            raise KeyError("at a perturbed point")
        return x * w

    before = w.detach().clone()
    random_state = torch.get_rng_state()
    f = flatten(fn, x, params=[w])
    with pytest.raises(KeyError, match="perturbed"):
        f((f.x + 1)[None])
    assert (module.count.item(), module.calls) == (0, 0)
    assert torch.equal(random_state, torch.get_rng_state())
    assert torch.equal(w, before)
    assert w.data_ptr() == data
    assert torch.is_grad_enabled()


def test_grad_and_numeric_state_are_untouched():
    x, module = real(3).requires_grad_(), nn.Linear(3, 2, dtype=torch.float64)
    x.grad = torch.full_like(x, 7)
    module.weight.grad = torch.full_like(module.weight, 7)
    hooks = len(torch.nn.modules.module._global_forward_pre_hooks)
    state = (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
    with torch.no_grad():
        f = flatten(module, x)
        everything(f)
        assert not torch.is_grad_enabled()
    assert f.outputs[0].attached
    assert x.grad.eq(7).all()
    assert module.weight.grad.eq(7).all()
    assert module.bias.grad is None
    assert state == (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
    assert len(torch.nn.modules.module._global_forward_pre_hooks) == hooks


def test_fixed_inputs_that_are_a_record_may_be_written_to():
    """Running statistics, which the value in training does not depend on."""
    x, mean, var = real(4, 2), real(2), torch.ones(2, dtype=torch.float64)
    before = mean.clone()

    def fn(x, mean, var):
        return nn.functional.batch_norm(x, mean, var, training=True)

    report = check_grad(fn, (x.requires_grad_(), mean, var))
    assert report.verdict == "ok"
    assert "mutates_input" not in {finding.kind for finding in report.findings}
    assert torch.equal(mean, before)


@pytest.mark.parametrize("returned", [lambda x, mean: x * mean, lambda x, mean: (x, mean * 2)])
def test_fixed_inputs_that_are_written_to_and_read(returned):
    def fn(x, mean):
        mean.add_(1)
        return returned(x, mean)

    f = flatten(fn, real(2).requires_grad_(), real(2, seed=1))
    assert [(o.kind, o.where) for o in f.findings] == [("mutates_input", "inputs[1]")]


def test_fixed_inputs_written_to_at_a_perturbed_point_only():
    def fn(x, mean):
        return x * (mean.add_(1) if x[0] < 0 else 1)

    f = flatten(fn, torch.ones(2, dtype=torch.float64, requires_grad=True), real(2, seed=1))
    assert f.findings == []
    f(np.array([[-1.0, 1.0]]))
    assert [(o.kind, o.where) for o in f.findings] == [("mutates_input", "inputs[1]")]


def product(write):
    """x * w, whose backward writes to what it has saved: x and w."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, record):
            ctx.save_for_backward(x, w, record)
            return x * w

        @staticmethod
        def backward(ctx, g):
            x, w, record = (saved.data for saved in ctx.saved_tensors)
            gradients = g * w, g * x, None
            write(x, w, record)
            return gradients

    return Product.apply


@pytest.mark.parametrize(
    ("write", "written"),
    [
        (lambda x, w, record: x.zero_(), "inputs[0]"),
        (lambda x, w, record: x.mul_(1.5), "inputs[0]"),
        (lambda x, w, record: w.sub_(0.1 * x), "inputs[1]"),
        (lambda x, w, record: record.add_(x), None),
    ],
    ids=["cleared", "scaled", "fixed", "record"],
)
@pytest.mark.parametrize("leaf", [True, False])
def test_a_backward_that_writes_to_an_input(write, written, leaf):
    x = real(3).requires_grad_()
    inputs = (x if leaf else x * 1, real(3, seed=1), real(3, seed=2))
    before = [one.detach().clone() for one in inputs]
    report = check_grad(product(write), inputs, raise_exception=False)
    places = [finding.where for finding in report.findings if finding.severity == "error"]
    assert (report.verdict, places) == ("inconclusive" if written else "ok", [written] if written else [])
    assert all(map(torch.equal, inputs, before))


@pytest.mark.parametrize("harmful", [True, False])
def test_a_backward_that_writes_to_what_the_function_captures(harmful):
    w, record = real(3), torch.zeros(3, dtype=torch.float64)
    before = w.clone()

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * w

        @staticmethod
        def backward(ctx, g):
            gradient = g * w
            (w if harmful else record).sub_(0.1 * g)
            return gradient

    report = check_grad(lambda x: Step.apply(x), real(3, seed=1), raise_exception=False)
    assert (report.verdict, kinds(report)) == (("inconclusive", {"mutates_state"}) if harmful else ("ok", set()))
    assert torch.equal(w, before)
    assert not record.any()


def test_a_compiled_module_makes_no_noise() -> None:
    module = torch.compile(torch.nn.Linear(3, 2).double(), backend="eager")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert check_grad(module, torch.randn(4, 3, dtype=torch.float64)).verdict == "ok"
    assert not [each for each in heard if "global hooks" in str(each.message)]

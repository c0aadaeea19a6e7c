"""Functions written for low precision, evaluated in float64 as they are."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_map

from multigrad import check_grad
from multigrad.backends import Options
from multigrad.precision import DOUBLE
from multigrad_torch import TorchBackend
from multigrad_torch._autograd import engine

from .flattening import flatten
from .low_precision import CASES
from .scaled import Scaled

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*TorchScript:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings(
        "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
    ),  # torch.compile
    pytest.mark.filterwarnings("ignore:Using `torch.compile:UserWarning"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning"),
]

PROMOTED = [name for name, case in CASES.items() if case.promotes]


def scaled(fn, factor):
    def scale(leaf):
        inexact = isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())
        return Scaled.apply(leaf, factor) if inexact else leaf

    return lambda *args: tree_map(scale, fn(*args))


def kinds(report_or_function):
    return [finding.kind for finding in report_or_function.findings]


def directional(f, seed=0):
    """u^T J v, numerical and analytical, and the size of its terms."""
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=f.repeats.shape[1]), rng.normal(size=len(f.x))
    numerical = u @ (f((f.x + 1e-5 * v)[None])[0] - f((f.x - 1e-5 * v)[None])[0]) / 2e-5
    gradient = f.vjp(u[None])[0]
    return numerical, gradient @ v, np.abs(gradient) @ np.abs(v)


@pytest.mark.parametrize("name", PROMOTED)
def test_promoted(name):
    fn, inputs = CASES[name].make()
    with torch.random.fork_rng():
        users = flat(fn(*inputs))
    f = flatten(fn, *inputs)
    assert f.eps == DOUBLE and kinds(f).count("promotion") == 1
    assert np.abs(f.repeats[0] - users).max() <= 20 * CASES[name].eps * np.abs(users).max()
    numerical, analytical, size = directional(f)
    assert abs(numerical - analytical) <= 1e-7 * size


def flat(out):
    leaves = [out] if isinstance(out, torch.Tensor) else torch.utils._pytree.tree_leaves(out)
    numbers = [leaf.detach() for leaf in leaves if leaf.is_floating_point() or leaf.is_complex()]
    pairs = [torch.view_as_real(n) if n.is_complex() else n for n in numbers]
    return np.concatenate([pair.double().reshape(-1).numpy() for pair in pairs])


@pytest.mark.parametrize("name", PROMOTED)
def test_the_users_own_backward_is_under_test(name):
    fn, inputs = CASES[name].make()
    numerical, analytical, size = directional(flatten(scaled(fn, 1.001), *inputs))
    assert abs(numerical * 1.001 - analytical) <= 1e-7 * size


@pytest.mark.parametrize("name", CASES)
def test_right(name):
    fn, inputs = CASES[name].make()
    report = check_grad(fn, inputs, raise_exception=False)
    assert report.verdict == "ok", str(report)


@pytest.mark.parametrize("bug", [1e-2, 1e-3])
@pytest.mark.parametrize("name", CASES)
def test_wrong(name, bug):
    fn, inputs = CASES[name].make()
    report = check_grad(scaled(fn, 1 + bug), inputs, raise_exception=False)
    # An error of a thousandth is less than the rounding of a constant in coarser types than float32.
    told = report.verdict == "mismatch" or bug < 2 * CASES[name].eps and report.verdict == "inconclusive"
    assert told and "cannot be seen" not in report.reason, str(report)


def test_convolution_of_the_documentation():
    conv, x = nn.Conv2d(1, 1, 1, 1), torch.randn(1, 1, 2, 2, requires_grad=True)
    assert check_grad(lambda x: conv(x), (x,))
    report = check_grad(scaled(lambda x: conv(x), 1.01), (x,), raise_exception=False)
    assert report.verdict == "mismatch"
    named = {(entry.output, entry.input) for entry in report.worst if entry.status.name == "MISMATCH"}
    assert named == {(f"output[0, 0, {i}, {j}]", f"inputs[0][0, 0, {i}, {j}]") for i in (0, 1) for j in (0, 1)}


def test_second_order_of_parameters():
    assert check_grad(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), torch.randn(2, 3), order=2)


def test_parameters_that_are_checked_beside_the_inputs():
    w = torch.randn(3, requires_grad=True)
    assert check_grad(lambda x: (x * w).sin(), torch.randn(3), params="captured")
    report = check_grad(
        scaled(lambda x: x.detach() * w, 1.01), torch.randn(3), params="captured", raise_exception=False
    )
    assert report.verdict == "mismatch"
    assert (w.dtype, w.grad) == (torch.float32, None)


def test_another_release_of_torch_keeps_the_engine_elsewhere(monkeypatch):
    fn, inputs = CASES["inner_grad"].make()
    monkeypatch.setattr(engine, "ENGINE", None)
    f = flatten(fn, *inputs)
    numerical, analytical, size = directional(f)
    assert f.eps == DOUBLE and abs(numerical - analytical) <= 1e-7 * size


# ------------------------------------------------------------------------------------------------ what cannot be


def size_in_memory(x):
    """Which shows a function that it is evaluated in float64, whatever it is told."""
    return x.clone().untyped_storage().nbytes() // x.numel()


@pytest.mark.parametrize("bug", [0, 1e-2, 1e-3])
def test_coarse_arithmetic_is_no_proof(bug):
    def fn(x):
        return x * (2.0 if size_in_memory(x) == 2 else 3.0)

    report = check_grad(scaled(fn, 1 + bug), torch.randn(3).bfloat16(), raise_exception=False)
    assert report.verdict == "inconclusive" and "cannot be seen" in report.reason


def test_float32_as_it_is_written_shows_errors_of_a_thousandth():
    def fn(x):
        return x.sin() * (2.0 if size_in_memory(x) == 4 else 3.0)

    assert check_grad(fn, torch.randn(3))
    assert check_grad(scaled(fn, 1.001), torch.randn(3), raise_exception=False).verdict == "mismatch"


def test_low_precision_that_torch_cannot_see_shows_as_noise():
    f = flatten(*function_and_inputs("function_through_numpy"))
    assert f.eps >= 2.0**-23
    (note,) = f.findings
    assert note.kind == "promotion" and "noise" in note.evidence


def test_what_the_rounding_of_double_leaves_of_zero_is_no_sign_of_low_precision():
    """Sums in two orders: their difference is all noise."""
    report = check_grad(
        lambda x: torch.stack([x.sum() - x.flip(0).sum(), (x * x).sum()]),
        torch.tensor([0.1, 0.7, -1.3, 2.2]),
        raise_exception=False,
    )
    assert report.verdict == "ok", str(report)
    assert report.blocks[0].bar.max() < 1e-9


def test_what_refuses_float64_is_evaluated_as_it_is_written():
    f = flatten(*function_and_inputs("scripted_module_captured"))
    assert f.eps == 2.0**-23
    (note,) = f.findings
    assert note.kind == "promotion" and "as it is written" in note.evidence


@pytest.mark.parametrize("name", ["scripted_module", "traced_by_jit"])
def test_compiled_code_runs_in_float64_with_parameters_that_are_checked(name):
    f = flatten(*function_and_inputs(name))
    numerical, analytical, size = directional(f)
    assert f.eps == DOUBLE and abs(numerical - analytical) <= 1e-7 * size


def test_another_function_in_float64_is_not_trusted():
    def fn(x):
        return x * (2.0 if size_in_memory(x) == 4 else 3.0)

    f = flatten(fn, torch.randn(3))
    assert f.eps == 2.0**-23 and "other ones" in f.findings[0].evidence
    np.testing.assert_allclose(f.vjp(np.eye(3)), 2 * np.eye(3))


def function_and_inputs(name):
    fn, inputs = CASES[name].make()
    return fn, *inputs


# ------------------------------------------------------------------------------------------------ only in low precision


class WrongInHalf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * (3 if size_in_memory(g) > 2 else 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_backward_that_is_wrong_in_low_precision_only(dtype):
    report = check_grad(WrongInHalf.apply, torch.randn(3).to(dtype), raise_exception=False)
    assert report.verdict == "inconclusive" and "precision" in kinds(report)


def test_overflow_of_the_value():
    report = check_grad(lambda x: (x * 300) ** 2 / 1e4, torch.tensor([2.0, 1.0]).half(), raise_exception=False)
    (finding,) = [finding for finding in report.findings if finding.kind == "precision"]
    assert finding.where == "output[0]" and "inf" in finding.evidence
    assert report.verdict == "inconclusive"


class OverflowsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 6e4 * 6 / 1.2e5


def test_overflow_of_the_gradient():
    report = check_grad(OverflowsInBackward.apply, torch.ones(2).half(), raise_exception=False)
    (finding,) = [finding for finding in report.findings if finding.kind == "precision"]
    assert finding.where.startswith("inputs[0]") and "inf" in finding.evidence


# ------------------------------------------------------------------------------------------------ float64 pays nothing


@pytest.mark.parametrize(
    "fn",
    [
        torch.sin,
        nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Tanh()).double(),
        lambda x: x.to(torch.float64).double() * torch.zeros(3, dtype=torch.float64),
        lambda x: x * (x > 0).float(),
        lambda x: x + torch.ones(3),
    ],
    ids=["function", "module", "casts to float64", "float32 mask", "float32 ones"],
)
def test_double_is_evaluated_as_it_is_written(fn):
    f = flatten(fn, torch.randn(4, 3).double())
    assert not f._program.promoted and f.eps == DOUBLE and not f.findings


# ------------------------------------------------------------------------------------------------ nothing is changed


class Failing(nn.Module):
    """Counts its calls on a buffer, rebinds an attribute, draws random numbers, and fails at a call of its own."""

    def __init__(self, fail_at):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("low", torch.zeros(3, dtype=torch.float16))
        self.cached, self.calls, self.fail_at = None, [], fail_at

    def forward(self, x):
        self.calls.append(1)
        if len(self.calls) >= self.fail_at:
            raise ArithmeticError("fails here")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.norm(self.linear(x).float())
        self.cached = y
        self.total += y.detach().sum(0).float()
        self.low.add_(1)
        torch.manual_seed(5)
        return nn.functional.dropout(y, 0.3)


def snapshot(module, inputs):
    state = {
        name: (id(tensor), tensor.dtype, tensor.clone()) for name, tensor in module.state_dict(keep_vars=True).items()
    }
    return {
        "state": state,
        "gradients": [parameter.grad for parameter in module.parameters()],
        "requires_grad": [parameter.requires_grad for parameter in module.parameters()],
        "cached": module.cached,
        "inputs": [(x.dtype, x.grad, x.clone()) for x in inputs],
        "default dtype": torch.get_default_dtype(),
        "random": torch.get_rng_state(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "attention": torch.backends.cuda.flash_sdp_enabled(),
        "modes": torch.overrides._len_torch_function_stack()
        if hasattr(torch.overrides, "_len_torch_function_stack")
        else 0,
    }


def same(before, after):
    if isinstance(before, torch.Tensor):
        return torch.equal(before, after)
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(same, before, after))
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(same(before[key], after[key]) for key in before)
    return before == after


@pytest.mark.parametrize("checks_parameters", [False, True])
@pytest.mark.parametrize("fail_at", [10**9, 1, 2, 4, 7, 10, 14, 25])
def test_nothing_of_the_users_is_changed(fail_at, checks_parameters):
    torch.manual_seed(0)
    module, x = Failing(fail_at), torch.randn(4, 3, requires_grad=True)
    module.linear.weight.grad = torch.ones(3, 3)
    before = snapshot(module, [x])
    try:
        report = check_grad(module if checks_parameters else lambda x: module(x), (x,), raise_exception=False)
        assert report.verdict == "ok" or fail_at < 10**9
    except ArithmeticError:
        pass
    after = snapshot(module, [x])
    assert [key for key in before if not same(before[key], after[key])] == []


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32])
@pytest.mark.parametrize("given", [torch.float32, torch.float64])
def test_dtypes_that_torch_hardly_computes_with(dtype, given):
    x = torch.tensor([0.3, -1.2, 2.7], dtype=given)
    report = check_grad(lambda x: x.to(dtype).to(torch.complex128 if dtype.is_complex else x.dtype) * x, x)
    assert report.verdict == "ok"
    (note,) = [finding for finding in report.findings if finding.kind == "promotion"]
    assert str(dtype).removeprefix("torch.") in note.evidence


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.complex32])
def test_cotangents_of_dtypes_that_torch_cannot_compare(dtype):
    f = TorchBackend().flatten(lambda x: x.to(dtype), (torch.ones(3),), Options(native=True))
    rows = np.eye(f.repeats.shape[1])
    stored = rows[:: len(rows) // 3]
    np.testing.assert_array_equal(np.concatenate([f.vjp(u[None]) for u in stored]), np.eye(3))

"""Functions in float32, float16 and bfloat16 as people write them. Every gradient here is right.

Each entry makes a fresh function and its inputs; the seed is the same each time.
"""

from __future__ import annotations

import copy
import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Case = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class LowPrecision:
    """What an entry is: how to make it, and the coarsest dtype in it."""

    make: Callable[[], Case]
    dtype: torch.dtype
    promotes: bool

    @property
    def eps(self) -> float:
        return torch.finfo(self.dtype).eps


CASES: dict[str, LowPrecision] = {}


def case(
    make: Callable[[], Case] | None = None, /, *, dtype: torch.dtype = torch.float32, promotes: bool = True
) -> Callable[..., Any]:
    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        @functools.wraps(make)
        def seeded() -> Case:
            torch.manual_seed(0)
            return make()

        CASES[make.__name__] = LowPrecision(seeded, dtype, promotes)
        return make

    return register(make) if make is not None else register


def x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


# ------------------------------------------------------------------------------------------------ modules


@case
def linear() -> Case:
    return nn.Linear(4, 3), (x(2, 4),)


@case
def conv2d_lambda() -> Case:
    conv = nn.Conv2d(1, 1, 1, 1)
    return lambda x: conv(x), (x(1, 1, 2, 2),)


@case
def conv2d() -> Case:
    return nn.Conv2d(2, 3, 3, padding=1), (x(1, 2, 4, 4),)


@case
def mlp() -> Case:
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid()), (x(3, 5),)


@case
def batch_norm_train() -> Case:
    return nn.BatchNorm1d(3), (x(5, 3),)


@case
def batch_norm_eval() -> Case:
    return nn.BatchNorm1d(3).eval(), (x(5, 3),)


@case
def conv_batch_norm() -> Case:
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.Tanh()), (x(2, 1, 3, 3),)


@case
def layer_norm() -> Case:
    return nn.LayerNorm(5), (x(2, 5),)


@case
def attention() -> Case:
    attend = nn.MultiheadAttention(4, 2, batch_first=True)
    return lambda q: attend(q, q, q)[0], (x(1, 3, 4),)


@case
def attention_two_outputs() -> Case:
    attend = nn.MultiheadAttention(4, 2, batch_first=True)
    return lambda q, k: attend(q, k, k), (x(1, 3, 4), x(1, 2, 4))


@case
def scaled_dot_product() -> Case:
    return F.scaled_dot_product_attention, (x(1, 2, 3, 4), x(1, 2, 3, 4), x(1, 2, 3, 4))


@case
def lstm() -> Case:
    rnn = nn.LSTM(3, 4)
    return lambda x: rnn(x)[0], (x(2, 1, 3),)


@case
def lstm_two_layers_bidirectional() -> Case:
    rnn = nn.LSTM(3, 2, num_layers=2, bidirectional=True)
    return lambda x: rnn(x)[0], (x(2, 1, 3),)


@case
def gru() -> Case:
    rnn = nn.GRU(3, 4)
    return lambda x: rnn(x)[1], (x(2, 1, 3),)


@case
def gru_two_layers_bidirectional() -> Case:
    rnn = nn.GRU(3, 2, num_layers=2, bidirectional=True)
    return lambda x: rnn(x)[0], (x(2, 1, 3),)


@case
def packed_lstm() -> Case:
    rnn = nn.LSTM(3, 2, batch_first=True)

    def fn(x: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(rnn(packed)[0])[0]

    return fn, (x(2, 3, 3),)


@case
def embedding_weight() -> Case:
    index = torch.tensor([0, 2, 1, 0])
    return lambda w: F.embedding(index, w).sin(), (x(3, 2),)


@case
def embedding_module() -> Case:
    embed, index = nn.Embedding(5, 3), torch.tensor([1, 4])
    return lambda x: embed(index) * x, (x(2, 3),)


@case
def transformer_layer_train() -> Case:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    return layer, (x(1, 3, 4),)


@case
def transformer_layer_eval() -> Case:
    return nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), (x(1, 3, 4),)


@case
def transformer_layer_dropout() -> Case:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3, activation="gelu", batch_first=True)

    def fn(x: torch.Tensor) -> Any:
        torch.manual_seed(3)
        return layer(x)

    return fn, (x(1, 3, 4),)


@case
def cross_entropy() -> Case:
    loss = nn.CrossEntropyLoss(weight=torch.rand(4), label_smoothing=0.1)
    target = torch.tensor([0, 3, 1])
    return lambda x: loss(x, target), (x(3, 4),)


@case
def losses() -> Case:
    target = torch.rand(3, 2)
    return lambda x: (F.mse_loss(x, target), F.huber_loss(x, target), F.binary_cross_entropy_with_logits(x, target)), (
        x(3, 2),
    )


@case
def weight_norm() -> Case:
    return nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), (x(2, 3),)


@case
def spectral_norm() -> Case:
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4))
    return lambda x: layer(x), (x(2, 3),)  # its gradient for the weight holds the power iteration's vectors fixed


@case
def spectral_norm_eval() -> Case:
    return nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)).eval(), (x(2, 3),)


@case
def interpolate() -> Case:
    return functools.partial(F.interpolate, scale_factor=2, mode="bilinear"), (x(1, 1, 3, 3),)


@case
def bilinear() -> Case:
    return nn.Bilinear(2, 3, 2), (x(2, 2), x(2, 3))


@case
def group_and_instance_norm() -> Case:
    return nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)), (x(2, 4, 2, 2),)


# ------------------------------------------------------------------------------------------------ randomness


@case
def dropout_seeded() -> Case:
    def fn(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return F.dropout(x.exp(), 0.4)

    return fn, (x(6),)


@case
def reparametrised_noise() -> Case:
    def fn(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return torch.randn_like(x) * x.exp() + torch.rand(4) * x + torch.normal(torch.zeros(4), 2.0) * x.sin()

    return fn, (x(4),)


@case
def distribution() -> Case:
    def fn(loc: torch.Tensor, scale: torch.Tensor) -> Any:
        torch.manual_seed(1)
        normal = torch.distributions.Normal(loc, scale.exp())
        sample = normal.rsample()
        return sample, normal.log_prob(sample)

    return fn, (x(3), x(3))


@case
def filled_in_place() -> Case:
    def fn(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(2)
        return x * torch.empty(3).uniform_(1, 2) + torch.empty_like(x).normal_() * x.cos()

    return fn, (x(3),)


@case
def module_made_inside() -> Case:
    def fn(x: torch.Tensor) -> Any:
        torch.manual_seed(2)
        return nn.Linear(3, 2)(x).tanh()

    return fn, (x(2, 3),)


# ------------------------------------------------------------------------------------------------ wrappers


@case
def checkpointed() -> Case:
    layer = nn.Linear(3, 3)
    return lambda x: checkpoint(lambda y: layer(y).tanh(), x, use_reentrant=False), (x(2, 3),)


@case
def compiled_eager() -> Case:
    return torch.compile(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), backend="eager"), (x(2, 3),)


@case
def compiled_aot_eager() -> Case:
    w = x(3, 3)
    return torch.compile(lambda x: (x @ w).sin(), backend="aot_eager"), (x(2, 3),)


def _script(target: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(target)


def _scripted_body(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2.0 + x * x


_scripted = _script(_scripted_body)


@case
def scripted() -> Case:
    return _scripted, (x(4),)


@case(promotes=False)
def scripted_module() -> Case:
    return _script(nn.Sequential(nn.Linear(3, 3), nn.Tanh())), (x(2, 3),)


@case(promotes=False)
def scripted_module_captured() -> Case:
    module = _script(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))
    return lambda x: module(x), (x(2, 3),)


@torch.library.custom_op("multigrad_tests::cube", mutates_args=())
def _cube(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x**3 * w


@_cube.register_fake
def _(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def _cube_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _cube_backward(ctx: Any, g: torch.Tensor) -> Any:
    x, w = ctx.saved_tensors
    return 3 * x**2 * w * g, x**3 * g


_cube.register_autograd(_cube_backward, setup_context=_cube_setup)


@case
def custom_op() -> Case:
    w = x(4)
    return lambda x: _cube(x, w), (x(4),)


# ------------------------------------------------------------------------------------------------ autograd.Function


class Silu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x * torch.sigmoid(x) * w

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        s = torch.sigmoid(x)
        return g * w * (s + x * s * (1 - s)), g * x * s


class SiluContext(torch.autograd.Function):
    @staticmethod
    def forward(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x) * w

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    backward = Silu.backward


class SiluVmap(SiluContext):
    generate_vmap_rule = True


class SiluAllocates(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(x.shape, dtype=torch.float32)
        out += x * torch.sigmoid(x)
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        grad = torch.empty_like(x, dtype=torch.float32)
        s = torch.sigmoid(x.float())
        grad[:] = g * (s + x * s * (1 - s))
        return grad


class ExpNumpy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = torch.from_numpy(np.exp(x.detach().numpy().astype(np.float32)))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        return g * y


@case
def function_with_ctx() -> Case:
    w = x(4)
    return lambda x: Silu.apply(x, w), (x(4),)


@case
def function_setup_context() -> Case:
    w = nn.Parameter(x(4))
    return lambda x: SiluContext.apply(x, w), (x(4),)


@case
def function_vmap_rule() -> Case:
    w, apply = x(4), SiluVmap.apply
    return lambda x: apply(x, w), (x(4),)


@case
def function_allocates_float32() -> Case:
    return lambda x: SiluAllocates.apply(x), (x(4),)


@case(promotes=False)
def function_through_numpy() -> Case:
    return lambda x: ExpNumpy.apply(x), (x(4),)


# ------------------------------------------------------------------------------------------------ Python around it


@case
def closure() -> Case:
    w, b = x(3, 3), x(3)

    def inner(y: torch.Tensor) -> torch.Tensor:
        return y @ w + b

    return lambda x: inner(x).sin(), (x(2, 3),)


GLOBAL = torch.linspace(0.1, 1, 3)


@case
def module_global() -> Case:
    return lambda x: x * GLOBAL.exp(), (x(3),)


@case
def partial() -> Case:
    return functools.partial(torch.nn.functional.linear, weight=x(2, 3), bias=x(2)), (x(3),)


class Holder:
    def __init__(self) -> None:
        self.w = x(3)

    def method(self, y: torch.Tensor) -> torch.Tensor:
        return (y * self.w).cos()


@case
def bound_method() -> Case:
    return Holder().method, (x(3),)


@case
def default_argument() -> Case:
    def fn(x: torch.Tensor, w: torch.Tensor = x(3)) -> torch.Tensor:  # noqa: B008
        return x * w

    return fn, (x(3),)


@case
def keyword_dict() -> Case:
    table = {"w": x(3), "more": [x(3)]}
    return lambda x: x * table["w"] + table["more"][0] * x**2, (x(3),)


@case
def buffer_written() -> Case:
    buffer = torch.zeros(3)

    def fn(x: torch.Tensor) -> torch.Tensor:
        buffer.zero_()
        buffer.add_(1.5)
        return x.exp() * buffer

    return fn, (x(3),)


@case
def buffer_copied_to() -> Case:
    buffer = torch.zeros(2, 3)

    def fn(x: torch.Tensor) -> torch.Tensor:
        buffer.copy_(x.detach().expand(2, 3))
        buffer[0] = 2.0
        return x.sin() * buffer[0]

    return fn, (x(3),)


@case(dtype=torch.float16)
def cast_float() -> Case:
    return lambda x: x.float().sin().half().float() * 2, (x(3, dtype=torch.float64),)


@case
def cast_to() -> Case:
    w = x(3)
    return lambda x: x.to(torch.float32).exp().type(torch.float32).type("torch.FloatTensor").to(w) * w, (x(3),)


@case
def zeros_filled() -> Case:
    def fn(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(3, dtype=torch.float32)
        out[1:] = x[:2] ** 2
        return out + torch.ones(3) * x + torch.tensor([0.1, 0.2, 0.3])

    return fn, (x(3),)


@case
def zeros_in_double_code() -> Case:
    def fn(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(3)
        out[1:] = x[:2].exp()
        return out

    return fn, (x(3, dtype=torch.float64),)


@case
def asserts_dtype() -> Case:
    w = x(3)

    def fn(x: torch.Tensor) -> torch.Tensor:
        assert x.dtype == torch.float32 and w.dtype is torch.float32
        assert (x * w).dtype == x.dtype and x.type() == "torch.FloatTensor"
        return x * w + torch.finfo(x.dtype).eps

    return fn, (x(3),)


@case(dtype=torch.float16)
def asserts_mixed_dtypes() -> Case:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        assert x.dtype == torch.float32 and y.dtype == torch.float64 and x.half().dtype == torch.float16
        return x * y

    return fn, (x(3), x(3, dtype=torch.float64))


@case
def numpy_constant() -> Case:
    table = np.linspace(0, 1, 3).astype(np.float32)
    return lambda x: torch.from_numpy(table) * x + torch.as_tensor(table).exp() * x**2, (x(3),)


@case
def item_branch() -> Case:
    return lambda x: x.sin() if x.sum().item() > -100 else x.cos(), (x(3),)


@case
def sparse_constant() -> Case:
    matrix = torch.eye(3).to_sparse()
    return lambda x: torch.sparse.mm(matrix, x).sin(), (x(3, 2),)


@case
def complex_constant() -> Case:
    phase = torch.polar(torch.ones(3), torch.linspace(0, 1, 3))
    return lambda x: (x * phase).real, (x(3),)


@case(dtype=torch.float32)
def complex_input() -> Case:
    w = torch.randn(3, dtype=torch.complex64)
    return lambda z: (z * w).abs(), (torch.randn(3, dtype=torch.complex64),)


@case
def fourier() -> Case:
    return lambda x: torch.fft.rfft(x).abs() + torch.hann_window(3) * x[:3], (x(4),)


@case
def einsum_and_linalg() -> Case:
    a = torch.eye(3) * 3 + 0.1 * x(3, 3)
    return lambda x: torch.einsum("ij,jk->ik", a**2, torch.linalg.solve(a, x)), (x(3, 2),)


@case
def foreach_and_type_as() -> Case:
    w = [x(3), x(3)]
    return lambda x: torch._foreach_mul([x, x.sin().type_as(w[0])], w), (x(3),)


@case
def bucketize() -> Case:
    edges = torch.tensor([-0.5, 0.5])
    return lambda x: x * torch.bucketize(x.detach(), edges).float(), (x(4),)


@case
def deepcopied_inside() -> Case:
    layer = nn.Linear(3, 2)
    return lambda x: copy.deepcopy(layer)(x).tanh(), (x(2, 3),)


@case
def functional_call() -> Case:
    layer = nn.Linear(3, 2)
    weights = {k: v.detach() * 2 for k, v in layer.named_parameters()}
    return lambda x: torch.func.functional_call(layer, weights, (x,)), (x(2, 3),)


# ------------------------------------------------------------------------------------------------ derivatives inside


@case
def inner_grad() -> Case:
    w = x(3)

    def fn(x: torch.Tensor) -> torch.Tensor:
        (g,) = torch.autograd.grad((x**3 * w).sum(), x, create_graph=True)
        return g

    return fn, (x(3).requires_grad_(),)


@case
def inner_func_grad() -> Case:
    w = x(3)
    return lambda x: torch.func.grad(lambda y: (y.sin() * w).sum())(x), (x(3),)


@case
def inner_grad_of_captured() -> Case:
    layer = nn.Linear(3, 1)

    def fn(x: torch.Tensor) -> Any:
        loss = lambda p: (torch.func.functional_call(layer, p, (x,)) ** 2).sum()
        return torch.func.grad(loss)({k: v.detach() for k, v in layer.named_parameters()})

    return fn, (x(2, 3),)


@case
def inner_vmap() -> Case:
    w = x(3)
    return lambda x: torch.func.vmap(lambda row: row.sin() @ w)(x), (x(2, 3),)


@case
def inner_vmap_of_captured() -> Case:
    w = x(2, 3)
    return lambda x: torch.func.vmap(lambda row: (row * x).exp())(w), (x(3),)


@case
def inner_maml_step() -> Case:
    layer = nn.Linear(3, 1)

    def fn(x: torch.Tensor) -> torch.Tensor:
        loss = (layer(x) ** 2).sum()
        gw, gb = torch.autograd.grad(loss, list(layer.parameters()), create_graph=True)
        return F.linear(x, layer.weight - 0.1 * gw, layer.bias - 0.1 * gb)

    return fn, (x(2, 3),)


@case
def inner_backward() -> Case:
    w = nn.Parameter(x(3))

    def fn(x: torch.Tensor) -> torch.Tensor:
        w.grad = None
        (w.sin() * 2).sum().backward()
        return x * w.grad

    return fn, (x(3),)


# ------------------------------------------------------------------------------------------------ lower precisions


@case(dtype=torch.bfloat16)
def bfloat16_module() -> Case:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).bfloat16(), (x(2, 3, dtype=torch.bfloat16),)


@case(dtype=torch.float16)
def float16_module() -> Case:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).half(), (x(2, 3, dtype=torch.float16),)


@case(dtype=torch.bfloat16)
def bfloat16_matmul() -> Case:
    return torch.mm, (x(2, 2, dtype=torch.bfloat16), x(2, 2, dtype=torch.bfloat16))


@case(dtype=torch.bfloat16)
def autocast() -> Case:
    layer = nn.Linear(3, 4)

    def fn(x: torch.Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return layer(x).tanh()

    return fn, (x(2, 3),)


@case(dtype=torch.bfloat16)
def mixed_dtypes() -> Case:
    w = x(3, 3, dtype=torch.bfloat16)
    return lambda x: (x.to(torch.bfloat16) @ w).float() * x, (x(3),)


@case(dtype=torch.float16)
def half_in_the_middle() -> Case:
    layer = nn.Linear(3, 3).half()
    return lambda x: layer(x.half()).float().sin() * math.pi, (x(2, 3),)


# ------------------------------------------------------------------------------------------------ more kinds


@case
def lstm_module() -> Case:
    return nn.LSTM(3, 2), (x(2, 1, 3),)


@case
def gru_bidirectional() -> Case:
    rnn = nn.GRU(3, 2, bidirectional=True)
    return lambda x: rnn(x)[0], (x(2, 1, 3),)


@case
def checkpointed_reentrant() -> Case:
    layer = nn.Linear(3, 3)
    return lambda x: checkpoint(lambda y: layer(y).tanh(), x, use_reentrant=True), (x(2, 3).requires_grad_(),)


@case(dtype=torch.float16)
def saved_tensors_compressed() -> Case:
    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
            return x.sin() * x

    return fn, (x(3),)


@case(promotes=False)
def traced_by_jit() -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        layer = torch.jit.trace(nn.Linear(3, 3), torch.randn(2, 3))
    return layer, (x(2, 3),)


@case
def traced_by_fx() -> Case:
    return torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.GELU())), (x(2, 3),)


@case(dtype=torch.float16)
def asks_for_sizes() -> Case:
    return lambda x: x * x.element_size() + x.sin() * x.itemsize * x.nbytes, (x(3, dtype=torch.float16),)


@case
def looks_for_the_dtype_in_a_table() -> Case:
    table = {torch.float32: 2.0, torch.float64: 3.0}
    return lambda x: x * table[x.dtype], (x(3),)


@case(dtype=torch.float16)
def gradient_scaler() -> Case:
    layer, scaler = nn.Linear(4, 3), torch.amp.GradScaler("cpu", init_scale=1024.0)

    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = layer(x).float().pow(2).mean()
        return scaler.scale(loss) / 1024

    return fn, (x(2, 4),)


@case(dtype=torch.bfloat16)
def autocast_as_a_decorator() -> Case:
    layer = nn.Linear(4, 3)
    return torch.autocast("cpu", dtype=torch.bfloat16)(lambda x: layer(x).softmax(-1)), (x(2, 4),)


@case(dtype=torch.float16)
def half_module_with_float32_loss() -> Case:
    model, target = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)).half(), torch.tensor([0, 2])
    return lambda x: F.cross_entropy(model(x).float(), target), (x(2, 4, dtype=torch.float16),)


@case(dtype=torch.bfloat16)
def rotary_embedding() -> Case:
    frequencies = 1 / (10000 ** (torch.arange(0, 4, 2).float() / 4))

    def fn(q: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(q.shape[1], dtype=frequencies.dtype), frequencies)
        angles = torch.cat([angles, angles], -1)
        turned = torch.cat([-q[..., 2:], q[..., :2]], -1)
        return (q.float() * angles.cos() + turned.float() * angles.sin()).to(q.dtype)

    return fn, (x(1, 3, 4, dtype=torch.bfloat16),)


@case(dtype=torch.float16)
def weights_dequantised() -> Case:
    stored, scale = torch.randint(-127, 127, (3, 4), dtype=torch.int8), torch.rand(3, 1)
    return lambda x: x @ (stored.to(torch.float16) * scale.half()).to(x.dtype).t(), (x(2, 4),)


@case(dtype=torch.bfloat16)
def low_rank_adapter() -> Case:
    base, a, b = nn.Linear(4, 4).bfloat16(), nn.Parameter(x(2, 4)), nn.Parameter(x(4, 2))
    return lambda x: base(x) + (x.float() @ a.t() @ b.t()).to(x.dtype) * 0.5, (x(2, 4, dtype=torch.bfloat16),)


@case(dtype=torch.bfloat16)
def attention_in_blocks() -> Case:
    def fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        largest, total = torch.full((4,), -torch.inf), torch.zeros(4, dtype=torch.float32)
        sums = torch.zeros(q.shape, dtype=torch.float32)
        for i in range(0, 4, 2):
            scores = q.float() @ k[i : i + 2].float().t()
            new = torch.maximum(largest, scores.max(-1).values)
            p, shrink = torch.exp(scores - new[:, None]), torch.exp(largest - new)
            total, largest = total * shrink + p.sum(-1), new
            sums = sums * shrink[:, None] + p @ v[i : i + 2].float()
        return (sums / total[:, None]).to(q.dtype)

    return fn, tuple(x(4, 3, dtype=torch.bfloat16) for _ in range(3))


@case(dtype=torch.float16)
def masked_with_the_least_number() -> Case:
    mask = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    return lambda x: (x @ x.t()).masked_fill(mask, torch.finfo(x.dtype).min).softmax(-1), (
        x(4, 3, dtype=torch.float16),
    )


@case
def double_around_float32() -> Case:
    w = x(3, 3)
    return lambda x: (x.float() @ w).sin().double(), (x(2, 3, dtype=torch.float64),)

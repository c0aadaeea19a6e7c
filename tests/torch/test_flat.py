"""Values, reverse and forward products of many functions and modules, against plain calls and differences."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from multigrad.backends import FlatFunction
from multigrad.errors import Unsupported

from .flattening import flatten, forward, imaginary, numerical, real, reverse

D = {"dtype": torch.float64}


class Pair(NamedTuple):
    total: torch.Tensor
    parts: dict


class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class Setup(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x**k

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.k = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k * x ** (ctx.k - 1), None


class Ruled(Setup):
    generate_vmap_rule = True


def positive(*shape):
    return real(*shape).abs() + 0.5


def build(kind, *args, **kwargs):
    return lambda: kind(*args, **kwargs).double()


def eval_mode(make):
    return lambda: make().eval()


def rnn_pack(x):
    packed = nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True)
    return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0] ** 2


def loop(x):
    h = torch.zeros(2, **D)
    for row in x:
        h = torch.tanh(h + row)
    return h


def write_rows(x):
    y = torch.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] ** (i + 1)
    return y


def spread(x):
    return Pair(x.sum(), {"a": [x * 2, None], "n": 3, "c": (x[0] * 1j,)})


FUNCTIONS = {
    "sin": (torch.sin, real(3)),
    "matmul": (torch.matmul, real(2, 3), real(3, 2)),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), real(2, 3), real(2, 3)),
    "conv2d": (F.conv2d, real(1, 1, 3, 3), real(1, 1, 2, 2)),
    "conv1d strided": (lambda x, w: F.conv1d(x, w, stride=2, padding=1), real(1, 2, 5), real(2, 2, 3)),
    "conv transpose": (F.conv_transpose2d, real(1, 1, 2, 2), real(1, 1, 2, 2)),
    "avg pool": (lambda x: F.avg_pool2d(x, 2), real(1, 1, 4, 4)),
    "max pool": (lambda x: F.max_pool2d(x, 2), real(1, 1, 4, 4)),
    "softmax": (lambda x: F.log_softmax(x, -1), real(2, 3)),
    "layer norm": (lambda x, w: F.layer_norm(x, (3,), w), real(2, 3), real(3)),
    "gelu": (F.gelu, real(4)),
    "softplus": (F.softplus, real(4)),
    "cumprod": (lambda x: torch.cumprod(x, 0), real(4)),
    "cumsum flip": (lambda x: x.flip(0).cumsum(0), real(4)),
    "logsumexp": (lambda x: torch.logsumexp(x, 0), real(4)),
    "norm": (torch.linalg.vector_norm, real(3)),
    "solve": (torch.linalg.solve, real(2, 2), real(2)),
    "inverse": (torch.linalg.inv, real(3, 3)),
    "slogdet": (torch.linalg.slogdet, real(3, 3)),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.T + torch.eye(2, **D)), real(2, 2)),
    "qr": (torch.linalg.qr, real(3, 2)),
    "eigvalsh": (lambda x: torch.linalg.eigvalsh(x + x.T), real(3, 3)),
    "svdvals": (torch.linalg.svdvals, real(3, 2)),
    "matrix exp": (torch.linalg.matrix_exp, real(2, 2)),
    "gather": (lambda x, i: x.gather(0, i), real(3), torch.tensor([2, 0])),
    "scatter add": (lambda x, i: torch.zeros_like(x).scatter_add(0, i, x), real(3), torch.tensor([1, 1, 0])),
    "index put": (lambda x, y: x.index_put((torch.tensor([0]),), y), real(3), real(1)),
    "sort": (lambda x: x.sort().values, real(4)),
    "topk": (lambda x: x.topk(2), real(4)),
    "where": (lambda x: torch.where(x > 0, x**2, -x), real(4)),
    "clamp": (lambda x: x.clamp(-0.1, 0.1), real(4)),
    "stack cat": (lambda x, y: torch.cat([torch.stack([x, y]), x[None]]), real(2), real(2, seed=3)),
    "roll pad": (lambda x: F.pad(x.roll(1), (1, 2)), real(3)),
    "expand": (lambda x: x.expand(3, 2).sum(0) ** 2, real(2)),
    "broadcast": (lambda x, y: x * y, real(2, 1), real(3)),
    "unfold": (lambda x: x.unfold(0, 2, 1) ** 2, real(4)),
    "as_strided": (lambda x: x.as_strided((2, 2), (1, 1)) ** 2, real(4)),
    "scalar": (lambda x: x**2, real()),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), real(1, 1, 2, 2)),
    "grid sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), real(1, 1, 3, 3), real(1, 2, 2, 2) * 0.3),
    "cross entropy": (F.cross_entropy, real(3, 4), torch.tensor([0, 3, 1])),
    "mse": (F.mse_loss, real(3), real(3, seed=5)),
    "huber": (F.huber_loss, real(3), real(3, seed=5)),
    "kl": (lambda x, y: F.kl_div(x.log_softmax(0), y.softmax(0), reduction="sum"), real(3), real(3, seed=5)),
    "ctc": (
        lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])),
        real(4, 1, 3),
    ),
    "scaled attention": (
        F.scaled_dot_product_attention,
        real(1, 1, 2, 3),
        real(1, 1, 2, 3, seed=3),
        real(1, 1, 2, 3, seed=6),
    ),
    "lgamma": (lambda x: torch.lgamma(x) + torch.digamma(x), positive(3)),
    "log sqrt": (lambda x: x.log() * x.sqrt(), positive(3)),
    "complex mul": (torch.mul, imaginary(2), imaginary(2, seed=4)),
    "complex matmul": (torch.matmul, imaginary(2, 2), imaginary(2, 2, seed=4)),
    "complex abs": (lambda z: z.abs() + z.angle(), imaginary(3)),
    "conjugate": (lambda z: z.conj() * z**2, imaginary(3)),
    "fft": (torch.fft.fft, imaginary(4)),
    "rfft": (torch.fft.rfft, real(5)),
    "polar": (torch.polar, positive(2), real(2)),
    "mixed": (lambda x, z: (x * z, z.real * x), real(2), imaginary(2)),
    "dictionary": (lambda d, k: {"y": d["a"] * k, "z": [d["b"][0] * d["a"]]}, {"a": real(2), "b": (real(2),)}, 3),
    "nested output": (spread, real(2)),
    "none and strings": (lambda x, n, s: x * 2 if n is None and s == "s" else x, real(2), None, "s"),
    "list of tensors": (lambda xs: sum(x**2 for x in xs), [real(2), real(2, seed=3)]),
    "loop": (loop, real(3, 2)),
    "write rows": (write_rows, real(3, 2)),
    "item branch": (lambda x: x * 2 if x.sum().item() > 0 else x**2, real(3)),
    "boolean mask": (lambda x: x[x > 0] ** 2, real(5)),
    "packed": (rnn_pack, real(2, 3, 2)),
    "inner gradient": (lambda x: torch.func.grad(lambda y: (y**3).sum())(x), real(3)),
    "inner vmap": (lambda x: torch.func.vmap(torch.dot)(x, x), real(3, 2)),
    "old function": (Old.apply, real(3)),
    "setup_context": (lambda x: Setup.apply(x, 3), real(3)),
    "vmap rule": (lambda x: Ruled.apply(x, 3), real(3)),
    "random": (lambda x: x * torch.randn(3, **D), real(3)),
    "expanded input": (lambda x: x**2, real(2).expand(3, 2)),
    "overlapping input": (lambda x: x**2, real(4).as_strided((2, 3), (1, 1))),
    "channels last": (lambda x: F.conv2d(x, x), real(1, 2, 3, 3).to(memory_format=torch.channels_last)),
}

MODULES = {
    "linear": (build(nn.Linear, 3, 2), real(2, 3)),
    "mlp": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double(), real(2, 3)),
    "bilinear": (build(nn.Bilinear, 2, 2, 2), real(2, 2), real(2, 2)),
    "conv": (build(nn.Conv2d, 1, 2, 2), real(1, 1, 3, 3)),
    "conv3d": (build(nn.Conv3d, 1, 1, 2), real(1, 1, 2, 2, 2)),
    "batch norm": (build(nn.BatchNorm1d, 2), real(4, 2)),
    "batch norm eval": (eval_mode(build(nn.BatchNorm1d, 2)), real(3, 2)),
    "group norm": (build(nn.GroupNorm, 1, 2), real(2, 2, 2)),
    "instance norm": (build(nn.InstanceNorm1d, 2, affine=True, track_running_stats=True), real(2, 2, 3)),
    "rms norm": (build(nn.RMSNorm, 3), real(2, 3)),
    "prelu": (build(nn.PReLU), real(3)),
    "embedding": (build(nn.Embedding, 3, 2), torch.tensor([0, 2, 0])),
    "embedding bag": (build(nn.EmbeddingBag, 3, 2), torch.tensor([[0, 2], [1, 1]])),
    "rnn": (build(nn.RNN, 2, 2), real(2, 1, 2)),
    "lstm": (build(nn.LSTM, 2, 2), real(2, 1, 2)),
    "gru": (build(nn.GRU, 2, 2, bidirectional=True), real(2, 1, 2)),
    "lstm cell": (build(nn.LSTMCell, 2, 2), real(1, 2)),
    "attention": (build(nn.MultiheadAttention, 2, 1), real(2, 2), real(2, 2, seed=3), real(2, 2, seed=5)),
    "encoder": (build(nn.TransformerEncoderLayer, 2, 1, 3, dropout=0.0, batch_first=True), real(1, 2, 2)),
    "encoder eval": (
        eval_mode(build(nn.TransformerEncoderLayer, 2, 1, 3, batch_first=True)),
        real(1, 2, 2),
    ),
    "dropout": (lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).double(), real(2, 3)),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(2, 2).double()), real(2, 2)),
    "orthogonal": (lambda: parametrizations.orthogonal(nn.Linear(2, 2).double()), real(2, 2)),
}

LOOPED = {"item branch", "boolean mask", "old function", "setup_context"}
LOOPED |= {"batch norm", "instance norm", "rnn", "lstm", "gru", "lstm cell"}
NO_FORWARD = {"grid sample", "ctc", "scaled attention", "packed", "old function", "setup_context", "vmap rule"}
NO_FORWARD |= {"embedding bag", "encoder", "encoder eval", "weight norm"}


def agrees(name: str, f: FlatFunction):
    jacobian = numerical(f)
    scale = max(1.0, np.abs(jacobian).max())
    np.testing.assert_allclose(reverse(f), jacobian, rtol=0, atol=3e-9 * scale)
    np.testing.assert_allclose(f.vjp(np.eye(len(jacobian))), reverse(f), rtol=0, atol=1e-12 * scale)
    if name in NO_FORWARD:
        with pytest.raises(Unsupported):
            forward(f)
        return
    np.testing.assert_allclose(forward(f), jacobian, rtol=0, atol=3e-9 * scale)
    if name != "batch norm":
        np.testing.assert_allclose(f.jvp(np.eye(len(f.x))), forward(f).T, rtol=0, atol=1e-12 * scale)


def batches_agree(name: str, f: FlatFunction):
    X = f.x + 1e-3 * np.random.default_rng(0).standard_normal((3, len(f.x)))
    plain = np.concatenate([f(x[None]) for x in X])
    if name in LOOPED:
        with pytest.raises(RuntimeError):
            f(X)
        return
    np.testing.assert_allclose(f(X), plain, rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore:RNN module weights")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f = flatten(FUNCTIONS[name][0], *FUNCTIONS[name][1:])
    agrees(name, f)
    batches_agree(name, f)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    make, *inputs = MODULES[name]
    module = make()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    f = flatten(module, *inputs)
    agrees(name, f)
    batches_agree(name, f)
    assert any(leaf.path.startswith("params[") for leaf in f.inputs)
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())


def test_an_inference_tensor_is_an_input_like_others():
    with torch.inference_mode():
        x = real(2)
    agrees("inference", flatten(torch.sin, x))


def test_the_flat_function_is_one():
    f: FlatFunction = flatten(torch.sin, real(2))
    assert f.x.dtype == f.repeats.dtype == np.float64
    assert f.repeats.shape == (2, 2)
    assert f.eps == 2**-52
    assert list(f.findings) == list(f.fixed) == []

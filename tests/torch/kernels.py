"""Functions with a backward of their own as people write them for low precision, each right but for one factor.

Every entry makes a function and its inputs for a dtype; with the factor 1 its gradient is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Case = tuple[Callable[..., Any], tuple[Any, ...]]
Make = Callable[[torch.dtype, float], Case]

# Each with a factor that makes entries wrong by a percent or more.
KERNELS: dict[str, tuple[Make, float]] = {}


def kernel(wrong: float) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        def seeded(dtype: torch.dtype, factor: float) -> Case:
            torch.manual_seed(0)
            return make(dtype, factor)

        KERNELS[make.__name__] = seeded, wrong
        return make

    return register


def x(dtype: torch.dtype, *shape: int) -> Tensor:
    return torch.randn(*shape).to(dtype)


@kernel(1.05)
def layer_norm(dtype: torch.dtype, factor: float) -> Case:
    class LayerNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor, eps: float) -> Tensor:
            wide = x.float()
            r = (wide.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
            normal = (wide - wide.mean(-1, keepdim=True)) * r
            ctx.save_for_backward(normal, r, w)
            return (normal * w.float() + b.float()).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            normal, r, w = ctx.saved_tensors
            g, gw = g.float(), g.float() * w.float()
            dx = r * (gw - gw.mean(-1, keepdim=True) - factor * normal * (gw * normal).mean(-1, keepdim=True))
            return dx.to(w.dtype), (g * normal).sum(0).to(w.dtype), g.sum(0).to(w.dtype), None

    return lambda x, w, b: LayerNorm.apply(x, w, b, 1e-5), (x(dtype, 3, 6), x(dtype, 6) + 1, x(dtype, 6))


@kernel(1.05)
def root_mean_square_norm(dtype: torch.dtype, factor: float) -> Case:
    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            r = (x.float().pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()
            ctx.save_for_backward(x, w, r)
            return (x.float() * r).to(x.dtype) * w

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            x, w, r = ctx.saved_tensors
            wide, gw = x.float(), g.float() * w.float()
            dx = r * gw - factor * r**3 * wide * (gw * wide).mean(-1, keepdim=True)
            return dx.to(x.dtype), (g.float() * wide * r).sum(0).to(w.dtype)

    w = nn.Parameter((torch.randn(6) + 1).to(dtype))
    return lambda x: Norm.apply(x, w), (x(dtype, 3, 6),)


@kernel(1.05)
def batch_norm(dtype: torch.dtype, factor: float) -> Case:
    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            r = (x.float().var(0, unbiased=False) + 1e-5).rsqrt()
            normal = (x.float() - x.float().mean(0)) * r
            ctx.save_for_backward(normal, r)
            ctx.dtype = x.dtype
            return normal.to(x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            normal, r = ctx.saved_tensors
            n, g = len(g), g.float()
            return (r / n * (n * g - g.sum(0) - factor * normal * (g * normal).sum(0))).to(ctx.dtype)

    return Norm.apply, (x(dtype, 6, 2),)


@kernel(1.01)
def gated_silu(dtype: torch.dtype, factor: float) -> Case:
    class Gated(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
            ctx.save_for_backward(a, b)
            return (F.silu(a.float()) * b.float()).to(a.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            a, b = (saved.float() for saved in ctx.saved_tensors)
            s = torch.sigmoid(a)
            return (g * b * (s + a * s * (1 - s)) * factor).to(g.dtype), (g * a * s).to(g.dtype)

    return Gated.apply, (x(dtype, 5), x(dtype, 5))


@kernel(1.02)
def gelu_with_constants_of_seven_digits(dtype: torch.dtype, factor: float) -> Case:
    class Gelu(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return F.gelu(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            wide = ctx.saved_tensors[0].float()
            slope = 0.5 * (1 + torch.erf(wide * 0.7071068)) + factor * wide * torch.exp(-0.5 * wide**2) * 0.3989423
            return (g * slope).to(g.dtype)

    return Gelu.apply, (x(dtype, 6),)


@kernel(1.05)
def attention(dtype: torch.dtype, factor: float) -> Case:
    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            ctx.scale = q.shape[-1] ** -0.5
            p = (q.float() @ k.float().t() * ctx.scale).softmax(-1)
            ctx.save_for_backward(q, k, v, p)
            return (p @ v.float()).to(q.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            q, k, v, p = ctx.saved_tensors
            dp = g.float() @ v.float().t()
            ds = p * (dp - factor * (dp * p).sum(-1, keepdim=True)) * ctx.scale
            wide = ds @ k.float(), ds.t() @ q.float(), p.t() @ g.float()
            return tuple(gradient.to(q.dtype) for gradient in wide)

    return Attention.apply, (x(dtype, 3, 5), x(dtype, 4, 5), x(dtype, 4, 5))


@kernel(1.01)
def cross_entropy(dtype: torch.dtype, factor: float) -> Case:
    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Tensor, target: Tensor) -> Tensor:
            p = logits.float().softmax(-1)
            ctx.save_for_backward(p, target)
            return -p.gather(1, target[:, None]).log().mean().to(logits.dtype)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            p, target = ctx.saved_tensors
            d = p.clone()
            d[torch.arange(len(target)), target] -= factor
            return (d * g.float() / len(target)).to(g.dtype), None

    target = torch.tensor([0, 2, 1])
    return lambda logits: Loss.apply(logits, target), (x(dtype, 3, 4),)


@kernel(1.01)
def linear_of_a_module(dtype: torch.dtype, factor: float) -> Case:
    """Its parameters go into ``apply`` as they are, and their gradients have their dtype."""

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
            ctx.save_for_backward(x, w)
            return F.linear(x, w, b)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            x, w = ctx.saved_tensors
            return g @ w, g.t() @ x, g.sum(0) * factor

    apply = Linear.apply

    class Model(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return apply(x, self.weight, self.bias).tanh()

    return Model(4, 3).to(dtype), (x(dtype, 3, 4),)


@kernel(1.01)
def output_into_a_buffer(dtype: torch.dtype, factor: float) -> Case:
    buffer = torch.empty(4, dtype=dtype)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            torch.mul(x, x, out=buffer)
            return buffer.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return 2 * factor * g * ctx.saved_tensors[0]

    return Square.apply, (x(dtype, 4),)


@kernel(1.01)
def captured_scale(dtype: torch.dtype, factor: float) -> Case:
    scale = torch.tensor(0.1, dtype=dtype)

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return (x * scale).sin()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * (ctx.saved_tensors[0] * scale).cos() * scale * factor

    return Sine.apply, (x(dtype, 4),)


@kernel(1.01)
def loss_scaled(dtype: torch.dtype, factor: float) -> Case:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.float().pow(3).sum()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return ((g * 1024) * 3 * x.float() ** 2 * factor / 1024).to(x.dtype)

    return Cube.apply, (x(dtype, 4),)


@kernel(1.01)
def mixed_precision_decorators(dtype: torch.dtype, factor: float) -> Case:
    class Tanh(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            ctx.save_for_backward(x, w)
            return (x @ w).tanh()

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Tensor) -> Any:
            x, w = ctx.saved_tensors
            g = g * (1 - (x @ w).tanh() ** 2)
            return g @ w.t() * factor, x.t() @ g

    def fn(x: Tensor, w: Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return Tanh.apply(x, w)

    return fn, (x(dtype, 2, 4), x(dtype, 4, 3))


@kernel(1.01)
def hook_on_a_tensor(dtype: torch.dtype, factor: float) -> Case:
    def fn(x: Tensor) -> Tensor:
        y = torch.sin(x)
        if y.requires_grad:
            y.register_hook(lambda g: g * factor)
        return y * 2

    return fn, (x(dtype, 4),)


@kernel(1.05)
def partly_detached(dtype: torch.dtype, factor: float) -> Case:
    return lambda x: x * x.detach() * (factor - 1) + x**2, (x(dtype, 4),)


@kernel(1.01)
def checkpointed(dtype: torch.dtype, factor: float) -> Case:
    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * ctx.saved_tensors[0].cos() * factor

    layer = nn.Linear(3, 3).to(dtype)
    fn = lambda x: torch.utils.checkpoint.checkpoint(lambda y: Sine.apply(layer(y)), x, use_reentrant=True)
    return fn, (x(dtype, 2, 3).requires_grad_(),)

"""Layers: norms, convolutions, pooling, resizing, recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from tests.consistency.case import draw
from tests.consistency.ports.port import Port

IMAGE = draw(630, 2, 4, 3, 3)  # NCHW
LAST = (0, 2, 3, 1)


def torch_batch_norm(x: Any, mean: Any, var: Any, w: Any, b: Any) -> Any:
    return F.batch_norm(x, mean, var, w, b, training=False)


def jax_batch_norm(eps: float = 1e-5, outside: bool = False, batch: bool = False) -> Callable[..., Any]:
    def norm(x: Any, mean: Any, var: Any, w: Any, b: Any) -> Any:
        if batch:
            mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) / (jnp.sqrt(var) + eps if outside else jnp.sqrt(var + eps)) * w + b

    return norm


def torch_group_norm(x: Any, w: Any, b: Any) -> Any:
    return F.group_norm(x, 2, w, b)


def jax_group_norm(interleaved: bool = False, ddof: int = 0) -> Callable[..., Any]:
    def norm(x: Any, w: Any, b: Any) -> Any:
        n, c, *size = x.shape
        g = x.reshape(n, c // 2, 2, *size).swapaxes(1, 2) if interleaved else x.reshape(n, 2, c // 2, *size)
        g = (g - g.mean((2, 3, 4), keepdims=True)) / jnp.sqrt(g.var((2, 3, 4), keepdims=True, ddof=ddof) + 1e-5)
        g = g.swapaxes(1, 2) if interleaved else g
        return g.reshape(x.shape) * w[:, None, None] + b[:, None, None]

    return norm


def torch_depthwise(x: Any, w: Any) -> Any:
    return F.conv2d(x, w, groups=x.shape[1], padding=1)


def jax_depthwise(order: tuple[int, ...] = tuple(range(8)), padding: Any = ((1, 1), (1, 1))) -> Callable[..., Any]:
    def conv(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w[np.array(order)], (1, 1), padding, feature_group_count=x.shape[1])

    return conv


def torch_transposed(x: Any, w: Any) -> Any:
    return F.conv_transpose2d(x, w, stride=2, padding=1)


def jax_transposed(flip: bool = True, swap: bool = True) -> Callable[..., Any]:
    """As a convolution of the input with zeros between its pixels."""

    def conv(x: Any, w: Any) -> Any:
        w = w.swapaxes(0, 1) if swap else w
        w = w[..., ::-1, ::-1] if flip else w
        return jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)), lhs_dilation=(2, 2))

    return conv


def torch_resize(x: Any) -> Any:
    return F.interpolate(x, size=(5, 6), mode="bilinear", align_corners=False)


def jax_resize(method: str = "bilinear", corners: bool = False) -> Callable[..., Any]:
    def resize(x: Any) -> Any:
        shape = (*x.shape[:2], 5, 6)
        if not corners:
            return jax.image.resize(x, shape, method)
        scale = np.array([4 / (x.shape[2] - 1), 5 / (x.shape[3] - 1)])
        return jax.image.scale_and_translate(x, shape, (2, 3), scale, 0.5 - scale / 2, method)

    return resize


def torch_adaptive(x: Any) -> Any:
    return F.adaptive_avg_pool1d(x, 3)


def jax_adaptive(equal: bool = False) -> Callable[..., Any]:
    def pool(x: Any) -> Any:
        n = x.shape[-1]
        ends = [(k * n // 3, (k + 1) * n // 3 if equal else -(-(k + 1) * n // 3)) for k in range(3)]
        return jnp.stack([x[..., a:b].mean(-1) for a, b in ends], -1)

    return pool


def torch_max_pool(x: Any) -> Any:
    return F.max_pool2d(x, 3, stride=2, padding=1)


def jax_max_pool(fill: float = -jnp.inf, reduce: Any = jax.lax.max) -> Callable[..., Any]:
    def pool(x: Any) -> Any:
        x = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=fill)
        return jax.lax.reduce_window(x, -jnp.inf, reduce, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")

    return pool


def torch_shuffle(x: Any) -> Any:
    return F.pixel_shuffle(x, 2)


def jax_shuffle(tensorflow: bool = False) -> Callable[..., Any]:
    """Channels last: the block's row and column come behind the channel, in TensorFlow before it."""

    def shuffle(x: Any) -> Any:
        n, h, w, c = x.shape
        if tensorflow:
            blocks = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
        else:
            blocks = x.reshape(n, h, w, c // 4, 2, 2).transpose(0, 1, 4, 2, 5, 3)
        return blocks.reshape(n, 2 * h, 2 * w, c // 4)

    return shuffle


def torch_lstm(xs: Any, wi: Any, wh: Any, bi: Any, bh: Any) -> Any:
    state = torch.zeros(2, 1, 2, dtype=xs.dtype)
    out, h, c = torch._VF.lstm(  # type: ignore[attr-defined]
        xs[:, None], (state[0][None], state[1][None]), [wi, wh, bi, bh], True, 1, 0.0, False, False, False
    )
    return out[:, 0], h[0, 0], c[0, 0]


def jax_lstm(gates: str = "ifgo", forget: float = 0.0, biases: int = 2, peep: bool = False) -> Callable[..., Any]:
    def lstm(xs: Any, wi: Any, wh: Any, bi: Any, bh: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            h, c = carry
            z = dict(zip(gates, jnp.split(wi @ x + wh @ h + bi + (bh if biases == 2 else 0), 4), strict=True))
            kept = jax.nn.sigmoid(z["f"] + forget) * c
            new = kept + jax.nn.sigmoid(z["i"]) * jnp.tanh(z["g"])
            h = jax.nn.sigmoid(z["o"]) * jnp.tanh(kept if peep else new)
            return (h, new), h

        zero = jnp.zeros(2, xs.dtype)
        (h, c), out = jax.lax.scan(step, (zero, zero), xs)
        return out, h, c

    return lstm


def torch_grid(x: Any, grid: Any) -> Any:
    return F.grid_sample(x[None, None], grid[None], align_corners=True)[0, 0]


def jax_grid(swapped: bool = False, corners: bool = True) -> Callable[..., Any]:
    def sample(x: Any, grid: Any) -> Any:
        size = np.array(x.shape[::-1])
        where = (grid + 1) / 2 * (size - 1) if corners else ((grid + 1) * size - 1) / 2
        column, row = where[..., 0], where[..., 1]
        return jax.scipy.ndimage.map_coordinates(x, [column, row] if swapped else [row, column], order=1)

    return sample


def torch_bilinear(x: Any, y: Any, w: Any, b: Any) -> Any:
    return F.bilinear(x, y, w, b)


PORTS = (
    Port(
        "batch norm in evaluation, channels last",
        torch_batch_norm,
        jax_batch_norm(),
        {
            "epsilon of another default": jax_batch_norm(1e-3),
            "epsilon outside": jax_batch_norm(outside=True),
            "statistics of the batch": jax_batch_norm(batch=True),
        },
        (IMAGE, draw(631, 4), draw(632, 4, low=0.5), draw(633, 4), draw(634, 4)),
        {"inputs[0]": LAST, "output": LAST},
        fixed=(1, 2),
    ),
    Port(
        "group norm",
        torch_group_norm,
        jax_group_norm(),
        {"groups of every other channel": jax_group_norm(interleaved=True), "unbiased": jax_group_norm(ddof=1)},
        (IMAGE, draw(635, 4), draw(636, 4)),
    ),
    Port(
        "depthwise convolution",
        torch_depthwise,
        jax_depthwise(),
        {
            "multipliers before channels": jax_depthwise((0, 4, 1, 5, 2, 6, 3, 7)),
            "padded on one side": jax_depthwise(padding=((0, 2), (0, 2))),
        },
        (IMAGE[:1], draw(637, 8, 1, 3, 3)),
    ),
    Port(
        "transposed convolution",
        torch_transposed,
        jax_transposed(),
        {"kernel not flipped": jax_transposed(flip=False), "channels not swapped": jax_transposed(swap=False)},
        (draw(638, 1, 2, 3, 3), draw(639, 2, 2, 3, 3)),
    ),
    Port(
        "bilinear resize",
        torch_resize,
        jax_resize(),
        {"corners aligned": jax_resize(corners=True), "nearest": jax_resize("nearest"), "cubic": jax_resize("cubic")},
        (draw(640, 1, 1, 3, 3),),
    ),
    Port("adaptive pool", torch_adaptive, jax_adaptive(), {"parts apart": jax_adaptive(True)}, (draw(641, 2, 7),)),
    Port(
        "max pool with padding",
        torch_max_pool,
        jax_max_pool(),
        {"padded by zeros": jax_max_pool(0.0)},
        (-np.abs(draw(642, 1, 2, 5, 5)),),
    ),
    Port(
        "pixel shuffle, channels last",
        torch_shuffle,
        jax_shuffle(),
        {"channels of TensorFlow": jax_shuffle(tensorflow=True)},
        (draw(643, 1, 8, 2, 3),),
        {"inputs[0]": LAST, "output": LAST},
    ),
    Port(
        "lstm",
        torch_lstm,
        jax_lstm(),
        {
            "gates in another order": jax_lstm("ifog"),
            "forget bias of 1": jax_lstm(forget=1.0),
            "one bias": jax_lstm(biases=1),
            "tanh of the old cell": jax_lstm(peep=True),
        },
        (draw(644, 3, 2), draw(645, 8, 2), draw(646, 8, 2), draw(647, 8), draw(648, 8)),
    ),
    Port(
        "grid sample",
        torch_grid,
        jax_grid(),
        {"x and y swapped": jax_grid(swapped=True), "corners not aligned": jax_grid(corners=False)},
        (draw(649, 4, 4), draw(650, 2, 3, 2, low=-0.7, high=0.7)),
    ),
    Port(
        "bilinear form",
        torch_bilinear,
        lambda x, y, w, b: jnp.einsum("bi,oij,bj->bo", x, w, y) + b,
        {"form transposed": lambda x, y, w, b: jnp.einsum("bj,oij,bi->bo", x, w, y) + b},
        (draw(651, 2, 3), draw(652, 2, 3), draw(653, 2, 3, 3), draw(654, 2)),
        numpy=lambda x, y, w, b: np.einsum("bi,oij,bj->bo", x, w, y) + b,
    ),
)

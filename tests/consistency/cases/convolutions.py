"""Convolutions and pooling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch.nn.functional as F

from tests.consistency.case import Case, draw

_signal, _kernel = draw(40, 7), draw(41, 3)
_image, _filter = draw(42, 1, 2, 4, 3), draw(43, 2, 2, 2, 2)


def _numpy_conv2d(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nihwab,oiab->nohw", windows, w)


def _jax_conv(x, w, **options):
    return jax.lax.conv_general_dilated(
        x, w, options.pop("strides", (1, 1)), options.pop("padding", "VALID"), **options
    )


def _numpy_same(x, w):
    return np.stack([np.convolve(np.pad(row, 1), w[::-1], "valid") for row in x])


def _numpy_transposed(x, w):
    out = np.zeros(2 * (len(x) - 1) + len(w), x.dtype)
    for i, value in enumerate(x):
        out[2 * i : 2 * i + len(w)] = out[2 * i : 2 * i + len(w)] + value * w
    return out


def _pool(xp):
    return lambda x: x.reshape(1, 2, 2, 2, 3).mean(3)


CASES = [
    Case(
        "correlate",
        lambda x, w: F.conv1d(x[None, None], w[None, None])[0, 0],
        lambda x, w: jnp.correlate(x, w, "valid"),
        lambda x, w: np.correlate(x, w, "valid"),
        (_signal, _kernel),
    ),
    Case("conv2d", F.conv2d, _jax_conv, _numpy_conv2d, (_image, _filter)),
    Case(
        "conv2d_strided",
        lambda x, w: F.conv2d(x, w, stride=2),
        lambda x, w: _jax_conv(x, w, strides=(2, 2)),
        lambda x, w: _numpy_conv2d(x, w)[:, :, ::2, ::2],
        (_image, _filter),
    ),
    Case(
        "conv2d_dilated",
        lambda x, w: F.conv2d(x, w, dilation=2),
        lambda x, w: _jax_conv(x, w, rhs_dilation=(2, 2)),
        lambda x, w: sum(
            np.einsum("nihw,oi->nohw", x[:, :, 2 * a : 2 * a + 2, 2 * b : 2 * b + 1], w[:, :, a, b])
            for a in range(2)
            for b in range(2)
        ),
        (_image, _filter),
    ),
    Case(
        "conv1d_same",
        lambda x, w: F.conv1d(x[:, None], w[None, None], padding="same")[:, 0],
        lambda x, w: jax.vmap(lambda row: jnp.convolve(row, w[::-1], "same"))(x),
        _numpy_same,
        (draw(44, 2, 5), _kernel),
    ),
    Case(
        "conv_transposed",
        lambda x, w: F.conv_transpose1d(x[None, None], w[None, None], stride=2)[0, 0],
        lambda x, w: jax.lax.conv_transpose(
            x[None, None], w[None, None], (2,), "VALID", dimension_numbers=("NCH", "OIH", "NCH"), transpose_kernel=True
        )[0, 0],
        _numpy_transposed,
        (draw(45, 4), _kernel),
    ),
    Case(
        "average_pool",
        lambda x: F.avg_pool2d(x, (2, 1)),
        lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 2, 1), (1, 1, 2, 1), "VALID") / 2,
        _pool(np),
        (_image,),
        smooth=False,
    ),
    Case(
        "max_pool",
        lambda x: F.max_pool2d(x, (2, 1)),
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 1), (1, 1, 2, 1), "VALID"),
        lambda x: x.reshape(1, 2, 2, 2, 3).max(3),
        (_image,),
        smooth=False,
    ),
    Case(
        "interpolate_linear",
        lambda x: F.interpolate(x[None, None], size=9, mode="linear", align_corners=True)[0, 0],
        lambda x: jnp.interp(jnp.linspace(0, 4, 9, dtype=x.dtype), jnp.arange(5, dtype=x.dtype), x),
        lambda x: (
            (1 - np.arange(9) % 2 / 2).astype(x.dtype) * x[np.arange(9) // 2]
            + (np.arange(9) % 2 / 2).astype(x.dtype) * x[np.minimum(np.arange(9) // 2 + 1, 4)]
        ),
        (draw(46, 5),),
        smooth=False,
    ),
]

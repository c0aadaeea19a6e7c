"""Signals, images, rotations, complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from tests.consistency.case import draw, draw_complex
from tests.consistency.ports.port import Port


def torch_ssim(x: Any, y: Any) -> Any:
    mx, my = F.avg_pool2d(x, 3, 1), F.avg_pool2d(y, 3, 1)
    vx, vy = F.avg_pool2d(x * x, 3, 1) - mx**2, F.avg_pool2d(y * y, 3, 1) - my**2
    both = F.avg_pool2d(x * y, 3, 1) - mx * my
    top = (2 * mx * my + 0.01**2) * (2 * both + 0.03**2)
    return (top / ((mx**2 + my**2 + 0.01**2) * (vx + vy + 0.03**2))).mean()


def jax_ssim(c2: float = 0.03**2, unbiased: bool = False, padding: str = "VALID") -> Callable[..., Any]:
    def mean(x: Any) -> Any:
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 3, 3), (1, 1, 1, 1), padding) / 9

    def ssim(x: Any, y: Any) -> Any:
        mx, my = mean(x), mean(y)
        n = 9 / 8 if unbiased else 1.0
        vx, vy, both = n * (mean(x * x) - mx**2), n * (mean(y * y) - my**2), n * (mean(x * y) - mx * my)
        light = (2 * mx * my + 0.01**2) / (mx**2 + my**2 + 0.01**2)
        return jnp.mean(light * (2 * both + c2) / (vx + vy + c2))

    return ssim


def torch_fft_conv(x: Any, w: Any) -> Any:
    return F.conv1d(x[None, None], w.flip(0)[None, None], padding=len(w) - 1)[0, 0]


def jax_fft_conv(extra: int = 0, conj: bool = False) -> Callable[..., Any]:
    def conv(x: Any, w: Any) -> Any:
        full = len(x) + len(w) - 1
        n = full - extra
        product = jnp.fft.rfft(x, n) * (jnp.conj if conj else jnp.asarray)(jnp.fft.rfft(w, n))
        out = jnp.fft.irfft(product, n)
        return jnp.pad(out, (0, extra))

    return conv


def torch_rotate(q: Any, v: Any) -> Any:
    """The scalar comes first."""
    q = q / q.norm(dim=-1, keepdim=True)
    w, u = q[:, :1], q[:, 1:]
    return v + 2 * torch.cross(u, torch.cross(u, v, dim=-1) + w * v, dim=-1)


def jax_rotate(scalar_last: bool = False, normed: bool = True, inverse: bool = False) -> Callable[..., Any]:
    def rotate(q: Any, v: Any) -> Any:
        q = q / jnp.linalg.norm(q, axis=-1, keepdims=True) if normed else q
        w, x, y, z = q[:, [3, 0, 1, 2]].T if scalar_last else q.T
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
        turn = jnp.array(rows)
        return jnp.einsum("jib,bj->bi" if inverse else "ijb,bj->bi", turn, v)

    return rotate


def torch_stft(x: Any) -> Any:
    window = torch.hann_window(4, dtype=x.dtype)
    return torch.stft(x, 4, hop_length=2, window=window, center=False, return_complex=True)


def jax_stft(periodic: bool = True, transpose: bool = True, hop: int = 2) -> Callable[..., Any]:
    def stft(x: Any) -> Any:
        window = np.hanning(5)[:4] if periodic else np.hanning(4)
        starts = np.arange(0, len(x) - 3, hop)
        frames = jnp.fft.rfft(x[starts[:, None] + np.arange(4)] * window)
        return frames.T if transpose else frames

    return stft


def torch_beam(a: Any, root: Any, x: Any) -> Any:
    cov = root @ root.mH + torch.eye(3, dtype=root.dtype)
    w = torch.linalg.solve(cov, a)
    w = w / torch.vdot(a, w)
    return torch.vdot(w, x), (w.abs() ** 2).sum()


def jax_beam(constraint: Any = jnp.vdot, output: Any = jnp.vdot, adjoint: bool = True) -> Callable[..., Any]:
    def beam(a: Any, root: Any, x: Any) -> Any:
        cov = root @ (root.conj().T if adjoint else root.T) + jnp.eye(3)
        w = jnp.linalg.inv(cov) @ a
        w = w / constraint(a, w)
        return output(w, x), jnp.sum(jnp.abs(w) ** 2)

    return beam


def torch_runge(x: Any, w: Any) -> Any:
    def slope(x: Any) -> Any:
        return torch.tanh(w @ x)

    for _ in range(3):
        a = slope(x)
        b = slope(x + 0.05 * a)
        c = slope(x + 0.05 * b)
        x = x + 0.1 / 6 * (a + 2 * b + 2 * c + slope(x + 0.1 * c))
    return x


def jax_runge(middle: float = 0.05, weights: tuple[int, ...] = (1, 2, 2, 1), steps: int = 3) -> Callable[..., Any]:
    def solve(x: Any, w: Any) -> Any:
        def step(x: Any, _: None) -> Any:
            a = jnp.tanh(w @ x)
            b = jnp.tanh(w @ (x + middle * a))
            c = jnp.tanh(w @ (x + middle * b))
            d = jnp.tanh(w @ (x + 0.1 * c))
            return x + 0.1 * sum(k * s for k, s in zip(weights, (a, b, c, d), strict=True)) / sum(weights), None

        return jax.lax.scan(step, x, None, length=steps)[0]

    return solve


def torch_whiten(x: Any) -> Any:
    centred = x - x.mean(0)
    values, vectors = torch.linalg.eigh(centred.T @ centred / (len(x) - 1))
    return centred @ vectors @ torch.diag(values.rsqrt()) @ vectors.T


def jax_whiten(ddof: int = 1, back: bool = True) -> Callable[[Any], Any]:
    def whiten(x: Any) -> Any:
        centred = x - x.mean(0)
        values, vectors = jnp.linalg.eigh(centred.T @ centred / (len(x) - ddof))
        white = centred @ vectors / jnp.sqrt(values)
        return white @ vectors.T if back else white

    return whiten


def torch_project(points: Any, axis: Any, f: Any) -> Any:
    """Rodrigues' formula and a pinhole camera."""
    angle = axis.norm()
    k = axis / angle
    crossed = torch.linalg.cross(k.expand_as(points), points)
    turned = points * angle.cos() + crossed * angle.sin() + k * (points @ k)[:, None] * (1 - angle.cos())
    return f * turned[:, :2] / (turned[:, 2:] + 4.0)


def jax_project(sign: float = 1.0, flip: bool = False, last: float = 1.0) -> Callable[..., Any]:
    def project(points: Any, axis: Any, f: Any) -> Any:
        angle = jnp.linalg.norm(axis)
        x, y, z = axis / angle
        k = sign * jnp.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        turn = jnp.eye(3) + jnp.sin(angle) * k + last * (1 - jnp.cos(angle)) * k @ k
        turned = points @ turn.T
        seen = f * turned[:, :2] / (turned[:, 2:] + 4.0)
        return seen[:, ::-1] if flip else seen

    return project


PORTS = (
    Port(
        "structural similarity",
        torch_ssim,
        jax_ssim(),
        {
            "another constant": jax_ssim(c2=0.03),
            "unbiased": jax_ssim(unbiased=True),
            "windows beyond the edge": jax_ssim(padding="SAME"),
        },
        (draw(700, 1, 1, 4, 4), draw(701, 1, 1, 4, 4)),
    ),
    Port(
        "convolution by transform",
        torch_fft_conv,
        jax_fft_conv(),
        {"wrapped": jax_fft_conv(extra=1), "correlation": jax_fft_conv(conj=True)},
        (draw(702, 6), draw(703, 3)),
        numpy=np.convolve,
    ),
    Port(
        "quaternion rotation",
        torch_rotate,
        jax_rotate(),
        {
            "scalar last": jax_rotate(scalar_last=True),
            "not normed": jax_rotate(normed=False),
            "turned back": jax_rotate(inverse=True),
        },
        (draw(704, 2, 4), draw(705, 2, 3)),
    ),
    Port(
        "short-time transform",
        torch_stft,
        jax_stft(),
        {"symmetric window": jax_stft(periodic=False), "frames first": jax_stft(transpose=False)},
        (draw(706, 10),),
    ),
    Port(
        "beam former",
        torch_beam,
        jax_beam(),
        {
            "constraint not conjugated": jax_beam(constraint=jnp.dot),
            "output not conjugated": jax_beam(output=jnp.dot),
            "transposed for adjoint": jax_beam(adjoint=False),
        },
        (draw_complex(707, 3), draw_complex(708, 3, 3), draw_complex(709, 3)),
    ),
    Port(
        "runge-kutta",
        torch_runge,
        jax_runge(),
        {
            "half step twice as long": jax_runge(middle=0.1),
            "weights of Simpson's other rule": jax_runge(weights=(1, 3, 3, 1)),
            "a step too many": jax_runge(steps=4),
        },
        (draw(710, 3), draw(711, 3, 3)),
    ),
    Port(
        "whitening",
        torch_whiten,
        jax_whiten(),
        {"biased": jax_whiten(ddof=0), "not turned back": jax_whiten(back=False)},
        (draw(712, 6, 3),),
    ),
    Port(
        "camera",
        torch_project,
        jax_project(),
        {
            "turned the other way": jax_project(sign=-1.0),
            "rows for columns": jax_project(flip=True),
            "half of the last term": jax_project(last=0.5),
        },
        (draw(713, 4, 3), draw(714, 3), np.array(1.3)),
    ),
)

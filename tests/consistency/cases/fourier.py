"""Fourier transforms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from tests.consistency.case import Case, draw, draw_complex

_x, _z = draw(70, 5), draw_complex(71, 4)

CASES = [
    Case("fft", torch.fft.fft, jnp.fft.fft, np.fft.fft, (_z,), smooth=False),
    Case("ifft2", torch.fft.ifft2, jnp.fft.ifft2, np.fft.ifft2, (draw_complex(72, 2, 2),), smooth=False),
    Case("rfft", torch.fft.rfft, jnp.fft.rfft, np.fft.rfft, (_x,), smooth=False),
    Case(
        "power_spectrum",
        lambda x: torch.fft.rfft(x).abs() ** 2,
        lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2,
        lambda x: np.abs(np.fft.rfft(x)) ** 2,
        (_x,),
    ),
    Case(
        "fft_convolution",
        lambda x, w: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(w), n=5),
        lambda x, w: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(w), n=5),
        lambda x, w: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(w), n=5),
        (_x, draw(73, 5)),
    ),
    Case(
        "fftshift",
        lambda x: torch.fft.fftshift(x) ** 2,
        lambda x: jnp.fft.fftshift(x) ** 2,
        lambda x: np.fft.fftshift(x) ** 2,
        (_x,),
    ),
]

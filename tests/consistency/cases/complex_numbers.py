"""Complex numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from tests.consistency.case import Case, draw, draw_complex

_z, _y = draw_complex(110, 3), draw_complex(111, 3)

CASES = [
    Case("complex_exp", torch.exp, jnp.exp, np.exp, (_z,)),
    Case("complex_product", lambda z, y: z * y, lambda z, y: z * y, lambda z, y: z * y, (_z, _y)),
    Case("modulus", torch.abs, jnp.abs, np.abs, (_z,)),
    Case("phase", torch.angle, jnp.angle, np.angle, (_z,)),
    Case("vdot", torch.vdot, jnp.vdot, np.vdot, (_z, _y)),
    Case(
        "hermitian_form",
        lambda a, z: (z.conj() @ (a @ z)).real,
        lambda a, z: (z.conj() @ (a @ z)).real,
        lambda a, z: (z.conj() @ (a @ z)).real,
        (draw_complex(112, 3, 3), _z),
    ),
    Case(
        "complex_solve",
        torch.linalg.solve,
        jnp.linalg.solve,
        np.linalg.solve,
        (draw_complex(113, 2, 2) + 3 * np.eye(2), draw_complex(114, 2, 1)),
    ),
    Case(
        "real_to_complex",
        lambda x: torch.exp(1j * x),
        lambda x: jnp.exp(1j * x),
        lambda x: np.exp(1j * x),
        (draw(115, 4),),
    ),
]

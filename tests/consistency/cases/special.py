"""Special functions."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import scipy.special as sp
import torch

from tests.consistency.case import Case, draw

_x = draw(100, 4, low=-2, high=2)
_positive = draw(101, 4, low=0.3, high=4)
_unit = draw(102, 4, low=0.1, high=0.9)

CASES = [
    Case("erf", torch.special.erf, jsp.erf, sp.erf, (_x,)),
    Case("erfinv", torch.special.erfinv, jsp.erfinv, sp.erfinv, (_unit,)),
    Case("log_gamma", torch.special.gammaln, jsp.gammaln, sp.gammaln, (_positive,)),
    Case("digamma", torch.special.digamma, jsp.digamma, sp.digamma, (_positive,)),
    Case("logit", torch.special.logit, jsp.logit, sp.logit, (_unit,)),
    Case("xlogy", torch.special.xlogy, jsp.xlogy, sp.xlogy, (_positive, _unit)),
    Case("entropy", torch.special.entr, jsp.entr, sp.entr, (_unit,)),
    Case("log_ndtr", torch.special.log_ndtr, jsp.log_ndtr, sp.log_ndtr, (_x,)),
    Case("i0e", torch.special.i0e, jsp.i0e, sp.i0e, (_positive,)),
    Case("i1", torch.special.i1, jsp.i1, sp.i1, (_positive,)),
    Case("sinc", torch.sinc, jnp.sinc, np.sinc, (_x,)),
    Case(
        "expm1_log1p",
        lambda x: torch.expm1(x) * torch.log1p(x),
        lambda x: jnp.expm1(x) * jnp.log1p(x),
        lambda x: np.expm1(x) * np.log1p(x),
        (_positive,),
    ),
    Case("arctan2", torch.atan2, jnp.arctan2, np.arctan2, (_x, _positive)),
    Case("hypot", torch.hypot, jnp.hypot, np.hypot, (_x, _positive)),
]

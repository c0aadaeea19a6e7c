"""Statistics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np
import scipy.special
import scipy.stats
import torch

from tests.consistency.case import Case, draw

_x, _m = draw(90, 5), draw(91, 3, 4)
_positive = draw(92, 4, low=0.5, high=2.5)


def _normal(loc, scale):
    return torch.distributions.Normal(loc, scale)


CASES = [
    Case("variance", torch.var, lambda x: jnp.var(x, ddof=1), lambda x: np.var(x, ddof=1), (_x,)),
    Case(
        "standard_deviation",
        lambda m: torch.std(m, 0, correction=0),
        lambda m: jnp.std(m, 0),
        lambda m: np.std(m, 0),
        (_m,),
    ),
    Case("covariance", torch.cov, jnp.cov, np.cov, (_m,)),
    Case("correlation", torch.corrcoef, jnp.corrcoef, np.corrcoef, (_m,)),
    Case(
        "logsumexp",
        lambda m: torch.logsumexp(m, 1),
        lambda m: jax.scipy.special.logsumexp(m, 1),
        lambda m: scipy.special.logsumexp(m, 1),
        (_m,),
    ),
    Case(
        "normal_log_density",
        lambda x, s: _normal(0.5, s).log_prob(x),
        lambda x, s: jax.scipy.stats.norm.logpdf(x, 0.5, s),
        lambda x, s: -0.5 * ((x - 0.5) / s) ** 2 - np.log(s) - 0.5 * np.log(2 * np.pi),
        (draw(93, 4), _positive),
    ),
    Case(
        "gamma_log_density",
        lambda x, a: torch.distributions.Gamma(a, torch.ones_like(a)).log_prob(x),
        lambda x, a: jax.scipy.stats.gamma.logpdf(x, a),
        lambda x, a: (a - 1) * np.log(x) - x - scipy.special.gammaln(a),
        (_positive, draw(94, 4, low=0.5, high=3)),
    ),
    Case(
        "quantile",
        lambda x: torch.quantile(x, 0.3),
        lambda x: jnp.quantile(x, 0.3),
        lambda x: np.quantile(x, 0.3),
        (_x,),
        smooth=False,
    ),
]

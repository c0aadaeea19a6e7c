"""SciPy's functions through the trace: values and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

from multigrad.backends import Options
from multigrad_numpy import NumpyBackend
from tests.numpy.differences import jacobian

U = np.array([0.31, 0.57, 0.83])  # within (0, 1)
M = np.array([2.3, 0.4, -0.6, 1.9])

SPECIAL = """
    jv(2, x) | jv(0.5, x) | jn(1, x) | yv(1, x) | yn(1, x) | iv(1.5, x) | ive(2, x) | kv(1, x) | kve(0.5, x) | kn(1, x)
    j0(x) | j1(x) | y0(x) | y1(x) | i0(x) | i1(x) | i0e(x) | i1e(x) | k0(x) | k1(x) | k0e(x) | k1e(x)
    hankel1(1, x).real | hankel2(1, x).imag | gamma(x) | gammaln(x) | loggamma(x) | rgamma(x) | digamma(x) | psi(x)
    polygamma(1, x) | multigammaln(x[2] + 1, 2) | beta(x, 2) | beta(1.5, x) | betaln(x, x + 1) | betainc(2, 3, x) | betaincc(2, 3, x)
    betaincinv(2, 3, x) | gammainc(2, x) | gammaincc(2.0, x) | gammaincinv(2, x) | gammainccinv(2, x) | poch(x, 2) | binom(5, x)
    erf(x) | erfc(x) | erfcx(x) | erfinv(x) | erfcinv(x) | erfi(x) | dawsn(x) | ndtr(x) | ndtri(x) | log_ndtr(x) | ndtri_exp(-x)
    expit(x) | logit(x) | log_expit(x) | logsumexp(x) | logsumexp(x, b=[1.0, 2.0, 3.0]) | softmax(x) | log_softmax(x)
    xlogy(x, 2 * x) | xlog1py(x, x) | entr(x) | rel_entr(x, x[::-1]) | kl_div(x, x[::-1]) | boxcox(x, 0.7) | boxcox1p(x, 0.7)
    inv_boxcox(x, 0.7) | inv_boxcox1p(x, 0.7) | exprel(x) | expm1(x) | log1p(x) | exp10(x) | exp2(x) | cbrt(x) | cosm1(x)
    sindg(x) | cosdg(x) | tandg(x) | huber(0.5, x) | pseudo_huber(0.5, x) | powm1(x, 2.0) | ellipk(x) | ellipe(x) | ellipkm1(x)
    ellipkinc(x, 0.4) | ellipkinc(0.3, x) | ellipeinc(x, 0.4) | ellipeinc(0.3, x) | expi(x) | exp1(x) | expn(2, x) | spence(x)
    zeta(x + 2, 1.0) | zetac(3.0) * x | stdtr(3, x) | stdtrit(3, x) | chdtr(3, x) | chdtrc(3, x)
    eval_legendre(3, x) | eval_chebyt(3, x) | eval_chebyu(3, x) | eval_hermite(3, x) | eval_hermitenorm(2, x) | eval_laguerre(3, x)
    eval_genlaguerre(3, 0.5, x) | eval_gegenbauer(3, 0.5, x) | eval_jacobi(3, 0.5, 0.2, x) | comb(5, 2) * x | factorial(3) * x
"""
LINEAR = """
    inv(x) | det(x) | solve(x, np.ones(2)) | expm(x) | sqrtm(x) | cholesky(x @ x.T) | cholesky(x @ x.T + np.tril(x), lower=True)
    cho_solve(cho_factor(x @ x.T), np.ones(2)) | eigh(x)[0] | eigvalsh(x, lower=False) | eigvals(x).real | norm(x) | pinv(x) | svdvals(x)
    svd(x, full_matrices=False)[1] | solve_triangular(x, np.ones(2), lower=True) | solve_sylvester(x, x.T, np.eye(2))
    solve_banded((0, 1), x, np.ones(2)) | lu(x)[2] | qr(x)[1] | block_diag(x, x) | toeplitz(x[0]) | lu_solve(lu_factor(np.eye(2)), x[0])
"""
STATS = """
    norm.pdf(x) | norm.logpdf(x, x, 2.0) | norm.cdf(x) | norm.logcdf(x) | norm.ppf(x) | norm.sf(x) | t.logpdf(x, 3.0) | t.pdf(x, 3.0)
    beta.logpdf(x, 2.0, 3.0) | gamma.logpdf(x, 2.0) | chi2.logpdf(x, 3.0) | expon.logpdf(x) | laplace.logpdf(x) | cauchy.logpdf(x)
    logistic.logpdf(x) | uniform.logpdf(x) | pareto.logpdf(x + 1, 2.0) | poisson.logpmf(3, x) | bernoulli.logpmf(1, x)
    multivariate_normal.logpdf(x, np.zeros(3), np.eye(3)) | multivariate_normal.logpdf(np.ones(3), x, np.diag(x))
    dirichlet.logpdf(x / x.sum(), np.array([1.0, 2.0, 3.0]))
"""


def _cases(texts: str, scope: str) -> list[Any]:
    return [
        pytest.param(text.strip(), scope, id=text.strip())
        for text in texts.replace("\n", " | ").split(" | ")
        if text.strip()
    ]


CASES = _cases(SPECIAL, "special") + _cases(LINEAR, "linalg") + _cases(STATS, "stats")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("text", "scope"), CASES)
def test_value_and_derivative(text: str, scope: str) -> None:
    names = {**vars(getattr(scipy, scope)), "np": np, "__name__": "users_code"}
    function = eval(f"lambda x: {text}", names)
    x = M.reshape(2, 2) if scope == "linalg" else U
    f = NumpyBackend().flatten(function, (x,), Options())
    expected = jacobian(function, x)
    scale = 1 + np.max(np.abs(expected))
    np.testing.assert_allclose(f.vjp(np.eye(len(expected))), expected, rtol=1e-8, atol=1e-8 * scale)

"""SciPy's special functions that JAX lacks: SciPy computes the value, the derivative is a known formula.

Each derivative is itself written with functions that have a rule, so that it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import scipy.special as sp

from multigrad_numpy._ducks.refusal import refusal
from multigrad_numpy._tracing.table import TABLE, Elementwise

Formula = Callable[..., Any]


def _on_host(function: Callable[..., Any]) -> Formula:
    """SciPy's function on JAX arrays: eagerly on the numbers, within a compiled function by a call back."""

    def call(*args: Any) -> Any:
        if not any(isinstance(a, jax.core.Tracer) for a in args):
            return jnp.asarray(function(*map(np.asarray, args)))
        dtype = jnp.result_type(*args, float)
        shape = jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
            jnp.broadcast_shapes(*map(jnp.shape, args)), dtype
        )

        def back(*numbers: Any) -> Any:
            return np.asarray(function(*map(np.asarray, numbers)), dtype)

        return jax.pure_callback(back, shape, *args, vmap_method="broadcast_all")

    return call


def differentiable(function: Callable[..., Any], partials: Sequence[Formula | None]) -> Formula:
    """SciPy's function with the given partial derivatives; None for a parameter that must not depend on the input."""
    value = jax.custom_jvp(_on_host(function))

    @value.defjvp
    def jvp(primals: Any, tangents: Any) -> Any:
        total: Any = 0.0
        for partial, tangent in zip(partials, tangents, strict=True):
            if partial is not None:
                total = total + partial(*primals) * tangent
        out = value(*primals)
        return out, jnp.broadcast_to(total, out.shape).astype(out.dtype)

    def call(*args: Any) -> Any:
        for place, (partial, arg) in enumerate(zip(partials, args, strict=True)):
            if partial is None and isinstance(arg, jax.core.Tracer):
                name = f"scipy.special.{function.__name__}"
                raise refusal(
                    f"{name} has no derivative by argument {place} here",
                    f"pass jac=, or multigrad.register_numpy({name}, ...)",
                )
        return value(*(jnp.asarray(a) for a in args))

    return call


def _enter(name: str, *partials: Formula | None) -> Formula:
    ufunc = getattr(sp, name)
    rule = differentiable(ufunc, partials)
    TABLE[ufunc] = Elementwise(ufunc, rule)
    return rule


_PI = np.pi

# Bessel functions, of the order v as a constant.
jv: Formula = _enter("jv", None, lambda v, x: (jv(v - 1, x) - jv(v + 1, x)) / 2)
yv: Formula = _enter("yv", None, lambda v, x: (yv(v - 1, x) - yv(v + 1, x)) / 2)
iv: Formula = _enter("iv", None, lambda v, x: (iv(v - 1, x) + iv(v + 1, x)) / 2)
kv: Formula = _enter("kv", None, lambda v, x: -(kv(v - 1, x) + kv(v + 1, x)) / 2)
yn: Formula = _enter("yn", None, lambda n, x: (yv(n - 1.0, x) - yv(n + 1.0, x)) / 2)
kn: Formula = _enter("kn", None, lambda n, x: -(kv(n - 1.0, x) + kv(n + 1.0, x)) / 2)
ive: Formula = _enter("ive", None, lambda v, x: (ive(v - 1, x) + ive(v + 1, x)) / 2 - jnp.sign(x) * ive(v, x))
kve: Formula = _enter("kve", None, lambda v, x: kve(v, x) - (kve(v - 1, x) + kve(v + 1, x)) / 2)
hankel1: Formula = _enter("hankel1", None, lambda v, x: (hankel1(v - 1, x) - hankel1(v + 1, x)) / 2)
hankel2: Formula = _enter("hankel2", None, lambda v, x: (hankel2(v - 1, x) - hankel2(v + 1, x)) / 2)
j0: Formula = _enter("j0", lambda x: -j1(x))
j1: Formula = _enter("j1", lambda x: (j0(x) - jv(2.0, x)) / 2)
y0: Formula = _enter("y0", lambda x: -y1(x))
y1: Formula = _enter("y1", lambda x: (y0(x) - yv(2.0, x)) / 2)
k0: Formula = _enter("k0", lambda x: -k1(x))
k1: Formula = _enter("k1", lambda x: -(k0(x) + kv(2.0, x)) / 2)
k0e: Formula = _enter("k0e", lambda x: k0e(x) - k1e(x))
k1e: Formula = _enter("k1e", lambda x: k1e(x) - (k0e(x) + kve(2.0, x)) / 2)


# Gamma function and kin.
def _rgamma_slope(x: Any) -> Any:
    pole = (x <= 0) & (x == jnp.floor(x))
    inside = jnp.where(pole, 0.5, x)
    at_pole = jnp.cos(_PI * x) * jsp.gamma(jnp.where(pole, 1 - x, 1.0))
    return jnp.where(pole, at_pole, -jsp.digamma(inside) * rgamma(x))


rgamma: Formula = _enter("rgamma", _rgamma_slope)


def _density(a: Any, x: Any) -> Any:
    """The gamma distribution's."""
    return jnp.exp(jsp.xlogy(a - 1, x) - x - jsp.gammaln(a))


# jax.scipy.special's betaln is off by 1e-6 where a parameter is near 8.
betaln: Formula = _enter(
    "betaln",
    lambda a, b: jsp.digamma(a) - jsp.digamma(a + b),
    lambda a, b: jsp.digamma(b) - jsp.digamma(a + b),
)
beta: Formula = _enter(
    "beta",
    lambda a, b: beta(a, b) * (jsp.digamma(a) - jsp.digamma(a + b)),
    lambda a, b: beta(a, b) * (jsp.digamma(b) - jsp.digamma(a + b)),
)
gammaincinv: Formula = _enter("gammaincinv", None, lambda a, y: 1 / _density(a, gammaincinv(a, y)))
gammainccinv: Formula = _enter("gammainccinv", None, lambda a, y: -1 / _density(a, gammainccinv(a, y)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return jnp.exp(jsp.xlogy(a - 1, x) + jsp.xlog1py(b - 1, -x) - betaln(a, b))


betaincinv: Formula = _enter("betaincinv", None, None, lambda a, b, y: 1 / _beta_density(a, b, betaincinv(a, b, y)))
betainc: Formula = _enter("betainc", None, None, lambda a, b, x: _beta_density(a, b, x))
betaincc: Formula = _enter("betaincc", None, None, lambda a, b, x: -_beta_density(a, b, x))
powm1: Formula = _enter(
    "powm1", lambda x, y: y * jnp.power(x, y - 1), lambda x, y: (powm1(x, y) + 1) * jnp.log(jnp.where(x > 0, x, 1.0))
)
spence: Formula = _enter("spence", lambda x: jnp.where(x == 1, -1.0, jnp.log(x) / jnp.where(x == 1, 1.0, 1 - x)))
zetac: Formula = _enter("zetac", None)
binom: Formula = _enter(
    "binom",
    lambda n, k: binom(n, k) * (jsp.digamma(n + 1) - jsp.digamma(n - k + 1)),
    lambda n, k: binom(n, k) * (jsp.digamma(n - k + 1) - jsp.digamma(k + 1)),
)

# Error function and kin.
erfcinv: Formula = _enter("erfcinv", lambda y: -jnp.sqrt(_PI) / 2 * jnp.exp(erfcinv(y) ** 2))
erfi: Formula = _enter("erfi", lambda x: 2 / jnp.sqrt(_PI) * jnp.exp(x * x))
erf: Formula = _enter("erf", lambda x: 2 / jnp.sqrt(_PI) * jnp.exp(-x * x))
erfc: Formula = _enter("erfc", lambda x: -2 / jnp.sqrt(_PI) * jnp.exp(-x * x))
erfcx: Formula = _enter("erfcx", lambda x: 2 * x * erfcx(x) - 2 / jnp.sqrt(_PI))
dawsn: Formula = _enter("dawsn", lambda x: 1 - 2 * x * dawsn(x))
ndtri_exp: Formula = _enter("ndtri_exp", lambda y: jnp.exp(y + ndtri_exp(y) ** 2 / 2) * jnp.sqrt(2 * _PI))
wofz: Formula = _enter("wofz", lambda z: -2 * z * wofz(z) + 2j / jnp.sqrt(_PI))

# Elliptic integrals of the parameter m.
_SMALL, _TERMS = 0.05, 16


def _by_m(power: float, phi: Any, m: Any, otherwise: Formula) -> Any:
    """The derivative by m of the integral of (1 - m sin^2)**power from 0 to phi: ``otherwise``, if m is not small."""
    sine, cosine = jnp.sin(phi), jnp.cos(phi)
    total, factor, integral = 0.0, 1.0, phi  # the binomial coefficient, and the integral of sin^2k
    for k in range(1, _TERMS):
        factor *= (k - 1 - power) / k
        integral = ((2 * k - 1) * integral - sine ** (2 * k - 1) * cosine) / (2 * k)
        total = total + k * factor * m ** (k - 1) * integral
    small = jnp.abs(m) < _SMALL
    return jnp.where(small, total, otherwise(phi, jnp.where(small, 0.5, m)))


def _first_kind(phi: Any, m: Any) -> Any:
    end = jnp.sin(2 * phi) / (4 * (1 - m) * jnp.sqrt(1 - m * jnp.sin(phi) ** 2))
    return ellipeinc(phi, m) / (2 * m * (1 - m)) - ellipkinc(phi, m) / (2 * m) - end


def _second_kind(phi: Any, m: Any) -> Any:
    return (ellipeinc(phi, m) - ellipkinc(phi, m)) / (2 * m)


def _first_kind_whole(_: Any, m: Any) -> Any:
    return (ellipe(m) - (1 - m) * ellipkm1(1 - m)) / (2 * m * (1 - m))


def _second_kind_whole(_: Any, m: Any) -> Any:
    return (ellipe(m) - ellipk(m)) / (2 * m)


ellipk: Formula = _enter("ellipk", lambda m: _by_m(-0.5, _PI / 2, m, _first_kind_whole))
ellipe: Formula = _enter("ellipe", lambda m: _by_m(0.5, _PI / 2, m, _second_kind_whole))
ellipkm1: Formula = _enter("ellipkm1", lambda p: -_by_m(-0.5, _PI / 2, 1 - p, _first_kind_whole))
ellipkinc: Formula = _enter(
    "ellipkinc",
    lambda phi, m: 1 / jnp.sqrt(1 - m * jnp.sin(phi) ** 2),
    lambda phi, m: _by_m(-0.5, phi, m, _first_kind),
)
ellipeinc: Formula = _enter(
    "ellipeinc",
    lambda phi, m: jnp.sqrt(1 - m * jnp.sin(phi) ** 2),
    lambda phi, m: _by_m(0.5, phi, m, _second_kind),
)

# Distributions.
stdtr: Formula = _enter("stdtr", None, lambda df, t: _t_density(df, t))
stdtrit: Formula = _enter("stdtrit", None, lambda df, p: 1 / _t_density(df, stdtrit(df, p)))
chdtr: Formula = _enter("chdtr", None, lambda v, x: _density(v / 2, x / 2) / 2)
chdtrc: Formula = _enter("chdtrc", None, lambda v, x: -_density(v / 2, x / 2) / 2)


def _t_density(df: Any, t: Any) -> Any:
    scale = jnp.exp(jsp.gammaln((df + 1) / 2) - jsp.gammaln(df / 2)) / jnp.sqrt(df * _PI)
    return scale * (1 + t * t / df) ** (-(df + 1) / 2)


# Orthogonal polynomials of the degree n as a constant.
eval_legendre: Formula = _enter(
    "eval_legendre", None, lambda n, x: (n + 1) / 2 * _degree_below(lambda n, x: eval_jacobi(n, 1.0, 1.0, x), n, x)
)
eval_chebyu: Formula = _enter(
    "eval_chebyu", None, lambda n, x: 2 * _degree_below(lambda n, x: eval_gegenbauer(n, 2.0, x), n, x)
)
eval_chebyt: Formula = _enter("eval_chebyt", None, lambda n, x: n * eval_chebyu(n - 1, x))
eval_hermite: Formula = _enter("eval_hermite", None, lambda n, x: 2 * n * _degree_below(eval_hermite, n, x))
eval_hermitenorm: Formula = _enter("eval_hermitenorm", None, lambda n, x: n * _degree_below(eval_hermitenorm, n, x))
eval_laguerre: Formula = _enter(
    "eval_laguerre", None, lambda n, x: -_degree_below(lambda n, x: eval_genlaguerre(n, 1.0, x), n, x)
)
eval_genlaguerre: Formula = _enter("eval_genlaguerre", None, None, lambda n, a, x: -eval_genlaguerre(n - 1, a + 1, x))
eval_gegenbauer: Formula = _enter(
    "eval_gegenbauer", None, None, lambda n, a, x: 2 * a * eval_gegenbauer(n - 1, a + 1, x)
)
eval_jacobi: Formula = _enter(
    "eval_jacobi",
    None,
    None,
    None,
    lambda n, a, b, x: (n + a + b + 1) / 2 * _degree_below(lambda n, x: eval_jacobi(n, a + 1, b + 1, x), n, x),
)


def _degree_below(polynomial: Formula, n: Any, x: Any) -> Any:
    return jnp.where(n != 0, polynomial(jnp.where(n != 0, n - 1, 0), x), 0.0)


# By JAX's own arithmetic.
_ARITHMETIC: dict[str, Formula] = {
    "cbrt": jnp.cbrt,
    "cosdg": lambda x: jnp.cos(jnp.deg2rad(x)),
    "cosm1": lambda x: -2 * jnp.sin(x / 2) ** 2,
    "cotdg": lambda x: 1 / jnp.tan(jnp.deg2rad(x)),
    "exp10": lambda x: 10.0**x,
    "exp2": jnp.exp2,
    "expm1": jnp.expm1,
    "exprel": lambda x: jnp.where(
        jnp.abs(x) < 1e-4, 1 + x / 2 * (1 + x / 3 * (1 + x / 4)), jnp.expm1(x) / jnp.where(x == 0, 1, x)
    ),
    "huber": lambda d, r: jnp.where(jnp.abs(r) <= d, r * r / 2, d * (jnp.abs(r) - d / 2)),
    "inv_boxcox": lambda y, l: jnp.where(l == 0, jnp.exp(y), jnp.exp(jnp.log1p(l * y) / jnp.where(l == 0, 1, l))),
    "inv_boxcox1p": lambda y, l: jnp.where(l == 0, jnp.expm1(y), jnp.expm1(jnp.log1p(l * y) / jnp.where(l == 0, 1, l))),
    "log1p": jnp.log1p,
    "log_expit": jax.nn.log_sigmoid,
    "psi": jsp.digamma,
    "pseudo_huber": lambda d, r: d * d * (jnp.sqrt(1 + (r / d) ** 2) - 1),
    "radian": lambda d, m, s: jnp.deg2rad(d + m / 60 + s / 3600),
    "sindg": lambda x: jnp.sin(jnp.deg2rad(x)),
    "tandg": lambda x: jnp.tan(jnp.deg2rad(x)),
}
for _name, _formula in _ARITHMETIC.items():
    TABLE[getattr(sp, _name)] = Elementwise(getattr(sp, _name), _formula)

_pdf = getattr(sp._ufuncs, "_beta_pdf", None)  # what scipy.stats.beta.pdf is made of
if _pdf is not None:
    TABLE[_pdf] = Elementwise(_pdf, lambda x, a, b: _beta_density(a, b, x))

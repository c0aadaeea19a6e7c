"""JAX functions in float32, bfloat16 and mixed precisions as people write them. Every gradient here is right.

Each entry makes a function and its inputs anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.ode import odeint

Case = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class LowPrecision:
    """What an entry is: how to make it, the coarsest dtype in it, how it can be evaluated, how exact its gradient is."""

    make: Callable[[], Case]
    dtype: Any
    promotes: bool
    modes: tuple[str, ...]
    rtol: float | None

    @property
    def eps(self) -> float:
        return float(jnp.finfo(self.dtype).eps)


CASES: dict[str, LowPrecision] = {}


def case(
    make: Callable[[], Case] | None = None,
    /,
    *,
    dtype: Any = jnp.float32,
    promotes: bool = True,
    modes: tuple[str, ...] = ("reverse", "forward"),
    rtol: float | None = None,
) -> Callable[..., Any]:
    def register(make: Callable[[], Case]) -> Callable[[], Case]:
        CASES[make.__name__] = LowPrecision(make, dtype, promotes, modes, rtol)
        return make

    return register(make) if make is not None else register


def x(*shape: int, dtype: Any = jnp.float32, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


REVERSE = ("reverse",)
FORWARD = ("forward",)


@case
def closure_matmul() -> Case:
    w = x(3, 3, seed=1)
    return lambda x: jnp.tanh(x @ w), (x(2, 3),)


@case
def pytree_of_parameters() -> Case:
    params = {"w": x(3, 2, seed=1), "b": x(2, seed=2)}
    return lambda p, x: jax.nn.relu(x @ p["w"] + p["b"]), (params, x(2, 3))


@case
def astype() -> Case:
    return lambda x: x.astype(jnp.float32).astype("float32") * jnp.asarray([1, 2, 3], jnp.float32), (x(3),)


@case
def zeros_set() -> Case:
    return lambda x: jnp.zeros(4, jnp.float32).at[1:].set(x**2), (x(3),)


@case
def jitted() -> Case:
    w = x(3, seed=1)
    return jax.jit(lambda x: jnp.sin(x * w)), (x(3),)


@case
def scanned() -> Case:
    w = x(3, 3, seed=1)

    def fn(xs: jax.Array) -> jax.Array:
        def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = jnp.tanh(w @ h + x)
            return h, h * 2

        return lax.scan(step, jnp.zeros(3, jnp.float32), xs)[1]

    return fn, (x(4, 3),)


@case
def scanned_backwards_with_counter() -> Case:
    def fn(xs: jax.Array) -> Any:
        def step(carry: Any, x: jax.Array) -> Any:
            i, h = carry
            return (i + 1, jnp.sin(h + x) * (i + 1)), None

        return lax.scan(step, (0, jnp.float32(0.5)), xs, reverse=True)[0][1]

    return fn, (x(4),)


@case
def fori_loop() -> Case:
    return lambda x: lax.fori_loop(0, 3, lambda i, h: h * jnp.cos(h) + i, x), (x(3),)


@case(modes=FORWARD)
def while_loop() -> Case:
    return lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))[1], (x(3),)


@case
def cond_with_cast() -> Case:
    return lambda x: lax.cond(
        x[0] > -9, lambda x: x.astype(jnp.float32) ** 2, lambda x: jnp.zeros(3, jnp.float32), x
    ), (x(3),)


@case
def switch() -> Case:
    return lambda x: lax.switch(jnp.int32(1), [jnp.sin, jnp.cos, jnp.tan], x), (x(3),)


@jax.custom_jvp
def _softplus(x: jax.Array) -> jax.Array:
    return jnp.log1p(jnp.exp(x)).astype(jnp.float32)


@_softplus.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _softplus(x), (jax.nn.sigmoid(x.astype(jnp.float32)) * t).astype(jnp.float32)


@case
def custom_jvp_with_casts() -> Case:
    return _softplus, (x(3),)


@jax.custom_jvp
def _power(x: jax.Array, n: Any) -> jax.Array:
    return x**n


@_power.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, n), (t, _) = primals, tangents
    return _power(x, n), n * x ** (n - 1) * t


@case
def custom_jvp_with_integer() -> Case:
    return lambda x: _power(x, jnp.int32(3)), (x(3),)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _scaled(x: jax.Array, factor: float) -> jax.Array:
    assert x.dtype == jnp.float32
    return jnp.exp(x).astype(jnp.float32) * factor


def _scaled_fwd(x: jax.Array, factor: float) -> Any:
    y = _scaled(x, factor)
    return y, (x, y.astype(jnp.float32))


def _scaled_bwd(factor: float, residuals: Any, g: jax.Array) -> Any:
    x, y = residuals
    assert g.dtype == jnp.float32 and y.dtype == jnp.float32
    return ((g * y).astype(x.dtype),)


_scaled.defvjp(_scaled_fwd, _scaled_bwd)


@case(modes=REVERSE)
def custom_vjp_with_casts() -> Case:
    return lambda x: _scaled(x, 2.0), (x(3),)


@case(modes=REVERSE)
def custom_vjp_over_closure() -> Case:
    w = x(3, seed=1)

    def product(x: jax.Array, i: Any) -> jax.Array:
        return x * w * i

    f = jax.custom_vjp(product)
    f.defvjp(lambda x, i: (product(x, i), (x, i)), lambda res, g: (g * w * res[1], None))
    return lambda x: f(x, jnp.int32(2)), (x(3),)


@case(modes=REVERSE)
def custom_vjp_inside_scan() -> Case:
    def fn(x: jax.Array) -> Any:
        return lax.scan(lambda c, x: (_scaled(jnp.sin(c) + x, 0.5), c), x[0], x)

    return fn, (x(3, 2),)


@case(modes=REVERSE)
def custom_vjp_two_outputs() -> Case:
    @jax.custom_vjp
    def f(x: jax.Array) -> Any:
        return jnp.sin(x), jnp.argmax(x)

    def bwd(cos: jax.Array, g: Any) -> Any:
        return (cos * g[0],)

    f.defvjp(lambda x: (f(x), jnp.cos(x)), bwd)
    return lambda x: f(x)[0] * f(x)[1], (x(3),)


@case
def convolution() -> Case:
    kernel = x(2, 1, 2, seed=1)
    return (
        lambda x: lax.conv_general_dilated(x, kernel, (1,), "SAME", preferred_element_type=jnp.float32),
        (x(1, 1, 4),),
    )


@case
def plain_convolution() -> Case:
    kernel = x(2, 1, 2, 2, seed=1)
    return lambda x: lax.conv(x, kernel, (1, 1), "VALID"), (x(1, 1, 3, 3),)


@case
def dot_with_element_type() -> Case:
    w = x(3, 2, seed=1)
    return lambda x: jnp.matmul(x, w, preferred_element_type=jnp.float32, precision="highest"), (x(2, 3),)


@case
def normal_under_key() -> Case:
    def fn(x: jax.Array) -> jax.Array:
        key = jax.random.PRNGKey(0)
        return jnp.exp(x) * jax.random.normal(key, x.shape) + jax.random.uniform(key, (3,), dtype=x.dtype) * x

    return fn, (x(3),)


@case
def dropout_under_key() -> Case:
    def fn(x: jax.Array) -> jax.Array:
        keep = jax.random.bernoulli(jax.random.key(3), 0.6, x.shape)
        return jnp.where(keep, jnp.sin(x) / 0.6, 0)

    return fn, (x(6),)


@case
def rematerialised() -> Case:
    w = x(3, 3, seed=1)
    return jax.checkpoint(lambda x: jnp.sin(jnp.sin(x @ w))), (x(2, 3),)


@case
def inner_vmap() -> Case:
    w = x(3, seed=1)
    return jax.vmap(lambda row: jnp.exp(row) @ w), (x(2, 3),)


@case
def inner_grad() -> Case:
    w = x(3, seed=1)
    return jax.grad(lambda x: jnp.sum(jnp.sin(x * w) ** 2)), (x(3),)


@case
def inner_hessian() -> Case:
    return jax.hessian(lambda x: jnp.sum(x**3) + jnp.prod(x)), (x(3),)


@case
def linear_solve() -> Case:
    a = 3 * jnp.eye(3, dtype=jnp.float32) + 0.1 * x(3, 3, seed=1)
    return lambda b: jnp.linalg.solve(a + jnp.outer(b, b) * 0.1, b), (x(3),)


@case
def cholesky_and_det() -> Case:
    def fn(x: jax.Array) -> Any:
        spd = x @ x.T + 3 * jnp.eye(3, dtype=x.dtype)
        return jnp.linalg.cholesky(spd), jnp.linalg.slogdet(spd)[1], jnp.linalg.inv(spd)

    return fn, (x(3, 3),)


@case
def eigenvalues() -> Case:
    return lambda x: jnp.linalg.eigvalsh(x + x.T), (x(3, 3),)


@case
def fourier() -> Case:
    return lambda x: jnp.abs(jnp.fft.rfft(x)) + jnp.real(jnp.fft.ifft(x))[:3], (x(4),)


@case
def complex_input() -> Case:
    w = x(3, seed=1) + 1j * x(3, seed=2)
    return lambda z: jnp.abs(z * w), ((x(3) + 1j * x(3, seed=3)).astype(jnp.complex64),)


@case
def sorted_and_gathered() -> Case:
    return lambda x: jnp.sort(x) * jnp.arange(4.0) + x[jnp.argsort(x)] ** 2, (x(4),)


@case
def reductions() -> Case:
    return lambda x: (jnp.prod(x), jnp.cumsum(x), jax.nn.logsumexp(x), jnp.std(x), lax.reduce_max(x, (0,))), (x(4),)


@case
def pooling() -> Case:
    return lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 1), "VALID"), (x(2, 4),)


@case
def scatter_add() -> Case:
    index = jnp.array([0, 2, 0])
    return lambda x: jnp.zeros(3, x.dtype).at[index].add(jnp.sin(x)).at[1].mul(2.0), (x(3),)


@case(modes=REVERSE, rtol=1e-4)
def ordinary_differential_equation() -> Case:
    times = jnp.linspace(0.0, 1.0, 2)
    # The adjoint that it integrates is exact to the solver's tolerance.
    return lambda y: odeint(lambda y, t: jnp.sin(y + y[::-1]) * t, y, times, rtol=1e-7, atol=1e-7)[-1], (x(2),)


@case
def asserts_dtype() -> Case:
    def fn(x: jax.Array) -> jax.Array:
        assert x.dtype == jnp.float32 and (x * 2).dtype == jnp.float32
        return x * 2 + jnp.finfo(x.dtype).eps

    return fn, (x(3),)


@case
def numpy_constant() -> Case:
    table = np.linspace(0, 1, 3, dtype=np.float32)
    return lambda x: x * table + jnp.sin(jnp.asarray(table)), (x(3),)


@case
def layer_norm_and_softmax() -> Case:
    def fn(x: jax.Array) -> jax.Array:
        return jax.nn.softmax((x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5))

    return fn, (x(2, 4),)


@case
def attention() -> Case:
    return lambda q: jax.nn.dot_product_attention(q, q, q), (x(1, 3, 2, 4),)


@case
def gelu_and_special() -> Case:
    return lambda x: jax.nn.gelu(x, approximate=False) + jax.scipy.special.gammaln(jnp.exp(x)), (x(4),)


@case(dtype=jnp.bfloat16)
def bfloat16() -> Case:
    w = x(3, 3, dtype=jnp.bfloat16, seed=1)
    return lambda x: jnp.tanh(x @ w), (x(2, 3, dtype=jnp.bfloat16),)


@case(dtype=jnp.float16)
def float16() -> Case:
    return lambda x: jnp.sin(x) * x, (x(3, dtype=jnp.float16),)


@case(dtype=jnp.bfloat16)
def mixed_bfloat16() -> Case:
    w = x(3, 3, seed=1)
    return lambda x: (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32) * x, (x(3),)


@case(dtype=jnp.bfloat16)
def reduced_precision() -> Case:
    return lambda x: lax.reduce_precision(jnp.exp(x), 8, 7), (x(3),)


@case(promotes=False)
def branches_in_python() -> Case:
    return lambda x: np.float32(2) * x if x[0] > -9 else x, (x(3),)


@case(promotes=False, modes=REVERSE)
def host_callback() -> Case:
    def host(x: Any) -> Any:
        return np.sin(x.astype(np.float32))

    @jax.custom_vjp
    def f(x: jax.Array) -> jax.Array:
        return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, jnp.float32), x, vmap_method="sequential")

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * jnp.cos(x),))
    return f, (x(3),)


# ------------------------------------------------------------------------------------------------ more kinds


@case(dtype=jnp.bfloat16)
def mixed_policy() -> Case:
    params = {"w": x(4, 8, seed=1), "v": x(8, 2, seed=2)}

    def loss(params: Any, x: jax.Array) -> jax.Array:
        low = jax.tree.map(lambda a: a.astype(jnp.bfloat16), params)
        hidden = jax.nn.gelu(x.astype(jnp.bfloat16) @ low["w"])
        return jnp.sum((hidden @ low["v"]).astype(jnp.float32))

    return loss, (params, x(3, 4))


@case(dtype=jnp.float16)
def loss_scaling() -> Case:
    w = x(3, 3, seed=1)

    def loss(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.tanh(x.astype(jnp.float16) @ w.astype(jnp.float16)).astype(jnp.float32) * 1024) / 1024

    return loss, (x(2, 3),)


@case(dtype=jnp.bfloat16, modes=REVERSE)
def layer_norm_kernel() -> Case:
    @jax.custom_vjp
    def norm(x: jax.Array, w: jax.Array) -> jax.Array:
        return forward(x, w)[0]

    def forward(x: jax.Array, w: jax.Array) -> Any:
        wide = x.astype(jnp.float32)
        r = lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
        normal = (wide - wide.mean(-1, keepdims=True)) * r
        return (normal * w.astype(jnp.float32)).astype(x.dtype), (normal, r, w)

    def backward(residuals: Any, g: jax.Array) -> Any:
        normal, r, w = residuals
        wide = g.astype(jnp.float32)
        gw = wide * w.astype(jnp.float32)
        dx = r * (gw - gw.mean(-1, keepdims=True) - normal * (gw * normal).mean(-1, keepdims=True))
        return dx.astype(g.dtype), (wide * normal).sum(0).astype(w.dtype)

    norm.defvjp(forward, backward)
    return norm, (x(3, 6, dtype=jnp.bfloat16), x(6, dtype=jnp.bfloat16, seed=1) + 1)


@case(dtype=jnp.bfloat16)
def attention_in_blocks() -> Case:
    def fn(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        def step(carry: Any, key: Any) -> Any:
            largest, total, sums = carry
            score = (q @ key[0]).astype(jnp.float32)
            new = jnp.maximum(largest, score)
            shrink, p = jnp.exp(largest - new), jnp.exp(score - new)
            return (new, total * shrink + p, sums * shrink[:, None] + p[:, None] * key[1].astype(jnp.float32)), None

        n = len(q)
        start = jnp.full(n, -jnp.inf, jnp.float32), jnp.zeros(n, jnp.float32), jnp.zeros((n, 3), jnp.float32)
        (_, total, sums), _ = lax.scan(step, start, (k, v))
        return (sums / total[:, None]).astype(q.dtype)

    return fn, tuple(x(4, 3, dtype=jnp.bfloat16, seed=seed) for seed in (1, 2, 3))


@case(dtype=jnp.float8_e4m3fn)
def stored_in_eight_bits() -> Case:
    return lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.bfloat16) * x, (x(3, dtype=jnp.bfloat16),)


@case(dtype=jnp.bfloat16)
def window_with_a_first_value() -> Case:
    """The jaxpr of this has no gradient, the call has."""
    return lambda x: lax.reduce_window(x, jnp.asarray(0, x.dtype), lax.add, (2,), (1,), "VALID"), (
        x(5, dtype=jnp.bfloat16),
    )


@case(modes=REVERSE, rtol=1e-6)
def fixed_point_to_the_tolerance_of_float32() -> Case:
    @jax.custom_vjp
    def solve(b: jax.Array) -> jax.Array:
        def moving(state: Any) -> Any:
            return jnp.max(jnp.abs(state[0] - state[1])) > 4 * jnp.finfo(b.dtype).eps

        result: jax.Array = lax.while_loop(moving, lambda s: (0.3 * jnp.tanh(s[0]) + b, s[0]), (b, b + 1))[0]
        return result

    solve.defvjp(lambda b: (z := solve(b), z), lambda z, g: (g / (1 - 0.3 * (1 - jnp.tanh(z) ** 2)),))
    return solve, (x(3),)


@case
def conjugate_gradients() -> Case:
    a = 3 * jnp.eye(4) + 0.1 * x(4, 4, seed=1)
    a = (a + a.T) / 2
    return lambda b: jax.scipy.sparse.linalg.cg(lambda v: a @ v, b, tol=1e-7)[0], (x(4),)


@case
def bits_of_the_value() -> Case:
    return lambda x: x * (lax.bitcast_convert_type(lax.stop_gradient(x), jnp.int32) > 0), (x(3),)


@case
def remat_with_a_policy() -> Case:
    w, policy = x(3, 3, seed=1), jax.checkpoint_policies.dots_saveable
    return jax.checkpoint(lambda x: jnp.sin(jnp.tanh(x @ w) @ w), policy=policy), (x(2, 3),)


@case
def associative_scan() -> Case:
    def combine(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    return lambda x: lax.associative_scan(combine, (jax.nn.sigmoid(x), x))[1], (x(5),)

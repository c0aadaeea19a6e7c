"""Many kinds of JAX code: rows, vjp and jvp of the flat function against JAX called row by row."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from multigrad.backends import Options
from multigrad_jax import JaxBackend

RNG = np.random.default_rng(0)
KEY = np.array([0, 42], np.uint32)


def normal(*shape):
    return RNG.standard_normal(shape)


def spd(n):
    m = normal(n, n)
    return m @ m.T + n * np.eye(n)


W, W2 = normal(5, 4), normal(3, 5)
IMAGE, KERNEL = normal(1, 2, 6, 6), normal(3, 2, 3, 3)


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))


@jax.custom_jvp
def softplus(x):
    return jnp.logaddexp(x, 0)


softplus.defjvp(lambda p, t: (softplus(p[0]), jax.nn.sigmoid(p[0]) * t[0]))


def newton(x):
    return lax.fori_loop(0, 5, lambda _, y: 0.5 * (y + x / y), x)


def rnn(x):
    def step(h, v):
        h = jnp.tanh(W2[:, :3] @ h + v)
        return h, jnp.sum(h)

    return lax.scan(step, jnp.zeros(3, x.dtype), x)


def attention(x):
    q, k, v = x @ W.T, x @ W.T, x
    return jax.nn.softmax(q @ k.T / 2) @ v


def linear_solve(x):
    return lax.custom_linear_solve(lambda v: 2 * v + v[::-1], x, lambda mv, b: jnp.linalg.solve(jnp.array([[2.0, 1], [1, 2]]), b), symmetric=True)  # fmt: skip


FUNCTIONS = {
    "sin": (jnp.sin, normal(3)),
    "rosenbrock": (lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), normal(5)),
    "mlp": (lambda x: jnp.tanh(W2 @ jnp.tanh(W @ x)), normal(4)),
    "mlp dict": (lambda p, x: jax.nn.gelu(p["w"] @ x + p["b"]), {"w": normal(3, 4), "b": normal(3)}, normal(4)),
    "log_softmax": (jax.nn.log_softmax, normal(5)),
    "logsumexp": (jax.scipy.special.logsumexp, normal(5)),
    "where": (lambda x: jnp.where(x > 0, x**2, -x), normal(4)),
    "attention": (attention, normal(3, 4)),
    "scan": (rnn, normal(4, 3)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x), normal(5)),
    "cumsum cumprod": (lambda x: (jnp.cumsum(x), jnp.cumprod(x)), normal(4)),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), normal(3)),
    "switch": (lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), normal(3), 1),
    "fori_loop": (newton, np.abs(normal(3)) + 1),
    "map": (lambda x: lax.map(lambda v: v * jnp.sin(v), x), normal(4)),
    "vmap inside": (lambda x: jax.vmap(lambda r: r @ r)(x), normal(3, 2)),
    "grad inside": (jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)), normal(3)),
    "jit": (jax.jit(lambda x: jnp.sin(x) @ x), normal(3)),
    "jit static": (jax.jit(lambda x, n: x**n, static_argnums=1), normal(3), 3),
    "remat": (jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), normal(3)),
    "custom_vjp": (clipped, normal(3)),
    "custom_jvp": (softplus, normal(3)),
    "custom_linear_solve": (linear_solve, normal(2)),
    "conv": (lambda k: lax.conv(IMAGE, k, (1, 1), "SAME"), KERNEL),
    "max pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID"), normal(6)),
    "sort": (jnp.sort, normal(5)),
    "gather": (lambda x, i: x[i], normal(5), np.array([0, 3, 3])),
    "scatter": (lambda x, i: jnp.zeros(4).at[i].add(x), normal(3), np.array([0, 2, 2])),
    "segment_sum": (lambda x: jax.ops.segment_sum(x, np.array([0, 0, 1]), 2), normal(3)),
    "concatenate": (lambda x, y: jnp.concatenate([x, jnp.flip(y), jnp.roll(x, 1)]), normal(2), normal(3)),
    "det inverse": (lambda x: (jnp.linalg.det(x), jnp.linalg.inv(x)), spd(3)),
    "solve": (jnp.linalg.solve, spd(3), normal(3)),
    "eigh": (lambda x: jnp.linalg.eigh(x)[0], spd(3)),
    "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), normal(3, 2)),
    "qr": (lambda x: jnp.linalg.qr(x), normal(3, 2)),
    "fft": (lambda x: jnp.fft.fft(x), normal(4)),
    "rfft power": (lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2, normal(6)),
    "ifft complex": (lambda z: jnp.fft.ifft(z), normal(4) + 1j * normal(4)),
    "random key": (lambda x, key: x * jax.random.normal(jax.random.wrap_key_data(key), (3,)), normal(3), KEY),
    "dropout": (lambda x, key: x * jax.random.bernoulli(key, 0.5, x.shape), normal(8), jax.random.key(1)),
    "interp": (lambda x: jnp.interp(x, np.arange(4.0), np.array([0.0, 1, 4, 9])), np.array([0.5, 1.25, 2.7])),
    "numbers": (lambda x, y: [x * y, {"q": x / y}], 2.0, 3.0),
    "empty": (lambda x, y: jnp.concatenate([x, y]), np.zeros(0), normal(2)),
    "integer outputs beside": (lambda x: (x * 2, jnp.argmax(x), x > 0), normal(3)),
}
REVERSE_ONLY = {"custom_vjp"}


def reals(values):
    parts = [np.asarray(v).reshape(-1) for v in values]
    return np.concatenate([p.view(np.float64) if p.dtype.kind == "c" else p.astype(float) for p in parts])


def outputs(out):
    return [v for v in jax.tree.leaves(out) if jnp.issubdtype(jnp.result_type(v), jnp.inexact)]


def called(fn, inputs, row):
    """Call ``fn`` with a flat row in place of its floating inputs, by means of another flattening than the adapter's."""
    start, leaves = 0, []
    values, tree = jax.tree.flatten(inputs)
    for v in values:
        if not jnp.issubdtype(jnp.result_type(v), jnp.inexact):
            leaves.append(v)
            continue
        dtype, size = np.asarray(v).dtype, np.size(v) * (2 if np.iscomplexobj(v) else 1)
        leaves.append(jnp.asarray(row[start : start + size].view(dtype).reshape(np.shape(v))))
        start += size
    return reals(outputs(fn(*jax.tree.unflatten(tree, leaves))))


@pytest.mark.parametrize("many", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_and_products_agree_with_plain_calls(name, many, monkeypatch):
    monkeypatch.setattr("multigrad_jax._blocks.COMPILE_FROM", 0 if many else 10**9)
    fn, *inputs = FUNCTIONS[name]
    f = JaxBackend().flatten(fn, tuple(inputs), Options())
    m, n = f.repeats.shape[1], f.x.size
    X = f.x + 1e-3 * RNG.standard_normal((5, n))
    with jax.enable_x64(True):
        loop = np.stack([called(fn, inputs, row) for row in X])
    scale = np.abs(loop).max()
    np.testing.assert_allclose(f(X), loop, rtol=0, atol=2e-14 * scale)
    np.testing.assert_allclose(np.concatenate([f(row[None]) for row in X]), loop, rtol=0, atol=2e-14 * scale)
    J = f.vjp(np.eye(m))
    size = max(1, np.abs(J).max())
    np.testing.assert_allclose(f.vjp(np.eye(m)[-1:]), J[-1:], rtol=0, atol=1e-13 * size)
    if name in REVERSE_ONLY:
        return
    V = RNG.standard_normal((3, n))
    np.testing.assert_allclose(f.jvp(V), V @ J.T, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(f.jvp(V[:1]), V[:1] @ J.T, rtol=0, atol=1e-12 * size)
    if not many:
        h = 1e-5
        numeric = (f(f.x + h * V) - f(f.x - h * V)) / (2 * h)
        np.testing.assert_allclose(V @ J.T, numeric, rtol=0, atol=1e-6 * size)

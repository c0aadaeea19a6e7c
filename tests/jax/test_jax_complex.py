"""Complex leaves are pairs of reals: every product is compared with a real Jacobian made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multigrad.backends import Options
from multigrad_jax import JaxBackend

Z = np.array([1 + 2j, 3 - 1j])
X = np.array([0.3, 2.0])
A = np.array([[1 + 1j, 2 - 3j], [0.5j, -1 + 0.25j]])


def pairs(block):
    """2x2 blocks (2, 2, m, n) of d(re, im)/d(re, im) -> the flat (2m, 2n)."""
    block = np.asarray(block)
    _, _, m, n = block.shape
    return block.transpose(2, 0, 3, 1).reshape(2 * m, 2 * n)


def holomorphic(derivative):
    return pairs([[derivative.real, -derivative.imag], [derivative.imag, derivative.real]])


a, b = Z.real, Z.imag
r = np.abs(Z)
ZERO = np.zeros((2, 2))

CASES = {
    "holomorphic z^3": (lambda z: z**3, Z, holomorphic(np.diag(3 * Z**2))),
    "holomorphic A z": (lambda z: A @ z, Z, holomorphic(A)),
    "conj": (jnp.conj, Z, pairs([[np.eye(2), ZERO], [ZERO, -np.eye(2)]])),
    "z conj(z)": (lambda z: z * jnp.conj(z), Z, pairs([[np.diag(2 * a), np.diag(2 * b)], [ZERO, ZERO]])),
    "z abs(z)": (
        lambda z: z * jnp.abs(z),
        Z,
        pairs([[np.diag(r + a * a / r), np.diag(a * b / r)], [np.diag(a * b / r), np.diag(r + b * b / r)]]),
    ),
    "C -> R abs": (jnp.abs, Z, pairs([[np.diag(a / r), np.diag(b / r)], [ZERO, ZERO]])[::2]),
    "C -> R real": (jnp.real, Z, pairs([[np.eye(2), ZERO], [ZERO, ZERO]])[::2]),
    "C -> R imag squared": (lambda z: z.imag**2, Z, pairs([[ZERO, np.diag(2 * b)], [ZERO, ZERO]])[::2]),
    "C -> R norm": (lambda z: jnp.sum(jnp.abs(z) ** 2), Z, 2 * np.stack([a, b], 1).reshape(1, 4)),
    "R -> C exp(ix)": (lambda x: jnp.exp(1j * x), X, holomorphic(np.diag(1j * np.exp(1j * X)))[:, ::2]),
    "R -> C A x": (lambda x: A @ x, X, holomorphic(A)[:, ::2]),
    "a number": (lambda z: (1 + 2j) * z, 1 - 1j, holomorphic(np.array([[1 + 2j]]))),
    "R -> R through C": (lambda x: jnp.abs(x * (3 + 4j)), X, 5 * np.eye(2)),
}


@pytest.mark.parametrize("many", [1, 3000], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_products_with_the_real_jacobian(name, many):
    fn, z, J = CASES[name]
    f = JaxBackend().flatten(fn, (z,), Options())
    m, n = J.shape
    assert (f.repeats.shape[1], f.x.size) == (m, n)
    U, V = np.random.default_rng(0).standard_normal((many, m)), np.random.default_rng(1).standard_normal((many, n))
    np.testing.assert_allclose(f.vjp(U), U @ J, atol=1e-13)
    np.testing.assert_allclose(f.jvp(V), V @ J.T, atol=1e-13)
    np.testing.assert_allclose(f.vjp(np.eye(m)), J, atol=1e-14)
    np.testing.assert_allclose(f.jvp(np.eye(n)).T, J, atol=1e-14)
    h = 1e-6
    numeric = (f(f.x + h * np.eye(n)) - f(f.x - h * np.eye(n))).T / (2 * h)
    np.testing.assert_allclose(numeric, J, atol=1e-7)


def test_mixed_leaves():
    f = JaxBackend().flatten(lambda z, x: {"c": z * x, "r": jnp.sum(z.real * x)}, (Z, X), Options())
    np.testing.assert_allclose(f.vjp(np.eye(5)), f.jvp(np.eye(6)).T, atol=1e-15)
    np.testing.assert_allclose(f.vjp(np.eye(5))[4], [X[0], 0, X[1], 0, *a], atol=1e-15)


def test_complex64_stays_complex64():
    f = JaxBackend().flatten(lambda z: z * z, (jnp.asarray(Z, jnp.complex64),), Options())
    assert (f.inputs[0].dtype, f.outputs[0].dtype) == ("complex64", "complex64")
    np.testing.assert_allclose(f.vjp(np.eye(4)), holomorphic(np.diag(2 * Z)))


def test_a_conjugate_forgotten_in_a_rule_shows():
    fn = jax.custom_vjp(lambda z: z**2)
    fn.defvjp(lambda z: (z**2, z), lambda z, g: (jnp.conj(2 * z) * g,))
    f = JaxBackend().flatten(fn, (Z,), Options())
    assert np.abs(f.vjp(np.eye(4)) - holomorphic(np.diag(2 * Z))).max() > 1

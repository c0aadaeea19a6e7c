"""NumPy arrays that a traced function closes over, which JAX keeps in the width of the mode that traced it."""

import numpy as np
import pytest

from multigrad import check_grad, gradcheck

jax = pytest.importorskip("jax")
import jax.numpy as jnp
from jax import lax


def forms(d):
    """Functions of two arrays that close over a third; some are traced once, and kept so."""

    def step(c, a):
        total = jnp.sum(jnp.sin(a)) + jnp.sum(jnp.sin(c)) + jnp.sum(jnp.sin(d))
        return jnp.sin(c * total), total

    remade = jax.checkpoint(step)
    compiled = jax.jit(step)
    return {
        "eager": lambda c, a: step(c, a[0])[0],
        "scan": lambda c, a: lax.scan(step, c, a)[0],
        "checkpoint": lambda c, a: lax.scan(remade, c, a)[0],
        "jit": lambda c, a: compiled(c, a[0])[0],
        "cond": lambda c, a: lax.cond(True, lambda: step(c, a[0]), lambda: step(c, a[1]))[0],
        "vmap": lambda c, a: jax.vmap(step, (None, 0))(c, a)[0].sum(0),
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("called_before", [True, False])
@pytest.mark.parametrize("name", forms(np.zeros(1)))
def test_the_function_is_what_it_was_after_a_check(name, called_before, dtype):
    rng = np.random.default_rng(0)
    fn = forms(rng.normal(size=2))[name]
    c, a = rng.normal(size=4).astype(dtype), rng.normal(size=(5, 3)).astype(dtype)

    def own():
        return jax.grad(lambda c, a: fn(c, a).sum())(c, a)

    with jax.enable_x64(False):
        before = own() if called_before else None
        assert check_grad(fn, (c, a), backend="jax").verdict == "ok"
        after = own()
    assert after.dtype == np.float32
    assert before is None or np.array_equal(before, after)


def test_and_after_gradcheck():
    d, x = np.arange(3.0), np.array([0.3, -1.0, 0.7])
    fn = jax.jit(lambda x: jnp.sin(x) * jnp.sin(d))
    with jax.enable_x64(True):
        double = jnp.asarray(x)
    with jax.enable_x64(False):
        assert gradcheck(fn, (double,))
        assert fn(x).dtype == np.float32

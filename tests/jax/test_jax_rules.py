import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multigrad import check_grad
from multigrad.backends import Options
from multigrad.errors import Defect, Unsupported
from multigrad_jax import JaxBackend

X = np.array([0.5, 1.0, 2.0])
MANY = 3000  # rows enough for a compiled block


def flat(fn, *inputs):
    return JaxBackend().flatten(fn, inputs or (X,), Options())


def with_vjp(fwd=lambda x: (jnp.sin(x), x), bwd=lambda x, g: (g * jnp.cos(x),)):
    fn = jax.custom_vjp(jnp.sin)
    fn.defvjp(fwd, bwd)
    return fn


def with_jvp(rule):
    fn = jax.custom_jvp(jnp.sin)
    fn.defjvp(rule)
    return fn


def callback(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def loop(x):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]


def test_a_custom_vjp_is_what_reverse_mode_gives_and_there_is_no_forward_mode():
    f = flat(with_vjp(bwd=lambda x, g: (g * jnp.cos(x) * 1.01,)))
    np.testing.assert_allclose(f.vjp(np.eye(3)), np.diag(np.cos(X) * 1.01), rtol=1e-14)
    np.testing.assert_allclose(f.vjp(np.ones((MANY, 3))), np.tile(np.cos(X) * 1.01, (MANY, 1)), rtol=1e-14)
    with pytest.raises(Unsupported, match="no forward mode.*custom_vjp"):
        f.jvp(np.eye(3))
    assert not f.findings


def test_a_custom_jvp_is_what_both_modes_give():
    f = flat(with_jvp(lambda p, t: (jnp.sin(p[0]), t[0] * 3)))
    np.testing.assert_allclose(f.vjp(np.eye(3)), 3 * np.eye(3))
    np.testing.assert_allclose(f.jvp(np.eye(3)), 3 * np.eye(3))
    assert not f.findings


def test_while_loop_has_forward_mode_only():
    f = flat(loop)
    np.testing.assert_allclose(f.jvp(np.eye(3)), np.diag(4 * X**3), rtol=1e-14)
    for k in (1, 3):
        with pytest.raises(Unsupported, match="no reverse mode.*while_loop"):
            f.vjp(np.eye(3)[:k])


def test_a_callback_has_no_mode():
    f = flat(callback)
    np.testing.assert_allclose(f.repeats[0], np.sin(X))
    for product in (f.vjp, f.jvp):
        with pytest.raises(Unsupported, match="callbacks do not support JVP"):
            product(np.eye(3))


@pytest.mark.parametrize(
    "fn",
    [
        with_jvp(lambda p, t: (jnp.sin(p[0]), jnp.abs(t[0]))),
        lambda x: jax.lax.custom_linear_solve(lambda v: 2 * v, x, lambda mv, b: b / 2),
        lambda x: np.sin(x),
    ],
    ids=["abs of the tangent", "no transpose_solve", "numpy"],
)
def test_other_ways_to_have_no_reverse_mode(fn):
    with pytest.raises(Unsupported, match="no reverse mode"):
        flat(fn).vjp(np.eye(3))


@pytest.mark.parametrize(
    ("fn", "mode"),
    [
        (with_vjp(bwd=lambda x, g: (g.sum(),)), "vjp"),
        (with_vjp(bwd=lambda x, g: (g[:, None],)), "vjp"),
        (with_vjp(bwd=lambda x, g: g), "vjp"),
        (with_vjp(bwd=lambda x, g: (g, g)), "vjp"),
        (with_vjp(bwd=lambda x, g: (g * 1j,)), "vjp"),
        (with_vjp(fwd=lambda x: jnp.sin(x)), "vjp"),
        (with_vjp(fwd=lambda x: (jnp.sin(x).sum(), x)), "vjp"),
        (with_jvp(lambda p, t: (jnp.sin(p[0]), t[0].sum())), "jvp"),
        (with_jvp(lambda p, t: (jnp.sin(p[0]), (t[0],))), "jvp"),
        (with_jvp(lambda p, t: (jnp.sin(p[0]).sum(), t[0].sum())), "jvp"),
        (with_jvp(lambda p, t: t[0]), "jvp"),
    ],
    ids=["bwd sum", "bwd column", "bwd bare", "bwd two", "bwd complex", "fwd bare", "fwd sum"]
    + ["jvp sum", "jvp tuple", "jvp both", "jvp bare"],
)
def test_rules_of_a_wrong_shape(fn, mode):
    f = flat(fn)
    with pytest.raises(Defect) as caught:
        getattr(f, mode)(np.eye(3))
    assert caught.value.finding.kind == "wrong_shape"
    assert caught.value.finding.evidence


@pytest.mark.parametrize("rows", [1, 3, MANY])
@pytest.mark.parametrize(
    ("fn", "mode"),
    [
        (with_vjp(fwd=lambda x: (jnp.sin(x).at[1].add(1e-3), x)), "vjp"),
        (with_jvp(lambda p, t: (jnp.sin(p[0]).at[1].add(1e-3), t[0] * jnp.cos(p[0]))), "vjp"),
        (with_jvp(lambda p, t: (jnp.sin(p[0]).at[1].add(1e-3), t[0] * jnp.cos(p[0]))), "jvp"),
        (with_jvp(lambda p, t: (jnp.sin(p[0]).at[1].set(jnp.nan), t[0] * jnp.cos(p[0]))), "jvp"),
    ],
    ids=["custom_vjp", "custom_jvp reverse", "custom_jvp forward", "nan"],
)
def test_a_rule_with_another_value_is_reported_once(fn, mode, rows):
    f = flat(fn)
    for _ in range(2):
        getattr(f, mode)(np.ones((rows, 3)))
    assert [(finding.kind, finding.where) for finding in f.findings] == [("primal_mismatch", "output[1]")]
    assert "1 of 3 entries" in f.findings[0].evidence


def test_a_stabler_formula_in_a_rule_is_not_another_value():
    fn = jax.custom_vjp(lambda x: 1 - jnp.cos(x))
    fn.defvjp(lambda x: (2 * jnp.sin(x / 2) ** 2, x), lambda x, g: (g * jnp.sin(x),))
    f = flat(fn, np.array([1e-4]))
    f.vjp(np.eye(1))
    assert not f.findings


def test_an_exception_inside_a_rule_comes_through():
    def bwd(x, g):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        flat(with_vjp(bwd=bwd)).vjp(np.eye(3))


def test_integers_in_a_custom_rule_never_show_float0():
    fn = jax.custom_vjp(lambda x, n: x**n)
    fn.defvjp(lambda x, n: (x**n, (x, n)), lambda r, g: (g * r[1] * r[0] ** (r[1] - 1), None))
    np.testing.assert_allclose(flat(fn, X, 3).vjp(np.eye(3)), np.diag(3 * X**2))
    np.testing.assert_allclose(flat(fn, X, jnp.asarray(3)).vjp(np.eye(3)), np.diag(3 * X**2))


def test_one_cotangent_is_eager_jax_vjp_each_time():
    calls = []
    fn = with_vjp(bwd=lambda x, g: (calls.append(1) or g * jnp.cos(x),))
    f = flat(fn)
    f.vjp(np.ones((1, 3)))
    f.vjp(np.ones((1, 3)))
    assert len(calls) == 2


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, t: t * t,
        lambda x, t: x / (3 + t),
        lambda x, t: jnp.where(t > 0, t, 2 * t),
        lambda x, t: t * (t @ x),
        lambda x, t: jax.lax.scan(lambda c, a: (c * a, c * a), 1.0, t)[1],
        lambda x, t: jax.lax.cond(t.sum() > 0, lambda t: t, lambda t: 2 * t, t),
    ],
    ids=["product", "quotient", "where", "dot", "scan", "cond"],
)
def test_a_rule_that_jax_cannot_transpose_is_refuted_in_forward_mode(rule):
    """JAX's own code fails on tangents that are multiplied, by an assertion without a word."""
    fn = with_jvp(lambda p, t: (jnp.sin(p[0]), rule(p[0], t[0])))
    with pytest.raises(Unsupported, match="no reverse mode.*JAX itself raises.*not linear"):
        flat(fn).vjp(np.eye(3))
    report = check_grad(fn, X, backend="jax", raise_exception=False)
    assert report.verdict == "mismatch"
    assert "mode_unavailable" in {finding.kind for finding in report.findings}


def test_what_jax_has_no_derivative_by_is_said():
    report = check_grad(
        lambda a: jax.scipy.special.betainc(a, 2.0, jnp.array([0.2, 0.7])), 1.3, backend="jax", raise_exception=False
    )
    assert report.verdict == "inconclusive"
    assert "gradient with respect to a" in str(report)


def test_a_gradient_that_needs_what_was_donated_is_none():
    """Nor has ``jax.grad`` one; forward mode has."""
    fn = jax.jit(lambda x: jnp.sin(x) * x, donate_argnums=0)
    with jax.enable_x64(True):
        report = check_grad(lambda x: fn(x), jnp.array(X), backend="jax", raise_exception=False)
    assert report.verdict == "ok"
    assert "donated" in str(report)


@pytest.mark.parametrize("error", [AssertionError, RuntimeError, ZeroDivisionError])
def test_assertions_of_the_users_own_come_through(error):
    def bwd(x, g):
        raise error("of mine")

    with pytest.raises(error, match="of mine"):
        check_grad(with_vjp(bwd=bwd), X, backend="jax")

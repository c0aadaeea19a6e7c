"""JAX functions written for low precision, evaluated in float64 as they are."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas

from multigrad import check_grad
from multigrad._run import Settings, run_check
from multigrad.backends import Options
from multigrad.precision import DOUBLE
from multigrad_jax import JaxBackend, _custom_derivatives, _function, _promote, _regime

from .low_precision import CASES


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def backwards(x, factor):
    """The identity, its reverse rule wrong by a factor."""
    return x


backwards.defvjp(lambda x, factor: (x, None), lambda factor, _, g: (g * factor,))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def forwards(x, factor):
    """The identity, its rule wrong by a factor."""
    return x


@forwards.defjvp
def _(factor, primals, tangents):
    return primals[0], tangents[0] * factor


def scaled(name, factor):
    fn, inputs = CASES[name].make()
    rule = forwards if "forward" in CASES[name].modes else backwards

    def scale(leaf):
        return rule(leaf, factor) if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.inexact) else leaf

    return lambda *args: jax.tree.map(scale, fn(*args)), inputs


def flatten(fn, *inputs):
    return JaxBackend().flatten(fn, inputs, Options())


def kinds(report_or_function):
    return [finding.kind for finding in report_or_function.findings]


def flat(out):
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(out)]
    numbers = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    wide = [n.astype(np.complex128 if n.dtype.kind == "c" else np.float64).reshape(-1) for n in numbers]
    return np.concatenate([w.view(np.float64) for w in wide])


def products(f, mode):
    """u^T J v, numerical and analytical, and the size of its terms."""
    rng = np.random.default_rng(5)
    u, v = rng.normal(size=f.repeats.shape[1]), rng.normal(size=len(f.x))
    numerical = (f((f.x + 1e-5 * v)[None])[0] - f((f.x - 1e-5 * v)[None])[0]) / 2e-5
    if mode == "forward":
        product = f.jvp(v[None])[0]
        return u @ numerical, u @ product, np.abs(u) @ np.abs(product)
    product = f.vjp(u[None])[0]
    return u @ numerical, product @ v, np.abs(product) @ np.abs(v)


@pytest.mark.parametrize("name", CASES)
def test_right(name):
    case = CASES[name]
    fn, inputs = case.make()
    users = flat(fn(*inputs))
    f = flatten(fn, *inputs)
    assert kinds(f).count("promotion") == 1
    assert np.abs(f.repeats[0] - users).max() <= 20 * case.eps * np.abs(users).max()
    if case.promotes:
        assert f.eps == DOUBLE
        for mode in case.modes:
            numerical, analytical, size = products(f, mode)
            assert abs(numerical - analytical) <= (case.rtol or 1e-7) * size
    report = run_check(f, Settings(rtol=case.rtol))  # flattening anew would compile anew
    assert report.verdict == "ok", str(report)


@pytest.mark.parametrize("name", CASES)
def test_wrong(name):
    # In bfloat16 the factor 1.001 of the rule is 1, and an error of that is less than the rounding of a constant.
    fn, inputs = scaled(name, 1.001 if CASES[name].eps < 1e-6 else 1.02)
    report = check_grad(fn, inputs, "jax", rtol=CASES[name].rtol, raise_exception=False)
    assert report.verdict == "mismatch", str(report)


def test_float32_inside_a_float64_function():
    x = np.linspace(0.1, 1, 4)
    fn = lambda x: jnp.sum(jnp.exp(3 * x.astype(jnp.float32))).astype(jnp.float64)
    assert check_grad(fn, (x,), "jax")


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "ok"), (1.001, "mismatch")])
def test_the_users_jac_of_low_precision(factor, verdict):
    x = jnp.asarray([0.3, 0.7, -0.2], jnp.float32)
    report = check_grad(
        jnp.sin, (x,), jac=lambda x: factor * jnp.diag(jnp.cos(x)).astype(x.dtype), raise_exception=False
    )
    assert report.verdict == verdict


def test_complex_numbers_of_low_precision():
    z = jnp.asarray([1 + 2j, 0.5 - 1j], jnp.complex64)
    f = flatten(lambda z: z**3, z)
    assert f.inputs[0].dtype == f.outputs[0].dtype == "complex64" and f.eps == DOUBLE


# ------------------------------------------------------------------------------------------------ what cannot be


def test_a_host_callback_shows_as_noise():
    fn, inputs = CASES["host_callback"].make()
    f = flatten(fn, *inputs)
    assert f.eps >= 2.0**-23
    (note,) = f.findings
    assert note.kind == "promotion" and "noise" in note.evidence


def sine_on_the_host(factor):
    @jax.custom_vjp
    def f(x):
        host = lambda a: np.sin(np.asarray(a, np.float32)).astype(a.dtype)
        return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")

    f.defvjp(lambda x: (f(x), x), lambda x, g: ((g * jnp.cos(x) * factor).astype(x.dtype),))
    return f


def sine_in_a_kernel(factor):
    def kernel(x, out):
        out[...] = jnp.sin(x[...]) * x[...]

    @jax.custom_vjp
    def f(x):
        return pallas.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: ((g * (jnp.cos(x) * x + jnp.sin(x)) * factor).astype(x.dtype),))
    return f


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("make", [sine_on_the_host, sine_in_a_kernel])
def test_a_coarse_part_shows_as_steps(make, dtype):
    x = jnp.asarray([0.3, 0.7, -1.2, 2.1], dtype)
    report = check_grad(make(1.0), (x,), raise_exception=False)
    assert report.verdict == "inconclusive", str(report)
    (error,) = [finding for finding in report.findings if finding.kind == "precision"]
    assert "steps" in error.evidence
    assert check_grad(make(1.5), (x,), raise_exception=False).verdict == "mismatch"


def test_a_step_of_the_users_is_not_taken_for_low_precision():
    x = jnp.asarray([0.3, 0.7, -1.2, 2.1], jnp.bfloat16)
    fn = lambda x: x + jax.lax.stop_gradient(jnp.round(x * 8) / 8 - x)
    assert check_grad(fn, (x,), raise_exception=False).verdict == "mismatch"


def test_a_constant_that_is_rounded_to_bfloat16_cannot_be_told_from_an_error():
    scale = jnp.asarray(0.1, jnp.bfloat16)

    @jax.custom_vjp
    def f(x):
        return jnp.sin(x * scale)

    f.defvjp(lambda x: (f(x), x), lambda x, g: ((0.1 * g * jnp.cos(0.1 * x.astype(jnp.float32))).astype(x.dtype),))
    report = check_grad(f, (jnp.asarray([0.3, -1.0], jnp.bfloat16),), raise_exception=False)
    assert report.verdict == "inconclusive" and "rounded constant" in report.reason


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "ok"), (1.001, "mismatch")])
def test_what_is_double_throughout_is_not_looked_into(factor, verdict, monkeypatch):
    looked = []
    monkeypatch.setattr(_function, "settle", lambda *given: looked.append(1) or _regime.settle(*given))
    x = jnp.linspace(0.1, 1, 4) if jax.config.jax_enable_x64 else np.linspace(0.1, 1, 4)
    assert check_grad(lambda x: jnp.sin(x), (x,), "jax") and not looked
    fn = lambda x: backwards(jnp.sin(x.astype(jnp.float32)), factor).astype(jnp.float64)
    report = check_grad(fn, (x,), "jax", raise_exception=False)
    assert looked and report.verdict == verdict and "promotion" in kinds(report)


def test_what_cannot_be_traced_is_evaluated_in_64_bit_mode():
    fn, inputs = CASES["branches_in_python"].make()
    f = flatten(fn, *inputs)
    assert f.eps == DOUBLE
    (note,) = f.findings
    assert note.kind == "promotion" and "can't trace" in note.evidence


def test_what_cannot_be_traced_and_refuses_float64_is_evaluated_as_it_is_written():
    def fn(x):
        assert x.dtype == jnp.float32
        return x * 2 if x[0] > -9 else x

    f = flatten(fn, jnp.ones(3))
    assert f.eps == 2.0**-23 and f.repeats.dtype == np.float64
    (note,) = f.findings
    assert note.kind == "promotion" and "as it is written" in note.evidence


@pytest.mark.parametrize("missing", ["fwd_jaxpr_thunk", "bwd", "out_trees", "num_consts", "call_jaxpr"])
def test_another_release_of_jax_keeps_custom_rules_elsewhere(missing, monkeypatch):
    fn, inputs = CASES["custom_vjp_over_closure"].make()
    rule = _custom_derivatives.RULES["custom_vjp_call"]

    def renamed(interpreter, eqn, values):
        params = {("renamed" if key == missing else key): value for key, value in eqn.params.items()}
        return rule(interpreter, eqn.replace(params=params), values)

    monkeypatch.setattr(_custom_derivatives, "RULES", {**_custom_derivatives.RULES, "custom_vjp_call": renamed})
    report = check_grad(fn, inputs, "jax", raise_exception=False)
    (note,) = [finding for finding in report.findings if finding.kind == "promotion"]
    assert "64-bit mode" in note.evidence and "custom_vjp" in note.evidence
    assert report.verdict == "ok"


def test_another_release_of_jax_keeps_jvp_rules_elsewhere(monkeypatch):
    def lost(*_):
        raise AttributeError("jvp_jaxpr_fun")

    monkeypatch.setattr(_custom_derivatives, "_jvp_rule", lost)
    promotion = _promote.promote(lambda x: [jax.nn.relu(x)], [jnp.ones(3)], False)
    assert promotion.regime == "x64" and "jvp_jaxpr_fun" in promotion.why


# ------------------------------------------------------------------------------------------------ only in low precision


@jax.custom_vjp
def wrong_in_half(x):
    return x * 3


def _wrong_bwd(_, g):
    return (g * (3 if jnp.finfo(g.dtype).bits > 16 else 4),)


wrong_in_half.defvjp(lambda x: (wrong_in_half(x), None), _wrong_bwd)


def test_a_rule_that_is_wrong_in_low_precision():
    report = check_grad(wrong_in_half, (jnp.ones(3, jnp.bfloat16),), raise_exception=False)
    assert report.verdict == "mismatch"  # the rule is traced at its own dtype


def test_overflow_of_the_value():
    x = jnp.asarray([2.0, 1.0], jnp.float16)
    report = check_grad(lambda x: (x * 300) ** 2 / 1e4, (x,), raise_exception=False)
    (finding,) = [finding for finding in report.findings if finding.kind == "precision"]
    assert finding.where == "output[0]" and "inf" in finding.evidence
    assert report.verdict == "inconclusive"


# ------------------------------------------------------------------------------------------------ float64 pays nothing


def test_double_is_evaluated_as_it_is_written():
    with jax.enable_x64(True):
        fn = lambda x: jnp.sin(x) * jnp.asarray([1.0, 2.0])
        f = flatten(fn, jnp.ones(2))
        assert f.eps == DOUBLE and not f.findings
        assert _promote.promote(lambda x: [fn(x)], [jnp.ones(2)], True).regime == "double"


# ------------------------------------------------------------------------------------------------ nothing is changed


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_the_users_is_changed(x64, fails):
    calls = []

    def fn(x):
        calls.append(x)
        if fails and len(calls) > 3:
            raise ArithmeticError("fails here")
        return jnp.sin(x).astype(jnp.float32) * 2

    with jax.enable_x64(x64):
        x = np.ones(3, np.float32)
        try:
            check_grad(fn, (x,), "jax", raise_exception=False)
        except ArithmeticError:
            assert fails
        assert jax.config.jax_enable_x64 == x64
        assert x.dtype == np.float32 and (x == 1).all()
        assert jnp.zeros(1).dtype == (jnp.float64 if x64 else jnp.float32)


def overwritten(x):
    """An array that is updated by a part of itself: compiled as a whole, XLA may write to it before it is read."""
    head = jax.lax.dynamic_update_slice(x, x[:2] ** 2, (1,))
    return jnp.outer(x, head) @ x


def overwritten_svd(x):
    values = jnp.linalg.svd(jnp.outer(x, x) + jnp.diag(jnp.arange(1.0, 7.0)), compute_uv=False)
    return values.at[1:3].set(values[:2] ** 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fn", [overwritten, overwritten_svd], ids=["slice", "svd"])
def test_the_compiler_is_not_the_function(fn, seed) -> None:
    x = jnp.asarray(np.random.default_rng(seed).normal(size=6), jnp.float32)
    assert check_grad(fn, x, raise_exception=False).verdict == "ok"

    @jax.custom_vjp
    def scaled(x):
        return x

    scaled.defvjp(lambda x: (x, None), lambda _, u: (u.at[2].multiply(1.05),))
    assert check_grad(lambda x: fn(scaled(x)), x, raise_exception=False).verdict == "mismatch"


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "ok"), (1.1, "mismatch")])
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_a_rule_that_closes_over_what_the_function_computes(mode, factor, verdict):
    """JAX differentiates such a function, and not a trace of it."""

    def fn(x):
        scale = jnp.asarray(factor, x.dtype)

        @jax.custom_jvp
        def identity(x):
            return x

        identity.defjvp(lambda primals, tangents: (primals[0], scale * tangents[0]))
        return jnp.sin(identity(x))

    x = jnp.asarray([0.3, 0.7], jnp.float32)
    assert jax.grad(lambda x: fn(x).sum())(x).shape == (2,)
    assert check_grad(fn, x, modes=[mode], raise_exception=False).verdict == verdict

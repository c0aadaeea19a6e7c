from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multigrad._run import run_check
from multigrad.backends import Backend, Options
from multigrad.errors import Defect, InvalidUse, Unsupported
from multigrad_jax import JaxBackend

Point = namedtuple("Point", "x y")


def flat(fn, *inputs, **options):
    return JaxBackend().flatten(fn, inputs, Options(**options))


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def mode(request):
    with jax.enable_x64(request.param):
        yield request.param


def test_the_backend_keeps_the_contract():
    backend = JaxBackend()
    assert isinstance(backend, Backend)
    assert backend.recognises(jnp.zeros(2)) and not backend.recognises(np.zeros(2)) and not backend.recognises(1.0)


def test_params_are_refused():
    with pytest.raises(InvalidUse, match="pass them as an input") as caught:
        flat(jnp.sin, 1.0, params={"w": 1.0})
    assert caught.value.kind == "unsupported_params"


def test_paths_shapes_and_fixed_leaves():
    seen = []

    def fn(tree, points, key, extra):
        seen.append((tree["n"], key, extra))
        noise = jax.random.normal(key, (2,))
        return {"sum": tree["w"].sum() * tree["n"], "parts": (points[0].x * points[0].y + noise, 3, jnp.arange(2))}

    key = jax.random.key(0)
    tree = {"w": np.ones((2, 3)), "n": 2, "z": np.array(1 + 2j)}
    f = flat(fn, tree, [Point(2.0, np.float32(3.0))], key, (None, "text", np.arange(2), True))
    assert [(leaf.path, leaf.shape, leaf.dtype, leaf.start) for leaf in f.inputs] == [
        ('inputs[0]["w"]', (2, 3), "float64", 0),
        ('inputs[0]["z"]', (), "complex128", 6),
        ("inputs[1][0].x", (), "float64", 8),
        ("inputs[1][0].y", (), "float32", 9),
    ]
    assert [(leaf.path, leaf.shape) for leaf in f.outputs] == [('output["parts"][0]', (2,)), ('output["sum"]', ())]
    assert list(f.fixed) == [
        'inputs[0]["n"] (int)',
        "inputs[2] (key<fry>)",
        "inputs[3][0] (None)",
        "inputs[3][1] (str)",
        "inputs[3][2] (int64)",
        "inputs[3][3] (bool)",
    ]
    f(np.tile(f.x, (300, 1)))
    f.vjp(np.eye(3))
    assert all(n == 2 and type(n) is int and k is key and extra[:2] == (None, "text") for n, k, extra in seen)


def test_inputs_reach_the_plain_call_as_the_types_they_were():
    seen = []
    f = flat(lambda *a: seen.append([type(v) for v in a]) or sum(jnp.sum(v) for v in a), 1.0, np.ones(2), np.float64(1))
    f(f.x[None])
    assert seen[0] == seen[1] == seen[-1] == [float, np.ndarray, np.float64]


@pytest.mark.parametrize("inputs", [(3,), (np.arange(2), True), (), ({"a": None},), (jax.random.key(0),)])
def test_nothing_to_differentiate(inputs):
    with pytest.raises(InvalidUse) as caught:
        flat(lambda *a: 1.0, *inputs)
    assert caught.value.kind == "no_differentiable_input"


@pytest.mark.parametrize("out", [None, 3, jnp.arange(2), {}, ("text", True)])
def test_no_output(out):
    with pytest.raises(InvalidUse) as caught:
        flat(lambda x: out, 1.0)
    assert caught.value.kind == "no_output"


def test_numbers_that_depend_on_nothing_are_not_attached():
    f = flat(lambda x: (jnp.sin(x), 2.0), 1.0)
    assert [leaf.attached for leaf in f.outputs] == [True, False]
    np.testing.assert_array_equal(f.vjp(np.eye(2))[1], [0.0])
    assert [leaf.attached for leaf in flat(lambda x: x * 2, 1.0).outputs] == [True]


def test_float64_is_checked_in_float64_whatever_the_mode_outside(mode):
    f = flat(lambda x, y: jnp.sin(x) * y, np.ones(2), 0.1)
    np.testing.assert_allclose(f.repeats[0], np.sin(1.0) * 0.1, rtol=1e-15)
    assert f.eps == 2.0**-52
    for rows in (1, 2, 2000):
        np.testing.assert_allclose(f(np.tile(f.x, (rows, 1))), np.full((rows, 2), np.sin(1.0) * 0.1), rtol=1e-15)
    np.testing.assert_allclose(f.jvp(np.eye(3)), f.vjp(np.eye(2)).T, rtol=1e-15)
    assert jax.config.jax_enable_x64 is mode


def test_the_mode_is_restored_after_exceptions(mode):
    def fn(x):
        if calls and calls.pop():
            raise KeyError("mine")
        return jax.lax.while_loop(lambda c: c < 3, lambda c: c * 2, x)

    calls = [True]
    with pytest.raises(KeyError, match="mine"):
        flat(fn, np.float64(1.0))
    f = flat(fn, np.float64(1.0))
    with pytest.raises(Unsupported):
        f.vjp(np.eye(1))
    calls.append(True)
    with pytest.raises(KeyError, match="mine"):
        f(f.x[None])
    assert jax.config.jax_enable_x64 is mode and jnp.ones(1).dtype == (jnp.float64 if mode else jnp.float32)


@pytest.mark.parametrize("before", ["jit", "float64", "float32"])
@pytest.mark.parametrize("after", ["float64", "float32"])
@pytest.mark.parametrize("use", [jnp.sum, lambda c: jnp.clip(c, 0, 1).sum(), lambda c: jnp.cumsum(c)[-1]])
def test_arrays_of_numpy_that_fn_closes_over_may_have_been_seen_in_the_other_mode(before, after, use):
    constant = np.linspace(0, 1, 4)

    def fn(x):
        return jax.lax.scan(lambda carry, _: (carry * use(constant), None), x, None, 2)[0] + use(constant)

    with jax.enable_x64(False):
        jax.clear_caches()
        if before == "jit":
            jax.jit(fn)(jnp.ones(2))
        else:
            flat(fn, np.ones(2, before))
        f = flat(fn, np.ones(2, after))
        np.testing.assert_allclose(f(np.tile(f.x, (40, 1))), np.full((40, 2), 6.0), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_low_precision_is_shown_to_the_users_code_alone(mode, dtype):
    x = jnp.asarray([1.5, 2.0], dtype)
    dtypes = set()
    f = flat(lambda x: dtypes.add(str(x.dtype)) or x * x, x)
    np.testing.assert_array_equal(f.vjp(np.eye(2)), [[3.0, 0.0], [0.0, 4.0]])
    np.testing.assert_array_equal(f.jvp(np.eye(2)), [[3.0, 0.0], [0.0, 4.0]])
    np.testing.assert_array_equal(f(np.array([[1.0, 0.5]] * 3000)), [[1.0, 0.25]] * 3000)
    assert (f.inputs[0].dtype, f.outputs[0].dtype, f.eps, dtypes) == (dtype, dtype, 2.0**-52, {dtype})


def test_low_precision_alone_is_evaluated_in_the_users_own_mode(mode):
    seen = set()
    flat(lambda x: seen.add(str(jnp.zeros(2).dtype)) or x * 2, jnp.ones(2, jnp.float32))
    assert seen == {"float64" if mode else "float32"}


def test_a_number_beside_low_precision():
    f = flat(lambda x: (x * 2, 0.1), jnp.ones(2))
    np.testing.assert_array_equal(f.vjp(np.eye(3)), [[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(f.jvp(np.ones((3000, 2)))[-1], [2.0, 2.0, 0.0])
    np.testing.assert_array_equal(f.vjp(np.ones((3000, 3)))[-1], [2.0, 2.0])
    assert [finding.kind for finding in f.findings] == ["promotion"]


def test_one_row_is_an_eager_call():
    eager = []
    f = flat(lambda x: eager.append(not isinstance(x, jax.core.Tracer)) or jnp.sin(x), np.ones(2))
    eager.clear()
    f(f.x[None])
    assert eager == [True]


def test_many_rows_are_compiled_once():
    traces = []
    f = flat(lambda x: traces.append(1) or jnp.sum(jnp.sin(x) * jnp.cos(x)), np.ones(3))
    traces.clear()
    X = np.random.default_rng(0).standard_normal((3000, 3))
    for rows in (3000, 2, 17, 300):
        expected = np.sum(np.sin(X[:rows]) * np.cos(X[:rows]), axis=1)
        np.testing.assert_allclose(f(X[:rows])[:, 0], expected, rtol=0, atol=1e-15)  # of three terms up to 0.5
    assert len(traces) == 1
    for product, places in ((f.vjp, 1), (f.jvp, 3)):
        traces.clear()
        for rows in (3000, 1500):
            product(np.ones((rows, places)))
        assert len(traces) == 1


def test_a_check_of_many_inputs_compiles_at_its_first_rows():
    """It knows how many are to come: one trace, and no eager calls but those that stand beside each batch."""
    eager = []
    A = np.random.default_rng(0).normal(size=(4, 400)) / 20
    f = flat(lambda x: eager.append(not isinstance(x, jax.core.Tracer)) or jnp.tanh(A @ x), np.linspace(0.1, 1.0, 400))
    report = run_check(f)
    assert report.verdict == "ok"
    assert report.evaluations > 2400
    assert sum(eager) < 200


def test_what_is_compiled_serves_other_points():
    traces = []
    f = flat(lambda x: traces.append(1) or jnp.cumsum(jnp.sin(x)), np.ones(3))
    U = np.ones((3000, 3))
    f(U), f.vjp(U), f.jvp(U)
    traces.clear()
    for k in range(4):
        other = f.at(f.x + k)
        np.testing.assert_allclose(other.repeats, np.cumsum(np.sin(f.x + k))[None].repeat(2, axis=0), rtol=1e-14)
        J = np.tri(3) * np.cos(f.x + k)
        np.testing.assert_allclose(other.vjp(U)[-1], J.sum(axis=0), rtol=1e-14)
        np.testing.assert_allclose(other.jvp(U)[-1], J.sum(axis=1), rtol=1e-14)
    assert not traces


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jax.lax.scan(lambda c, a: (c * a, c + a), 1.0, x),
        lambda x: jax.lax.cond(x[0] > 0, lambda x: x * 2, lambda x: x, x),
        lambda x: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1],
        lambda x: jax.checkpoint(lambda x: jax.lax.map(lambda a: a * 3, x))(x),
    ],
    ids=["scan", "cond", "while", "scan in a checkpoint"],
)
def test_loops_with_a_body_of_their_own_are_not_compiled_for_each_row(fn):
    calls = []
    f = flat(lambda x: calls.append(1) or fn(x), np.array([0.5, 2.0]))
    calls.clear()
    rows = f(np.array([[0.5, 2.0], [0.25, 1.0], [-1.0, 3.0]]))
    assert len(calls) == 1
    np.testing.assert_allclose(rows, np.concatenate([f(row[None]) for row in np.array([[0.5, 2], [0.25, 1], [-1, 3]])]))


def test_no_rows():
    f = flat(lambda x: x * 2, np.ones(3))
    assert f(np.zeros((0, 3))).shape == (0, 3)
    assert f.vjp(np.zeros((0, 3))).shape == (0, 3)
    assert f.jvp(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    "fn",
    [lambda x: x if x[0] > 0 else 2 * x, lambda x: np.sin(x), lambda x: float(x[0]) * x],
    ids=["if", "numpy", "float"],
)
def test_code_that_cannot_be_traced_is_left_to_the_core_row_by_row(fn):
    f = flat(fn, jnp.ones(2))
    with pytest.raises(Unsupported, match="can't trace"):
        f(np.ones((2, 2)))
    np.testing.assert_allclose(f(np.ones((1, 2)))[0], np.asarray(fn(jnp.ones(2))), rtol=1e-6)


def test_a_branch_on_values_can_be_differentiated_all_the_same():
    f = flat(lambda x: x**2 if x[0] > 0 else 2 * x, np.array([1.0, 3.0]))
    np.testing.assert_array_equal(f.vjp(np.eye(2)), np.diag([2.0, 6.0]))
    np.testing.assert_array_equal(f.jvp(np.eye(2)), np.diag([2.0, 6.0]))


def test_another_shape_near_the_point():
    f = flat(lambda x: x[x > 0], np.array([1.0, -1.0]))
    with pytest.raises(Defect, match="shape"):
        f(np.array([[1.0, 1.0]]))
    f = flat(lambda x: (x, x) if x > 0 else x, 1.0)
    with pytest.raises(Defect) as caught:
        f(np.array([[-1.0]]))
    assert caught.value.finding.kind == "shape_depends_on_value"


def test_python_state_shows_in_the_repeats():
    calls = iter(range(100))
    f = flat(lambda x: x + next(calls), np.float64(1.0))
    np.testing.assert_array_equal(f.repeats, [[1.0], [2.0]])


def test_donated_buffers_are_the_adapters_own():
    x = jnp.ones(3)
    f = flat(jax.jit(lambda x: x * 2, donate_argnums=0), x)
    for _ in range(2):
        np.testing.assert_array_equal(f.vjp(np.eye(3)), 2 * np.eye(3))
        f(np.ones((1, 3)))
    assert not x.is_deleted()


def test_stop_gradient_is_noted_where_the_user_wrote_it():
    f = flat(lambda x: jax.lax.stop_gradient(x) * x, np.ones(2))
    assert [finding.kind for finding in f.findings] == ["stop_gradient"]
    assert f.findings[0].where.startswith("test_jax_function.py:")
    inside = flat(
        jax.jit(lambda x: jax.lax.scan(lambda c, t: (c + jax.lax.stop_gradient(t), t), 0.0, x)[0]), np.ones(2)
    )
    assert [finding.kind for finding in inside.findings] == ["stop_gradient"]


def test_a_stop_gradient_of_jax_itself_is_not():
    f = flat(lambda x: (jax.nn.log_softmax(x), jax.scipy.special.logsumexp(x), jax.nn.softmax(x)), np.ones(2))
    assert not f.findings


def test_the_users_own_jac():
    f = flat(
        lambda x, w: jnp.tanh(w @ x),
        np.ones(3),
        np.ones((2, 3)),
        jac=jax.jacobian(lambda x, w: jnp.tanh(w @ x), (0, 1)),
    )
    own = flat(lambda x, w: jnp.tanh(w @ x), np.ones(3), np.ones((2, 3)))
    np.testing.assert_allclose(f.vjp(np.eye(2)), own.vjp(np.eye(2)), rtol=1e-14)
    with pytest.raises(Unsupported, match="no second mode"):
        f.jvp(np.eye(9))


def test_the_users_own_jac_of_complex_inputs_follows_jax_grad():
    z = np.array([1 + 2j, 3 - 1j])

    def fn(z):
        return jnp.sum(jnp.abs(z) ** 2 * z.imag)

    f = flat(fn, z, jac=jax.grad(fn))
    np.testing.assert_allclose(f.vjp(np.eye(1)), flat(fn, z).vjp(np.eye(1)), rtol=1e-14)

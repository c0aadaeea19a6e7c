from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from multigrad import check_grad
from multigrad.backends import Backend, Options
from multigrad.errors import Defect, InvalidUse, Unsupported
from multigrad_numpy import NumpyBackend

RNG = np.random.default_rng(0)


def flat(fn, *inputs, jac=lambda *args: None):
    return NumpyBackend().flatten(fn, inputs, Options(jac=jac))


def test_the_backend_keeps_the_contract():
    backend = NumpyBackend()
    assert isinstance(backend, Backend)
    assert backend.recognises(np.zeros(2)) and backend.recognises(np.float32(1)) and not backend.recognises(1.0)


def test_rosenbrock():
    x = RNG.standard_normal(4)
    f = flat(rosen, x, jac=rosen_der)
    np.testing.assert_array_equal(f.x, x)
    np.testing.assert_array_equal(f.repeats, [[rosen(x)], [rosen(x)]])
    np.testing.assert_array_equal(f(x[None] + 1), [[rosen(x + 1)]])
    np.testing.assert_array_equal(f.vjp(np.array([[2.0]])), 2 * rosen_der(x)[None])
    assert (f.eps, list(f.fixed), list(f.findings)) == (2.0**-52, [], [])


def test_the_users_matrix_has_no_forward_mode():
    f = flat(rosen, np.ones(3), jac=rosen_der)
    with pytest.raises(Unsupported, match="no second mode"):
        f.jvp(np.ones((1, 3)))


Point = namedtuple("Point", "x y")


@dataclass
class Model:
    w: np.ndarray
    name: str


def test_trees_are_taken_apart_and_put_together():
    seen = []

    def fn(model, points, scale):
        seen.append((model, points, scale))
        return {"sum": model.w.sum() * scale, "parts": [points[0].x * points[0].y, "text", 3]}

    model, points = Model(np.ones((2, 1)), "m"), [Point(2.0, np.float32(3.0))]
    f = flat(fn, model, points, 4)
    assert [leaf.path for leaf in f.inputs] == ["inputs[0].w", "inputs[1][0].x", "inputs[1][0].y"]
    assert [leaf.dtype for leaf in f.inputs] == ["float64", "float64", "float32"]
    assert [leaf.path for leaf in f.outputs] == ['output["sum"]', 'output["parts"][0]']
    assert list(f.fixed) == ["inputs[0].name (str)", "inputs[2] (int)"]
    np.testing.assert_array_equal(f.repeats[0], [8.0, 6.0])
    np.testing.assert_array_equal(f(np.array([[1.0, 2.0, 5.0, 6.0]])), [[12.0, 30.0]])
    assert type(seen[0][0]) is Model and type(seen[0][1][0]) is Point
    assert isinstance(seen[0][1][0].x, float) and type(seen[0][2]) is int


def test_integers_are_checked_as_floats_where_nothing_else_is_there():
    seen = []

    def jac(x, power):
        seen.append((x.dtype, power))
        return power * x ** (power - 1)

    f = flat(lambda x, power: float(np.sum(x**power)), np.array([1, 2]), 3, jac=jac)
    assert f.inputs[0].dtype == "int64" and list(f.fixed) == ["inputs[1] (int)"]
    np.testing.assert_array_equal(f(np.array([[0.5, 1.0]])), [[1.125]])
    np.testing.assert_array_equal(f.vjp(np.eye(1)), [[3.0, 12.0]])
    assert seen[0] == (np.float64, 3)


def test_python_integers_are_checked_where_no_array_is():
    f = flat(lambda x: x[0] * x[1], [2, 3], jac=lambda x: [x[1], x[0]])
    np.testing.assert_array_equal(f.vjp(np.eye(1)), [[3.0, 2.0]])


def test_integers_beside_floats_are_held_fixed():
    f = flat(lambda x, i: x[i], np.ones(3), np.array([0, 2]))
    assert list(f.fixed) == ["inputs[1] (int64)"]
    assert f.repeats.shape == (2, 2)


def test_low_precision_inputs_are_given_as_float64():
    dtypes = []
    f = flat(lambda x: dtypes.append(x.dtype) or x * 2, np.ones(2, np.float32))
    assert (f.inputs[0].dtype, set(dtypes), f.eps) == ("float32", {np.dtype("float64")}, 2.0**-52)


def test_low_precision_inside_shows_in_eps():
    assert flat(lambda x: np.sin(x.astype(np.float32)), np.ones(2)).eps == 2.0**-23


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (np.asmatrix([1.0]), "unsupported_array", "np.asarray"),
        (np.ma.masked_array([1.0], [True]), "unsupported_array", "filled"),
        (np.zeros(2, [("a", float), ("b", float)]), "unsupported_array", '{"a": x["a"], "b": x["b"]}'),
        (np.array([[1.0], [1.0, 2.0]], dtype=object), "ragged", "a list of arrays"),
        (np.array([True]), "no_differentiable_input", "inputs[0][0] (bool)"),
        ("text", "no_differentiable_input", "inputs[0][0] (str)"),
        (None, "no_differentiable_input", "inputs[0][0] (None)"),
        (True, "no_differentiable_input", "inputs[0][0] (bool)"),
    ],
)
def test_inputs_that_have_no_meaning_are_refused_with_what_to_write(value, kind, words):
    with pytest.raises(InvalidUse) as caught:
        flat(lambda x: 1.0, [value])
    assert caught.value.kind == kind
    assert "inputs[0][0]" in str(caught.value) and words in str(caught.value)


@pytest.mark.parametrize("out", [None, np.array([1, 2]), "text", {}, np.int64(3), True, [None, False]])
def test_outputs_without_a_floating_number_are_refused(out):
    with pytest.raises(InvalidUse) as caught:
        flat(lambda x: out, 1.0)
    assert caught.value.kind == "no_output"


def test_a_python_integer_alone_is_a_number():
    f = flat(lambda x: max(0, x), -1.0)
    np.testing.assert_array_equal(f(np.array([[2.0]])), [[2.0]])


def test_without_jac_and_trace_the_check_says_what_to_pass():
    with pytest.raises(InvalidUse, match="jac=") as caught:
        NumpyBackend().flatten(rosen, (np.ones(2),), Options(extra={"trace": False}))
    assert caught.value.kind == "no_derivative"


def test_params_are_refused():
    with pytest.raises(InvalidUse, match="as an input"):
        NumpyBackend().flatten(rosen, (np.ones(2),), Options(jac=rosen_der, params={}))


def test_exceptions_of_the_function_come_through():
    def fn(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        flat(fn, 1.0)


@pytest.mark.parametrize(
    "near", [np.ones(3), np.ones((2, 1)), [1.0, 1.0], None, "xy", np.ones(2) * 1j], ids=lambda v: str(v)
)
def test_another_shape_near_the_point(near):
    f = flat(lambda x: near if x > 0 else np.ones(2), -1.0)
    with pytest.raises(Defect) as caught:
        f(np.array([[1.0]]))
    assert caught.value.finding.kind == "shape_depends_on_value"


def test_the_order_of_a_dict_may_change():
    f = flat(lambda x: {"a": x, "b": 2 * x} if x > 0 else {"b": 2 * x, "a": x}, -1.0)
    np.testing.assert_array_equal(f(np.array([[3.0]])), [[6.0, 3.0]])


def test_mutation_is_reported_once_and_reaches_nothing():
    def fn(x, data):
        x *= 2
        data["n"][1] = 7
        return x.sum()

    def jac(x, data):
        data["n"][1] = 7
        return np.full(2, 2.0)

    x, data = np.array([1.0, 2.0]), {"n": np.array([1, 2])}
    f = flat(fn, x, data, jac=jac)
    np.testing.assert_array_equal(f.repeats, [[6.0], [6.0]])
    f(x[None])
    assert [(g.kind, g.where) for g in f.findings] == [
        ("mutates_input", "inputs[0]"),
        ("mutates_input", 'inputs[1]["n"]'),
    ]
    assert "[0] from 1.0 to 2.0" in f.findings[0].evidence and f.findings[0].evidence.startswith("fn ")
    f.vjp(np.eye(1))
    assert [g.evidence.split()[0] for g in f.findings] == ["fn", "fn", "jac"]
    np.testing.assert_array_equal(x, [1.0, 2.0])
    np.testing.assert_array_equal(data["n"], [1, 2])


def test_emptied_containers_are_reported():
    f = flat(lambda d: d.pop("w") * 2, {"w": 1.0})
    assert [(g.kind, g.where) for g in f.findings] == [("mutates_input", 'inputs[0]["w"]')]
    np.testing.assert_array_equal(f(np.array([[3.0]])), [[6.0]])


def test_a_returned_buffer_or_input_is_copied_at_once():
    buffer = np.empty(2)
    f = flat(lambda x: np.multiply(x, 3, out=buffer), np.ones(2))
    first = f(np.array([[1.0, 2.0]]))
    f(np.array([[5.0, 6.0]]))
    np.testing.assert_array_equal(first, [[3.0, 6.0]])
    np.testing.assert_array_equal(f.repeats, [[3.0, 3.0]] * 2)
    assert not f.findings
    same = flat(lambda x: x, np.ones(2))
    X = np.array([[1.0, 2.0]])
    got = same(X)
    got[:] = 0
    np.testing.assert_array_equal(X, [[1.0, 2.0]])


def test_state_shows_in_the_repeats():
    calls = iter(range(10))
    f = flat(lambda x: x + next(calls), 1.0)
    np.testing.assert_array_equal(f.repeats, [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("fn", "jac", "z"),
    [
        (lambda z: z**2 + 1j * z, lambda z: np.diag(2 * z + 1j), np.array([1 + 2j, 3 - 1j])),
        (lambda z: np.sum(np.abs(z) ** 2), lambda z: 2 * z, np.array([1 + 2j, 3 - 1j])),
        (lambda x: np.exp(1j * x), lambda x: np.diag(1j * np.exp(1j * x)), np.array([0.3, 2.0])),
        (lambda z: z * (1 + 2j), lambda z: 1 + 2j, 1 - 1j),
    ],
    ids=["C->C", "C->R", "R->C", "scalar"],
)
def test_complex_derivatives_against_differences(fn, jac, z):
    f = flat(fn, z, jac=jac)
    h = 1e-6
    numeric = [(f((f.x + h * e)[None]) - f((f.x - h * e)[None]))[0] / (2 * h) for e in np.eye(f.x.size)]
    np.testing.assert_allclose(f.vjp(np.eye(f.repeats.shape[1])), np.transpose(numeric), atol=1e-8)


def test_importing_the_adapter_imports_no_jax():
    import subprocess
    import sys

    code = "import sys, multigrad_numpy; raise SystemExit('jax' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("dtype", "verdict"), [(np.float32, "ok"), (np.float64, "mismatch")])
def test_a_constant_that_is_rounded_to_the_precision_of_the_input(dtype, verdict):
    pi = np.float32(np.pi)
    report = check_grad(
        lambda x: np.sum(np.sin(pi * x)),
        np.array([0.3, -1.0, 0.7], dtype),
        "numpy",
        jac=lambda x: np.pi * np.cos(np.pi * x),
        raise_exception=False,
    )
    assert report.verdict == verdict, str(report)


def test_large_sparse_jacobians_get_a_second_opinion_too():
    def jac(x):
        slope = np.cos(x)
        slope[17] *= 1.001
        return np.diag(slope)

    report = check_grad(np.sin, np.linspace(0.1, 2, 1500), jac=jac, raise_exception=False)
    assert report.worst[0].input == "inputs[0][17]"
    (opinion,) = (f for f in report.findings if f.kind == "diagnosis")
    assert "agrees with the numerical side" in opinion.evidence
    assert "relative error 0.000999" in opinion.evidence

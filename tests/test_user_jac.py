import numpy as np
import pytest
import scipy.sparse

from multigrad.backends import Leaf
from multigrad.errors import Defect, Unsupported
from multigrad.user_jac import UserJacobian, flat_jacobian

RNG = np.random.default_rng(0)


def leaf(path, shape, start=0, dtype="float64"):
    return Leaf(path, shape, dtype, start)


X = leaf("inputs[0]", (3,))
Y = leaf("inputs[1]", (2, 2), 3)
OUT = leaf("output", ())
VEC = leaf("output", (2,))
G = RNG.standard_normal(3)
J = RNG.standard_normal((2, 3))
JY = RNG.standard_normal((2, 2, 2))

RIGHT = [
    ("gradient of a scalar function", G, (X,), OUT, G[None]),
    ("a list of numbers", G.tolist(), (X,), OUT, G[None]),
    ("a tuple of one", (G,), (X,), OUT, G[None]),
    ("Jacobian", J, (X,), VEC, J),
    ("scipy.sparse array", scipy.sparse.csr_array(J), (X,), VEC, J),
    ("two inputs", (J, JY), (X, Y), VEC, np.hstack([J, JY.reshape(2, 4)])),
    ("two inputs, as a list", [J, JY], (X, Y), VEC, np.hstack([J, JY.reshape(2, 4)])),
    ("a fixed input left out", J, (X, None), VEC, J),
    ("a fixed input with None", (J, None), (X, None), VEC, J),
    ("a dict argument, other key order", {"b": JY, "a": J}, ({"a": X, "b": Y},), VEC, np.hstack([J, JY.reshape(2, 4)])),
    ("a dict with one checked part", {"a": J}, ({"a": X, "n": None},), VEC, J),
    ("that part alone", J, ({"a": X, "n": None},), VEC, J),
    ("a list argument of numbers", J, ([leaf(f"x[{i}]", (), i) for i in range(3)],), VEC, J),
    ("one number for a number", 2.0, (leaf("x", ()),), OUT, [[2.0]]),
    ("one-entry output, full shape", G[None], (X,), leaf("output", (1,)), G[None]),
    ("one-entry output, a plain gradient", G, (X,), leaf("output", (1,)), G[None]),
    ("one-entry output, one-entry input", [4.0], (leaf("x", (1,)),), leaf("output", (1,)), [[4.0]]),
    ("a list argument of one array", ([5.0],), ([leaf("x[0]", (1,))],), OUT, [[5.0]]),
    ("list of two outputs", [G, 2 * G], (X,), [OUT, leaf("output[1]", (), 1)], np.stack([G, 2 * G])),
    ("two scalar outputs, one array", np.stack([G, 2 * G]), (X,), (OUT, leaf("output[1]", (), 1)), np.stack([G, 2 * G])),
    ("outputs' tree outermost", {"l": (G, G[:2]), "v": (J, J[:, :2])}, (X, leaf("y", (2,), 3)), {"l": OUT, "v": VEC},
     np.vstack([np.hstack([G, G[:2]]), np.hstack([J, J[:, :2]])])),
    ("an output beside one that is not checked", G, (X,), (OUT, None), G[None]),
    ("integers", [1, 2, 3], (X,), OUT, [[1.0, 2.0, 3.0]]),
]  # fmt: skip


@pytest.mark.parametrize(("result", "inputs", "outputs", "expected"), [c[1:] for c in RIGHT], ids=[c[0] for c in RIGHT])
def test_right_shapes(result, inputs, outputs, expected):
    np.testing.assert_array_equal(flat_jacobian(result, inputs, outputs), expected)


WRONG = [
    ("column for a vector", G[:, None], (X,), OUT, "returned shape (3, 1)", "return jac.reshape((3,))"),
    ("row for a vector", G[None], (X,), OUT, "returned shape (1, 3)", "return jac.reshape((3,))"),
    ("scalar for a vector", 1.0, (X,), OUT, "returned shape ()", "one number is not broadcast"),
    ("one entry for a vector", [1.0], (X,), OUT, "returned shape (1,)", "return shape (3,)"),
    ("transpose", J.T, (X,), VEC, "returned shape (3, 2)", "return jac.T"),
    ("flat", J.ravel(), (X,), VEC, "returned shape (6,)", "return jac.reshape((2, 3))"),
    ("summed over outputs", J.sum(0), (X,), VEC, "returned shape (3,)", "return shape (2, 3)"),
    ("vector for a number", G, (leaf("x", ()),), OUT, "returned shape (3,)", "return shape ()"),
    ("numpy.matrix", np.asmatrix(G), (X,), OUT, "returned shape (1, 3)", "return jac.reshape((3,))"),
    ("one of two inputs missing", J, (X, Y), VEC, "expected a tuple of 2: one for each of inputs[0], inputs[1]", "d/d second"),
    ("three for two", (J, JY, J), (X, Y), VEC, "a tuple of 3 for output, expected a tuple of 2", "d/d second"),
    ("key missing", {"a": J}, ({"a": X, "b": Y},), VEC, "is a dict, expected a dict of 2 with the part 'b'", "same tree"),
    ("nothing", None, (X,), OUT, "no array of numbers", "return an array of shape (3,)"),
    ("ragged", [[1.0], [1.0, 2.0]], (X,), VEC, "no array of numbers", "return an array of shape (2, 3)"),
    ("words", np.array(["a", "b", "c"]), (X,), OUT, "no array of numbers", "return an array of shape (3,)"),
    ("complex for real", G + 1j, (X,), OUT, "complex numbers for inputs[0]", "real derivative"),
]  # fmt: skip


@pytest.mark.parametrize(("result", "inputs", "outputs", "evidence", "remedy"), [c[1:] for c in WRONG], ids=[c[0] for c in WRONG])  # fmt: skip
def test_wrong_shapes_are_never_broadcast(result, inputs, outputs, evidence, remedy):
    with pytest.raises(Defect) as caught:
        flat_jacobian(result, inputs, outputs)
    finding = caught.value.finding
    assert finding.kind == "wrong_shape"
    assert evidence in finding.evidence
    assert remedy in finding.remedy


Z = leaf("z", (2,), dtype="complex128")
F = RNG.standard_normal((3, 2)) + 1j * RNG.standard_normal((3, 2))
OUTS = {kind: leaf("output", (3,), dtype=kind) for kind in ("float64", "complex128")}


def directional(J, v, out_complex):
    u = J @ v
    return u[::2] + 1j * u[1::2] if out_complex else u


def test_holomorphic_derivative_acts_as_multiplication():
    v = RNG.standard_normal(4)
    flat = flat_jacobian(F, (Z,), OUTS["complex128"])
    np.testing.assert_allclose(directional(flat, v, True), F @ (v[::2] + 1j * v[1::2]))


@pytest.mark.parametrize("sign", [1, -1])
def test_real_function_of_complex_takes_the_gradient_in_the_convention_asked_for(sign):
    v = RNG.standard_normal(4)
    flat = flat_jacobian(F, (Z,), OUTS["float64"], imaginary=sign)
    np.testing.assert_allclose(flat @ v, F.real @ v[::2] + sign * F.imag @ v[1::2])


def test_complex_function_of_real():
    v = RNG.standard_normal(2)
    flat = flat_jacobian(F, (leaf("x", (2,)),), OUTS["complex128"])
    np.testing.assert_allclose(directional(flat, v, True), F @ v)


def test_vjp_multiplies_and_calls_jac_for_one_matrix_only():
    calls = []
    jacobian = UserJacobian(lambda: calls.append(1) or J, (X,), VEC, [])
    U = RNG.standard_normal((5, 2))
    np.testing.assert_allclose(jacobian.vjp(U), U @ J)
    jacobian.vjp(U)
    assert len(calls) == 2  # one, and one to compare with it
    with pytest.raises(Unsupported, match="one matrix"):
        jacobian.jvp(U)


def test_nan_stays_in_its_row():
    bad = J.copy()
    bad[0, 1] = np.nan
    product = UserJacobian(lambda: bad, (X,), VEC, []).vjp(np.eye(2))
    np.testing.assert_array_equal(product, bad)


def test_a_jac_that_returns_other_numbers_each_time_is_reported():
    findings = []
    UserJacobian(lambda: RNG.standard_normal((2, 3)), (X,), VEC, findings).vjp(np.eye(2))
    assert [f.kind for f in findings] == ["nondeterministic_backward"]
    assert "6 entries" in findings[0].evidence


def test_a_jac_that_reuses_its_buffer_is_right():
    buffer, scale = np.empty((2, 3)), iter([1.0, 1.0])
    findings = []

    def jac():
        buffer[...] = J * next(scale)
        return buffer

    jacobian = UserJacobian(jac, (X,), VEC, findings)
    first = jacobian.matrix
    buffer[...] = 0
    np.testing.assert_array_equal(first, J)
    assert not findings

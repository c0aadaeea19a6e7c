"""Inputs in small units: functions whose own scale is that of inputs such as 1e-10 m, and not 1."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad.residual import foreign_noise
from tests.flat import check_flat

# Functions of x in units of its own size, (b, 3) -> (b, m), with the Jacobian at one point.
FUNCTIONS = {
    "squares": (lambda U: (U**2).sum(axis=1, keepdims=True), lambda u: 2 * u[None]),
    "product": (lambda U: U.prod(axis=1, keepdims=True), lambda u: (u.prod() / u)[None]),
    "exponentials": (lambda U: np.exp(-U), lambda u: np.diag(-np.exp(-u))),
    "waves": (lambda U: np.sin(U).sum(axis=1, keepdims=True), lambda u: np.cos(u)[None]),
    "norm": (lambda U: np.sqrt((U**2).sum(axis=1, keepdims=True)), lambda u: (u / np.sqrt((u**2).sum()))[None]),
    "potential": (
        lambda U: U[:, :1] ** -12 - U[:, :1] ** -6 + U[:, 1:2] * U[:, 2:],
        lambda u: np.array([[-12 * u[0] ** -13 + 6 * u[0] ** -7, u[2], u[1]]]),
    ),
    "two": (
        lambda U: np.stack([U[:, 0] * U[:, 1], U[:, 2] ** 2 + U[:, 0]], axis=1),
        lambda u: np.array([[u[1], u[0], 0], [1.0, 0, 2 * u[2]]]),
    ),
    "near an optimum": (
        lambda U: ((U - 1.2) ** 4).sum(axis=1, keepdims=True) + U[:, :1] * U[:, 1:2],
        lambda u: (4 * (u - 1.2) ** 3 + np.array([u[1], u[0], 0.0]))[None],
    ),
}
PLANTED = {
    "sign": lambda J: -J,
    "1e-4": lambda J: J * 1.0001,
    "first dropped": lambda J: J * [0, 1, 1],
    "second dropped": lambda J: J * [1, 0, 1],
    "last turned": lambda J: J * [1, 1, -1],
}


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside 1"])
@pytest.mark.parametrize("unit", [1e-5, 1e-7, 3e-9, 1e-10, 1e-15, 1e-20, 1e-30, 1e-60])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_units(name, unit, beside):
    f, jacobian = FUNCTIONS[name]
    u, units = np.array([0.7, 1.3, 2.1]), np.array([unit, 1.0 if beside else unit, 10 * unit])
    x, J = u * units, jacobian(u) / units
    assert check_flat(lambda X: f(X / units), x, J).verdict == "ok"
    for planted in PLANTED.values():
        assert check_flat(lambda X: f(X / units), x, planted(J)).verdict == "mismatch"


@pytest.mark.parametrize("unit", [1e-10, 1e-15, 1e-20])
@pytest.mark.parametrize("name", ["squares", "exponentials", "waves", "norm", "two", "near an optimum"])
def test_an_input_that_is_zero_is_of_the_unit_of_the_others(name, unit):
    f, jacobian = FUNCTIONS[name]
    u = np.array([0.0, 1.3, 2.1])
    J = jacobian(u) / unit
    assert check_flat(lambda X: f(X / unit), u * unit, J).verdict == "ok"
    for planted in PLANTED.values():
        if not np.array_equal(planted(J), J):
            assert check_flat(lambda X: f(X / unit), u * unit, planted(J)).verdict == "mismatch"


@pytest.mark.parametrize(
    ("unit", "right", "wrong"),
    [(1e-6, "ok", "mismatch"), (1e-9, "inconclusive", "mismatch"), (1e-20, "inconclusive", "inconclusive")],
)
def test_a_double_zero_of_what_saturates_a_step_away(unit, right, wrong):
    """sinc(1) is 0 but for rounding, and so is the derivative of its square: no measure of that is f a unit of 1 away.

    In small units the ladder does not go low enough to tell.
    """
    f = lambda X: np.sinc(X / unit) ** 2
    x = np.array([0.3, 1.0, 2.0]) * unit
    u = x / unit
    slope = 2 * np.sinc(u) * (np.cos(np.pi * u) - np.sinc(u)) / x
    assert check_flat(f, x, np.diag(slope)).verdict == right
    assert check_flat(f, x, np.diag(slope + [0.0, 1e-3 / unit, 0.0])).verdict == wrong


@pytest.mark.parametrize("unit", [1e-7, 5e-9, 1e-12])
def test_waves_in_small_units_are_no_noise_of_float32(unit):
    x = unit * np.array([0.6, 2.0, -0.4])
    assert foreign_noise(lambda X: np.sin(X / unit), x, 0) == 0
    single = lambda X: np.sin((X / unit).astype(np.float32)).astype(float)
    assert foreign_noise(single, x, 0) > 0
    assert foreign_noise(lambda X: (1 + np.sin(X / unit)).astype(np.float32).astype(float), x, 0) > 0
    # Where f stands still on steps of their own size, noise is looked for on larger ones.
    assert foreign_noise(lambda X: np.exp(X.astype(np.float32)).astype(float), x, 0) > 0

"""What a report says of where values part, and of what is the same up to symmetry, shape or structure."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from multigrad import check_consistency
from tests.consistency.case import draw

X, Y, Z = draw(510, 4), draw(511, 4), draw(512, 4)
SYMMETRIC = draw(513, 3, 3) + draw(513, 3, 3).T


def consistency(torch_fn: Any, jax_fn: Any, *inputs: Any, **options: Any) -> Any:
    functions = {"torch": torch_fn, "jax": jax_fn}
    return check_consistency(functions, inputs, **{"reference": "torch", "raise_exception": False, **options})


def original(x: Any, y: Any, z: Any) -> Any:
    return (x**2).sum() + (y**3).sum() + (x * z).sum()


def diagnoses(report: Any) -> str:
    return "; ".join(f.evidence for f in report.findings if f.kind == "diagnosis")


@pytest.mark.parametrize(
    ("port", "words"),
    [
        (lambda x, y, z: original(x, y, z) + 2.5, "all derivatives agree, so that it is a constant"),
        (lambda x, y, z: 3.7 * original(x, y, z), "the values and all derivatives have a factor of 3.7"),
        (lambda x, y, z: original(x, 2 * y, z), "by inputs[0], inputs[2] agree, those by inputs[1] differ"),
        (lambda x, y, z: original(x, y, 0 * z), "it does not depend on inputs[2]"),
    ],
    ids=["constant", "factor", "one term", "unused"],
)
def test_derivatives_say_which_part_of_a_sum_is_wrong(port: Any, words: str) -> None:
    report = consistency(original, port, X, Y, Z)
    assert report.odd == ("jax",)
    assert words in diagnoses(report), str(report)


def test_nothing_is_said_where_all_derivatives_differ() -> None:
    assert not diagnoses(consistency(lambda x: (x**2).sum(), lambda x: jnp.sum(x**3), X))


@pytest.mark.parametrize("offset", [1e-10, 1e-9, -3e-8, 2.5])
@pytest.mark.parametrize("seed", range(4))
def test_a_constant_is_not_taken_for_another_order(offset: float, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=4)
    functions = {"torch": torch.tanh, "numpy": lambda x: np.tanh(x) + offset}
    report = check_consistency(functions, x, raise_exception=False)
    assert diagnoses(report) == f"numpy as compared with torch: a constant offset of {offset:.9g}", str(report)


@pytest.mark.parametrize("size", [1.0, 1e-9])
def test_another_order_is_named_however_little_the_numbers_differ(size: float) -> None:
    order = np.array([2, 0, 3, 1])
    report = consistency(lambda x: 1 + size * x, lambda x: (1 + size * x)[order], X)
    assert "the same numbers in another order" in diagnoses(report), str(report)


@pytest.mark.parametrize("factor", [0.1, 0.7, 1e-3])
def test_a_part_in_float32_is_guessed(factor: float) -> None:
    """An integer tensor times a Python number is float32."""
    report = consistency(lambda x, n: x * (factor * n), lambda x, n: x * (factor * n), X, np.array(3))
    assert report.verdict == "inconclusive"
    assert "float32" in diagnoses(report)
    assert report.worst[0].what == "value"


def test_the_diagnosis_of_a_wrong_derivative_is_shown() -> None:
    report = consistency(lambda x: (x**3).sum(), jnp.sum, X, jac={"jax": lambda x: 2 * jnp.ones_like(x)})
    assert "jax: every entry is 2 times the derivative" in diagnoses(report), str(report)


def test_the_first_of_several_outputs_that_differs_is_named() -> None:
    def stages(xp: Any, eps: float) -> Any:
        def network(x: Any) -> Any:
            centred = x - x.mean()
            normed = centred / xp.sqrt((centred**2).mean() + eps)
            return {"centred": centred, "normed": normed, "output": xp.tanh(normed)}

        return network

    report = consistency(stages(torch, 1e-5), stages(jnp, 1e-3), X)
    assert 'output["centred"] agree, output["normed"] is the first output that differs' in diagnoses(report)
    assert "intermediate values" not in str(report)


def test_who_gets_no_hint_is_told_how_to_go_on() -> None:
    report = consistency(lambda x: (x**2).sum(), lambda x: jnp.sum(x**3), X)
    assert "return intermediate values too" in str(report)


# ---- symmetric matrices


def torch_form(a: Any, x: Any) -> Any:
    return (a @ x[:3]) ** 2


def jax_form(a: Any, x: Any) -> Any:
    return (a.T @ x[:3]) ** 2


def test_a_transposed_symmetric_matrix_has_to_be_accepted() -> None:
    report = consistency(torch_form, jax_form, SYMMETRIC, X)
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    (convention,) = report.conventions
    assert (convention.name, convention.where) == ("symmetric_domain", "inputs[0]")
    report = consistency(torch_form, jax_form, SYMMETRIC, X, accept=("symmetric_domain",))
    assert report.verdict == "convention", str(report)


def test_what_differs_in_symmetric_directions_is_not_excused() -> None:
    report = consistency(lambda a, x: torch.tril(a) @ x[:3], lambda a, x: jnp.tril(a) @ x[:3] + 0 * a[0], SYMMETRIC, X)
    assert report.verdict == "ok"

    def wrong(a: Any, x: Any) -> Any:  # the same value at this matrix alone
        return (a @ x[:3]) ** 2 + ((a - SYMMETRIC) @ x[:3])

    report = consistency(torch_form, wrong, SYMMETRIC, X, accept=("symmetric_domain",))
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    assert not report.conventions


def test_a_matrix_that_is_not_symmetric_excuses_nothing() -> None:
    report = consistency(torch_form, jax_form, draw(514, 3, 3), X, accept=("symmetric_domain",))
    assert report.verdict == "mismatch"
    assert not report.conventions


# ---- what is returned


def test_who_returns_less_is_odd() -> None:
    def two(x: Any) -> Any:
        return {"a": x.sum(), "b": x * 2}

    functions = {"torch": two, "jax": lambda x: {"a": x.sum()}, "numpy": two}
    report = check_consistency(functions, X, raise_exception=False)
    assert (report.verdict, report.odd, report.blame) == ("mismatch", ("jax",), {"jax": "by majority"})
    assert report.table["jax"]["value"].note == "other outputs than torch"
    assert report.table["numpy"]["value"].answer == "ok"


def test_another_shape_of_the_same_numbers_is_noted() -> None:
    report = consistency(lambda x: x.sum(), lambda x: jnp.sum(x, keepdims=True), X)
    assert report.verdict == "ok"
    (finding,) = report.findings
    assert (finding.kind, finding.where) == ("layout", "output")
    assert "jax returns it in shape (1,), torch in ()" in finding.evidence


def test_inputs_that_torch_holds_fixed() -> None:
    x = torch.tensor(X, requires_grad=True)
    report = consistency(lambda x, y: (x * y).sum(), lambda x, y: (x * y).sum(), x, torch.tensor(Y))
    assert report.verdict == "ok", str(report)
    (finding,) = report.findings
    assert (finding.kind, finding.where) == ("held_fixed", "inputs[1]")
    assert "not compared" in finding.evidence

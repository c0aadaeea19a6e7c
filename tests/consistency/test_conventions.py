"""What frameworks define differently is told apart from what a port got wrong."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import torch
import torch.nn.functional as F

from multigrad import ConventionWarning, InconsistentFunctions, check_consistency
from tests.consistency.case import draw, draw_complex

X = draw(400, 3, 4)


def consistency(functions: Any, *inputs: Any, **options: Any) -> Any:
    return check_consistency(functions, inputs, raise_exception=False, **options)


def names(report: Any) -> set[str]:
    return {convention.name for convention in report.conventions}


LEGAL = [
    ("norm at 0", {"torch": torch.linalg.norm, "jax": jnp.linalg.norm}, np.zeros(3), "undefined_gradient"),
    (
        "clamp at its ends",
        {"torch": lambda x: torch.clamp(x, 0, 1), "jax": lambda x: jnp.clip(x, 0, 1)},
        np.array([0.0, 0.5, 1.0]),
        "kink",
    ),
    ("abs at 0", {"torch": torch.abs, "jax": lambda x: jnp.where(x >= 0, x, -x)}, np.array([0.0, -2.3]), "kink"),
    ("maximum of ties", {"torch": lambda x: torch.max(x, 0).values, "jax": jnp.max}, np.array([1.3, 1.3, 0.2]), "tie"),
    (
        "sorted ties",
        {"torch": lambda x: torch.sort(x, descending=True).values[0], "jax": jnp.max},
        np.array([0.7, 0.7]),
        "tie",
    ),
    (
        "NaN among the inputs",
        {"torch": torch.nanmean, "jax": jnp.mean},
        np.array([2.3, np.nan, 1.1]),
        "nan_propagation",
    ),
    ("rounding of halves", {"torch": torch.round, "jax": lambda x: jnp.floor(x + 0.5)}, np.array([0.5, 2.2]), "jump"),
    (
        "signs of eigenvectors",
        {"torch": lambda a: torch.linalg.eigh(a + a.T)[1], "jax": lambda a: -jnp.linalg.eigh(a + a.T)[1]},
        draw(401, 3, 3),
        "phase",
    ),
    (
        "signs of Q and R",
        {"torch": lambda a: tuple(torch.linalg.qr(a)), "jax": lambda a: tuple(-x for x in jnp.linalg.qr(a))},
        draw(402, 3, 3),
        "phase",
    ),
]


@pytest.mark.parametrize(("functions", "x", "name"), [case[1:] for case in LEGAL], ids=[case[0] for case in LEGAL])
def test_two_right_answers_to_one_question(functions: Any, x: Any, name: str) -> None:
    report = consistency(functions, x)
    assert report.verdict == "convention", str(report)
    assert report
    assert names(report) == {name}
    assert not report.odd
    assert all(f.severity == "note" for f in report.findings)


DEFINITIONS = [
    ("ddof", {"torch": torch.std, "jax": jnp.std, "numpy": np.std}, X, "torch"),
    ("ddof", {"torch": lambda x: x.var(0), "jax": lambda x: x.var(0), "numpy": lambda x: x.var(0)}, X, "torch"),
    (
        "gelu",
        {
            "torch": F.gelu,
            "jax": jax.nn.gelu,
            "numpy": lambda x: x * (1 + scipy.special.erf(x / 2**0.5)) / 2,
        },
        X,
        "jax",
    ),
    ("conjugation", {"torch": torch.conj, "jax": jnp.conj, "numpy": lambda z: z.copy()}, draw_complex(403, 3), "numpy"),
]


@pytest.mark.parametrize(("name", "functions", "x", "odd"), DEFINITIONS, ids=["std", "var", "gelu", "conjugation"])
def test_answers_to_two_questions_count_unless_they_are_accepted(name: str, functions: Any, x: Any, odd: str) -> None:
    report = consistency(functions, x)
    assert (report.verdict, report.odd, names(report)) == ("mismatch", (odd,), {name}), str(report)
    accepted = consistency(functions, x, accept=(name,))
    assert (accepted.verdict, accepted.odd) == ("convention", ()), str(accepted)


def test_padding() -> None:
    functions = {
        "torch": lambda x: F.conv1d(x[None, None], torch.ones(1, 1, 3, dtype=x.dtype), padding=1)[0, 0],
        "numpy": lambda x: np.convolve(np.pad(x, 1, mode="edge"), np.ones(3), "valid"),
    }
    report = consistency(functions, draw(404, 8), reference="torch")
    assert (report.verdict, report.odd, names(report)) == ("mismatch", ("numpy",), {"padding"}), str(report)


def test_a_convention_is_none_where_the_numerical_side_refutes_it() -> None:
    @jax.custom_vjp
    def std(x: Any) -> Any:
        return jnp.std(x)

    std.defvjp(lambda x: (jnp.std(x), x), lambda x, u: (u * x,))
    report = consistency({"torch": torch.std, "jax": std}, X, accept=("ddof",))
    assert (report.verdict, report.odd, names(report)) == ("mismatch", ("jax",), set()), str(report)


def test_an_illegal_choice_at_a_kink_is_a_mistake() -> None:
    @jax.custom_jvp
    def absolute(x: Any) -> Any:
        return abs(x)

    absolute.defjvp(lambda p, t: (abs(p[0]), jnp.where(p[0] >= 0, jnp.where(p[0] == 0, 3.0, 1.0), -1.0) * t[0]))
    report = consistency({"torch": torch.abs, "jax": absolute}, np.array([0.0]))
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    assert report.worst[0].input == "inputs[0][0]"


def test_sums_in_float32_by_another_order() -> None:
    x = (1e4 + draw(405, 400)).astype(np.float32)

    def one_by_one(x: Any) -> Any:
        return jax.lax.scan(lambda s, v: (s + v, None), jnp.zeros((), x.dtype), x)[0]

    report = consistency(
        {"torch": lambda x: torch.sum(x) - 4e6, "jax": jax.jit(lambda x: one_by_one(x) - 4e6)}, x[:400]
    )
    assert names(report) == {"float32_accumulation"}, str(report)
    assert report.verdict == "convention"


def test_legal_differences_warn_and_others_raise() -> None:
    with pytest.warns(ConventionWarning, match="kink"):
        check_consistency({"torch": torch.abs, "jax": lambda x: jnp.where(x >= 0, x, -x)}, np.array([0.0]))
    with pytest.raises(InconsistentFunctions, match="it cannot be told which is right") as caught:
        check_consistency({"torch": torch.sum, "jax": jnp.mean}, X)
    assert caught.value.report.verdict == "mismatch"

"""Gradients that are stopped on purpose, and ports that forgot to, or did it in another place."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multigrad import check_consistency

X = np.array([1.0, 2.0, -0.5])
ACCEPT = ("stop_gradient",)


def torch_stopped(x: Any) -> Any:
    return (x * (x * x).detach()).sum()


def jax_stopped(x: Any) -> Any:
    return jnp.sum(x * jax.lax.stop_gradient(x * x))


def jax_elsewhere(x: Any) -> Any:
    return jnp.sum(jax.lax.stop_gradient(x) * x * x)


def plain(x: Any) -> Any:
    return (x * x * x).sum()


def consistency(port: Any, **options: Any) -> Any:
    functions = {"torch": torch_stopped, "jax": port}
    return check_consistency(functions, X, **{"reference": "torch", "raise_exception": False, **options})


@pytest.mark.parametrize("accept", [(), ACCEPT], ids=["", "accepted"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("port", [plain, jax_elsewhere])
def test_a_port_that_stops_others_is_odd_by_the_reference(port: Any, order: int, accept: Any) -> None:
    """Though the reference's own derivative is refuted by its values."""
    report = consistency(port, order=order, accept=accept)
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    assert report.blame["jax"].startswith("by the reference")
    assert ("whose own derivative" in report.blame["jax"]) == (not accept)
    assert report.table["jax"]["reverse"].answer == "mismatch"
    entry = report.worst[0]
    assert entry.numbers["torch"] != pytest.approx(entry.numbers["jax"])
    assert any(c.name == "stop_gradient" and c.where == "output by inputs[0]" for c in report.conventions)


def test_the_same_stops_in_both_have_to_be_accepted() -> None:
    report = consistency(jax_stopped)
    assert (report.verdict, report.odd) == ("mismatch", ())
    assert "not those of their own values" in report.reason
    assert 'accept=("stop_gradient",)' in str(report)
    report = consistency(jax_stopped, accept=ACCEPT)
    assert report.verdict == "convention", str(report)
    assert not report.worst
    assert report.table["torch"]["reverse"].answer == "convention"


@pytest.mark.parametrize("reference", ["torch", None])
def test_at_order_2_as_well(reference: Any) -> None:
    report = consistency(jax_stopped, reference=reference, order=2, accept=ACCEPT)
    assert report.verdict == "convention", str(report)
    assert report.table["jax"]["second"].answer == "convention"


def test_who_has_no_derivative_has_no_say_in_it() -> None:
    functions = {"torch": torch_stopped, "jax": jax_stopped, "numpy": plain}
    report = check_consistency(
        functions, X, accept=ACCEPT, options={"numpy": {"trace": False}}, reference="torch", raise_exception=False
    )
    assert report.verdict == "convention", str(report)


def test_what_is_accepted_excuses_no_wrong_derivative() -> None:
    @jax.custom_vjp
    def wrong(x: Any) -> Any:
        return plain(x)

    wrong.defvjp(lambda x: (plain(x), x), lambda x, u: (u * x**2 * 2.9,))
    functions = {"torch": plain, "jax": wrong, "numpy": plain}
    report = check_consistency(functions, X, accept=ACCEPT, raise_exception=False)
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    report = check_consistency({"torch": plain, "jax": wrong}, X, accept=ACCEPT, raise_exception=False)
    assert report.verdict == "mismatch", str(report)

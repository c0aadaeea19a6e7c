"""Fifty ports: the right ones are called consistent, and each mistake is found and blamed on the port."""

from __future__ import annotations

from typing import Any

import jax
import pytest
import torch

from multigrad import ConsistencyReport, check_consistency
from tests.consistency.ports import PORTS
from tests.consistency.ports.port import Port

torch.set_num_threads(1)

pytestmark = pytest.mark.usefixtures("quick_compilation")

MISTAKES = [(port, name) for port in PORTS for name in port.mistakes]


def compared(port: Port, ported: Any, **options: Any) -> ConsistencyReport:
    functions = {"torch": port.torch, "jax": jax.jit(ported)}
    if port.numpy is not None:
        functions["numpy"] = port.numpy
    return check_consistency(
        functions,
        port.arguments,
        mapping={"jax": port.mapping},
        accept=port.accept,
        raise_exception=False,
        **options,
    )


def test_there_are_enough() -> None:
    assert len({port.name for port in PORTS}) == len(PORTS) >= 50
    assert len(MISTAKES) >= 120


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_a_right_port_is_consistent(port: Port) -> None:
    report = compared(port, port.jax)
    assert report.verdict == ("convention" if port.accept else "ok"), str(report)
    assert {convention.name for convention in report.conventions} == set(port.accept)
    assert report.sharpness < 1e-5


@pytest.mark.parametrize(("port", "name"), MISTAKES, ids=lambda value: value if isinstance(value, str) else value.name)
def test_a_mistake_is_blamed_on_the_port(port: Port, name: str) -> None:
    """By the reference, and by the majority where there are three."""
    report = compared(port, port.mistakes[name], reference=None if port.numpy else "torch")
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    # Entries of a transposed output are not set side by side.
    assert report.worst or "mapping={'jax': {'output': (1, 0)}}" in str(report)
    for entry in report.worst[:1]:
        assert entry.output.startswith("output")
        assert abs(entry.numbers["jax"] - entry.numbers["torch"]) > 1e-7 * abs(entry.numbers["torch"])

"""Samples: those that are differentiated along the sample, and those that are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from multigrad import check_grad

IMPLICIT: dict[str, Callable[..., Any]] = {
    "gamma": lambda key, a: jax.random.gamma(key, a),
    "t": lambda key, a: jax.random.t(key, a),
}
ALONG: dict[str, Callable[..., Any]] = {
    "normal": lambda key, a: a * jax.random.normal(key, (2,)),
    "gumbel": lambda key, a: jax.nn.softmax(a + jax.random.gumbel(key, (2,))),
}


def conventions(fn: Callable[..., Any]) -> tuple[str, list[str]]:
    report = check_grad(fn, (jax.random.key(3), np.array([1.3, 2.4])), "jax", raise_exception=False)
    return str(report.verdict), [f.evidence for f in report.findings if f.kind == "convention"]


@pytest.mark.parametrize("name", IMPLICIT)
def test_a_gradient_that_is_right_in_the_mean_alone_is_explained(name: str) -> None:
    verdict, said = conventions(IMPLICIT[name])
    assert verdict == "mismatch"
    assert len(said) == 1
    assert "not the derivative of this sample" in said[0]


@pytest.mark.parametrize("name", ALONG)
def test_a_gradient_along_the_sample_is_right(name: str) -> None:
    assert conventions(ALONG[name]) == ("ok", [])

"""Samples: those that are differentiated along the sample, and those that are not."""

from __future__ import annotations

import pytest
import torch
import torch.distributions as dist

from multigrad import check_grad

from .flattening import real

IMPLICIT = {
    "gamma": lambda a: dist.Gamma(a, a + 1),
    "beta": lambda a: dist.Beta(a, a + 1),
    "dirichlet": dist.Dirichlet,
    "student": lambda a: dist.StudentT(a + 2),
}
ALONG = {
    "normal": lambda a: dist.Normal(a, a),
    "relaxed": lambda a: dist.RelaxedBernoulli(torch.tensor(0.7, dtype=a.dtype), logits=a),
    "weibull": lambda a: dist.Weibull(a, a),
}


def conventions(distribution):
    def fn(a):
        torch.manual_seed(1)
        return distribution(a.exp()).rsample().sin()

    report = check_grad(fn, real(3), raise_exception=False)
    return report.verdict, [f.evidence for f in report.findings if f.kind == "convention"]


@pytest.mark.parametrize("name", IMPLICIT)
def test_a_gradient_that_is_right_in_the_mean_alone_is_explained(name):
    verdict, said = conventions(IMPLICIT[name])
    assert verdict == "mismatch"
    assert len(said) == 1
    assert "not the derivative of this sample" in said[0]


@pytest.mark.parametrize("name", ALONG)
def test_a_gradient_along_the_sample_is_right(name):
    assert conventions(ALONG[name]) == ("ok", [])

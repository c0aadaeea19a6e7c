"""Decompositions whose backward refuses what is arbitrary."""

import pytest
import torch

from multigrad import InconclusiveCheck, check_grad

A = torch.randn(3, 3, dtype=torch.complex128, generator=torch.Generator().manual_seed(1))
HERMITIAN = A @ A.mH + torch.eye(3)


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (torch.linalg.eig, A),
        (torch.linalg.eig, A.real.contiguous()),
        (torch.linalg.svd, A),
        (torch.linalg.eigh, HERMITIAN),
    ],
    ids=["eig", "eig of a real matrix", "svd", "eigh"],
)
def test_complex_vectors_are_given_up_to_a_phase(fn, x):
    with pytest.raises(InconclusiveCheck, match="ill_defined") as caught:
        check_grad(fn, x)
    (finding,) = [f for f in caught.value.report.findings if f.severity == "error"]
    assert (finding.kind, finding.where) == ("ill_defined", "reverse")


@pytest.mark.parametrize(("fn", "x"), [(torch.linalg.eigvals, A), (lambda x: torch.linalg.eig(x)[1].abs(), A)])
def test_what_does_not_depend_on_the_phase_is_checked(fn, x):
    assert check_grad(fn, x).verdict == "ok"

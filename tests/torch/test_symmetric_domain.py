"""Torch's decompositions of symmetric and Hermitian matrices, which read one triangle."""

import pytest
import torch

from multigrad import check_grad

FUNCTIONS = {
    "cholesky": torch.linalg.cholesky,
    "upper cholesky": lambda x: torch.linalg.cholesky(x, upper=True),
    "eigenvalues": torch.linalg.eigvalsh,
    "eigenvectors but for their phase": lambda x: torch.linalg.eigh(x)[1].abs() ** 2,
    "upper eigenvalues": lambda x: torch.linalg.eigvalsh(x, UPLO="U"),
}


@pytest.fixture(params=[torch.float64, torch.complex128])
def matrices(request):
    a = torch.randn(2, 3, 3, dtype=request.param, generator=torch.Generator().manual_seed(3))
    return a @ a.mH + torch.eye(3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_right(name, matrices):
    report = check_grad(FUNCTIONS[name], matrices)
    assert report.verdict == "ok"
    assert "symmetric_domain" in {finding.kind for finding in report.findings}


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bug):
        ctx.bug = bug
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return ctx.bug(g), None


BUGS = {
    "too large": lambda g: 1.001 * g,
    "one triangle twice": lambda g: 2 * g.tril(-1) + g.diagonal(dim1=-2, dim2=-1).diag_embed() * 1.5,
    "first row lost": lambda g: torch.cat([torch.zeros_like(g[..., :1, :]), g[..., 1:, :]], dim=-2),
}


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong(name, bug, matrices):
    report = check_grad(lambda x: FUNCTIONS[name](Wrong.apply(x, BUGS[bug])), matrices, raise_exception=False)
    assert report.verdict == "mismatch"

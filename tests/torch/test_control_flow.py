"""torch.cond and its like: operations that take functions, which torch compiles when they are called."""

from typing import Any

import pytest
import torch

from multigrad import check_grad

from .scaled import Scaled

pytestmark = pytest.mark.filterwarnings("ignore")  # the compiler's own


def branch(x: Any) -> Any:
    return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_branch(dtype: Any) -> None:
    x = torch.tensor([0.3, 0.7], dtype=dtype, requires_grad=True)
    assert check_grad(branch, x).verdict == "ok"
    assert check_grad(lambda x: branch(Scaled.apply(x, 1.1)), x, raise_exception=False).verdict == "mismatch"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_it_can_be_called_after_a_check(dtype: Any) -> None:
    x = torch.tensor([0.3, 0.7, -0.2], dtype=dtype, requires_grad=True)
    expected = branch(x)
    check_grad(branch, x)
    assert torch.equal(branch(x), expected)
    (gradient,) = torch.autograd.grad(branch(x).sum(), x)
    torch.testing.assert_close(gradient, x.detach().cos())

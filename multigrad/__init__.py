"""Gradient checks with error bars for PyTorch, JAX and NumPy."""

from typing import Any as _Any

from multigrad._check import check_grad as check_grad
from multigrad._consistency import check_consistency as check_consistency
from multigrad._consistency_report import Consistency as Consistency
from multigrad._consistency_report import ConsistencyReport as ConsistencyReport
from multigrad._findings import Finding as Finding
from multigrad._gradcheck import gradcheck as gradcheck
from multigrad._report import GradReport as GradReport
from multigrad._verdict import Verdict as Verdict
from multigrad.backends import available_backends as available_backends
from multigrad.backends import get_backend as get_backend
from multigrad.errors import ConventionWarning as ConventionWarning
from multigrad.errors import GradcheckError as GradcheckError
from multigrad.errors import GradientMismatch as GradientMismatch
from multigrad.errors import InconclusiveCheck as InconclusiveCheck
from multigrad.errors import InconsistentFunctions as InconsistentFunctions
from multigrad.errors import NonDifferentiableWarning as NonDifferentiableWarning

__version__ = "0.1.0"


def __getattr__(name: str) -> _Any:
    if name == "register_numpy":  # an adapter's own door; it is loaded when somebody asks for it
        adapter: _Any = get_backend("numpy")
        return adapter.register_numpy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

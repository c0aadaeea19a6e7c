"""Gradient checks with error bars for PyTorch, JAX and NumPy."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from multigrad._check import check_grad as check_grad
from multigrad._comparison.verdict import Verdict as Verdict
from multigrad._gradcheck import gradcheck as gradcheck
from multigrad._report.report import GradReport as GradReport
from multigrad.backends import available_backends as available_backends
from multigrad.backends import get_backend as get_backend
from multigrad.errors import ConventionWarning as ConventionWarning
from multigrad.errors import GradcheckError as GradcheckError
from multigrad.errors import GradientMismatch as GradientMismatch
from multigrad.errors import InconclusiveCheck as InconclusiveCheck
from multigrad.errors import InconsistentFunctions as InconsistentFunctions
from multigrad.errors import NonDifferentiableWarning as NonDifferentiableWarning
from multigrad.findings import Finding as Finding

if _TYPE_CHECKING:
    from multigrad.consistency import Consistency as Consistency
    from multigrad.consistency import ConsistencyReport as ConsistencyReport
    from multigrad.consistency import check_consistency as check_consistency

__version__ = "0.1.0"


_COMPARISON = ("Consistency", "ConsistencyReport", "check_consistency")  # who checks one backend needs none of it


def __getattr__(name: str) -> _Any:
    if name in _COMPARISON:
        return getattr(_import_module("multigrad.consistency"), name)
    if name == "register_numpy":  # an adapter's own door; it is loaded when somebody asks for it
        adapter: _Any = get_backend("numpy")
        return adapter.register_numpy
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_COMPARISON, "register_numpy"})

"""What multigrad raises and warns with.

Every error has a ``kind``, a word for programs; its text says what happened, where, and what to try.
An exception raised by the user's own function is not wrapped: it comes through as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multigrad._report.report import GradReport
    from multigrad.consistency.report import ConsistencyReport
    from multigrad.findings import Finding


def first_line(error: object) -> str:
    """What an exception says, without what follows in other lines."""
    return str(error).strip().partition("\n")[0]


class MultigradError(Exception):
    """Base of all that multigrad raises."""

    kind = "error"


class InvalidUse(MultigradError, ValueError):
    """The call asks for something that has no meaning: nothing to differentiate, a ragged input, a bad option."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type[InvalidUse], tuple[str, str]]:
        return type(self), (self.kind, str(self))


class UnknownBackend(MultigradError, LookupError):
    """No installed adapter goes by that name, or none recognises the inputs."""

    kind = "unknown_backend"


class BackendUnavailable(MultigradError, ImportError):
    """The adapter is installed but its framework is not."""

    kind = "backend_unavailable"


class DuplicateBackend(MultigradError, LookupError):
    """Two installed adapters go by the same name."""

    kind = "duplicate_backend"


class Unsupported(MultigradError, NotImplementedError):
    """An adapter cannot do this for this function (a mode, a batch); the check goes on without it."""

    kind = "unsupported"


class Defect(MultigradError):
    """Raised by an adapter that met a fault in the code under test other than a wrong derivative.

    The core turns it into the finding that it carries.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.evidence)
        self.finding = finding
        self.kind = finding.kind

    def __reduce__(self) -> tuple[type[Defect], tuple[Finding]]:
        return type(self), (self.finding,)


class _AdverseVerdict(MultigradError):
    def __init__(self, report: GradReport) -> None:
        super().__init__(str(report))
        self.report = report


class InconsistentFunctions(MultigradError, AssertionError):
    """The implementations are not the same function, have not the same derivatives, or it cannot be told."""

    kind = "inconsistent"

    def __init__(self, report: ConsistencyReport) -> None:
        super().__init__(str(report))
        self.report = report


class GradientMismatch(_AdverseVerdict, AssertionError):
    """The gradient is wrong: some entry differs from the numerical one by more than the error bars allow."""

    kind = "mismatch"


class InconclusiveCheck(_AdverseVerdict, RuntimeError):
    """It cannot be told whether the gradient is right; the report says why."""

    kind = "inconclusive"


class GradcheckError(MultigradError, RuntimeError):
    """Raised by ``multigrad.gradcheck`` where the gradients are not all close."""

    kind = "mismatch"


class NonDifferentiableWarning(UserWarning):
    """The function has a kink or jump at this point, and the gradient is a legal choice there."""


class ConventionWarning(UserWarning):
    """The implementations differ by conventions that are legal, or that the caller has accepted."""

import pickle

import pytest

from multigrad.errors import Defect, InvalidUse
from multigrad.findings import ERRORS, NOTES, Finding


@pytest.mark.parametrize("kind", sorted(ERRORS | NOTES))
def test_severity_is_told_by_the_kind(kind: str) -> None:
    assert Finding(kind, "seen").severity == ("error" if kind in ERRORS else "note")


def test_no_kind_is_both() -> None:
    assert not ERRORS & NOTES


def test_text_says_what_where_and_what_to_try() -> None:
    finding = Finding("mutates_input", "changed by 0.5", where="inputs[0][1]", remedy="copy it first")
    assert str(finding) == "mutates_input at inputs[0][1]: changed by 0.5 (copy it first)"
    assert str(Finding("promotion", "ran in float64")) == "promotion: ran in float64"


def test_a_defect_carries_its_finding() -> None:
    finding = Finding("wrong_shape", "(3,) became (2,)")
    defect = Defect(finding)
    assert defect.finding is finding
    assert defect.kind == "wrong_shape"
    assert str(defect) == "(3,) became (2,)"


def test_invalid_use_is_a_value_error_with_a_kind() -> None:
    error = InvalidUse("no_differentiable_input", "nothing to differentiate")
    assert isinstance(error, ValueError)
    assert error.kind == "no_differentiable_input"


@pytest.mark.parametrize(
    "error", [Defect(Finding("wrong_shape", "(3,) became (2,)")), InvalidUse("ragged", "no numbers")]
)
def test_errors_travel_between_processes(error: Defect | InvalidUse) -> None:
    came = pickle.loads(pickle.dumps(error))
    assert (type(came), str(came), came.kind) == (type(error), str(error), error.kind)

"""Progress is shown on request and on terminals, and an interrupt leaves everything as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import _progress, check_grad
from multigrad._progress import Progress


def check(**options: Any) -> None:
    check_grad(np.cumsum, np.arange(1.0, 31.0), jac=lambda x: np.tril(np.ones((30, 30))), **options)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "SECONDS", -1.0)


@pytest.mark.usefixtures("impatient")
def test_quiet_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    check()
    check(progress=False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("impatient")
def test_shown_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    check(progress=True)
    out, err = capfd.readouterr()
    assert not out
    assert "directions compared" in err


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("ci", "shown"), [("", True), ("true", False)])
def test_shown_on_a_terminal(
    ci: str, shown: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    check()
    assert ("directions compared" in capfd.readouterr().err) is shown


def test_short_checks_show_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    check(progress=True)
    assert capfd.readouterr() == ("", "")


def test_an_interrupt_says_how_far_it_came() -> None:
    x = np.arange(1.0, 31.0)
    before = x.copy()

    def interrupted(y: Any) -> Any:
        if np.max(np.abs(y - before)) > 4:  # a step of the long ladder, which looks again at what is suspicious
            raise KeyboardInterrupt
        return np.exp(np.cumsum(y) / 100)

    with pytest.raises(KeyboardInterrupt) as caught:
        check_grad(interrupted, x, jac=lambda x: np.eye(30), trace=False)
    assert "interrupted after" in caught.value.__notes__[0]
    assert "directions compared: 30 of 30 done" in caught.value.__notes__[0]
    np.testing.assert_array_equal(x, before)


def test_the_bar_is_stopped() -> None:
    with pytest.raises(KeyboardInterrupt), Progress(True) as progress:
        progress._begun -= 10
        progress("work", 1, 2)
        assert progress._bar.live.is_started
        raise KeyboardInterrupt
    assert not progress._bar.live.is_started

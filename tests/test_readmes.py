"""The code in the READMEs runs as it stands, and says what they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multigrad import check_grad
from multigrad.errors import GradientMismatch
from tests.conftest import distribute

ROOT = Path(__file__).parent.parent


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / path).read_text(), re.DOTALL | re.MULTILINE)


def test_the_example_fails_with_the_message_shown(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (example,) = blocks("README.md", "python")
    (message,) = blocks("README.md", "text")
    (tmp_path / "example.py").write_text(example)
    with pytest.raises(GradientMismatch) as caught:
        runpy.run_path(str(tmp_path / "example.py"))
    assert steady(str(caught.value)) == steady(message)


def steady(text: str) -> list[str]:
    """The message's lines without what differs between runs and machines: the time, and the bars of one digit."""
    text = re.sub(r"\d+ evaluations, \S+ s, seed", "COST, seed", re.sub(r" +\de-1\d\b", " BAR", text))
    return text.strip().splitlines()


def test_the_worked_adapter_works(site: Path) -> None:
    (code,) = blocks("backends/README.md", "python")
    (entry,) = re.findall(r'^complex_step = "(.*)"$', *blocks("backends/README.md", "toml"), re.MULTILINE)
    (site / "my_package.py").write_text(code)
    distribute(site, "my-distribution", "complex_step", entry)
    x = np.array([[0.3, -1.0], [2.0, 0.1]])
    assert check_grad(lambda v: np.sin(v) @ v, x, backend="complex_step").verdict == "ok"
    with pytest.raises(GradientMismatch, match=r"output\[1\]"):
        check_grad(not_analytic, np.array([1.0, 2.0]), backend="complex_step")


def not_analytic(v: Any) -> Any:
    """A function by which a complex step is deceived in the second entry."""
    return np.array([v[0] ** 2, v[1].real ** 2 + 3 * v[0]])

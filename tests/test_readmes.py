"""The code in the READMEs runs as it stands, and says what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multigrad import backends, check_grad
from multigrad.errors import GradientMismatch

ROOT = Path(__file__).parent.parent


def blocks(path: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / path).read_text(), re.DOTALL | re.MULTILINE)


def test_the_example_fails_with_the_message_shown() -> None:
    pytest.importorskip("torch")
    (example,) = blocks("README.md", "python")
    (message,) = blocks("README.md", "text")
    with pytest.raises(GradientMismatch) as caught:
        exec(compile(example, "README.md", "exec"), {})
    assert steady(str(caught.value)) == steady(message)


def steady(text: str) -> list[str]:
    """The message's lines without what differs between runs and machines: times, and the last digits of bars."""
    text = re.sub(r"\d+(\.\d+)?(e[+-]?\d+)? m?s\b", "TIME", text)
    return [line.split("TIME")[0].rstrip() for line in text.strip().splitlines()]


def test_the_worked_adapter_works(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("backends/README.md", "python")
    made: dict[str, Any] = {}
    exec(compile(code, "backends/README.md", "exec"), made)
    adapter = made["ComplexStep"]()
    assert isinstance(adapter, backends.Backend)
    monkeypatch.setattr(backends, "get_backend", lambda name: adapter)
    monkeypatch.setattr("multigrad._check.get_backend", lambda name: adapter, raising=False)
    x = np.array([[0.3, -1.0], [2.0, 0.1]])
    assert check_grad(lambda v: np.sin(v) @ v, x, backend="complex_step").verdict == "ok"
    with pytest.raises(GradientMismatch, match=r"output\[1\]"):
        check_grad(lambda v: v.real**2 + 3j * v.imag * [0, 1], np.array([1.0, 2.0]), backend="complex_step")

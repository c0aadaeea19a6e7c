"""The lines of docs/differences.md run, and say what they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
LINES = re.findall(r"^\| (.+?) \| `(same\(.+\))` \| (.+) \|$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (preamble,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    path = tmp_path_factory.mktemp("docs") / "preamble.py"
    path.write_text(preamble)
    return runpy.run_path(str(path))


def test_every_row_has_its_line() -> None:
    rows = [row for row in TEXT.splitlines() if row.startswith("| ") and not row.startswith("| what |")]
    assert len(LINES) == len(rows) >= 25


@pytest.mark.parametrize(("what", "line", "said"), LINES, ids=[what[:30] for what, _, _ in LINES])
def test_line(what: str, line: str, said: str, names: dict[str, Any]) -> None:
    report = eval(line, names)
    assert said in str(report)
    assert report.verdict != "ok"

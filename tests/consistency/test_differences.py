"""The lines of docs/differences.md run, and say what they say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
SECTIONS = dict(section.partition("\n")[::2] for section in TEXT.split("\n## ")[1:])
ROW = re.compile(r"^\| (.+?) \| `(same\(.+\))` \| (.+) \|$", re.MULTILINE)
LINES = [(title, *row) for title, text in SECTIONS.items() for row in ROW.findall(text)]
NAMED = ("ddof", "gelu", "stop_gradient", "symmetric_domain")
VERDICTS = {
    "Another value": {"mismatch", "inconclusive", "convention"},
    "Another choice where there is no derivative": {"convention"},
    "Another derivative on purpose": {"mismatch"},
    "A wrong derivative": {"mismatch"},
}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (preamble,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    path = tmp_path_factory.mktemp("docs") / "preamble.py"
    path.write_text(preamble)
    return runpy.run_path(str(path))


def test_every_row_has_its_line() -> None:
    rows = [row for row in TEXT.splitlines() if row.startswith("| ") and not row.startswith("| what |")]
    assert len(LINES) == len(rows) >= 25


@pytest.mark.parametrize(("title", "what", "line", "said"), LINES, ids=[what[:30] for _, what, _, _ in LINES])
def test_line(title: str, what: str, line: str, said: str, names: dict[str, Any]) -> None:
    report = eval(line, names)
    assert said in str(report)
    assert report.verdict in VERDICTS[title]
    assert f"`{report.verdict}`" in SECTIONS[title]


@pytest.mark.parametrize(("line", "said"), [(line, said) for *_, line, said in LINES if said in NAMED])
def test_what_has_a_name_is_a_convention_if_it_is_accepted(line: str, said: str, names: dict[str, Any]) -> None:
    check = names["check_consistency"]
    accepting = {
        **names,
        "same": lambda functions, *inputs: check(functions, inputs, accept=said, raise_exception=False),
    }
    assert eval(line, accepting).verdict == "convention"

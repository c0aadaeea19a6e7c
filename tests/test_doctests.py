"""The examples in the docstrings run as they stand."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = [ROOT, ROOT / "backends"]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def names() -> list[str]:
    packages = [f.name for folder in FOLDERS for f in sorted(folder.glob("multigrad*")) if (f / "__init__.py").exists()]
    paths = {
        package: next(folder / package for folder in FOLDERS if (folder / package).exists()) for package in packages
    }
    inside = [info.name for name, path in paths.items() for info in walk_packages([str(path)], prefix=f"{name}.")]
    return [*packages, *inside]


@pytest.mark.parametrize("name", names())
def test_docstrings(name: str) -> None:
    if name.startswith("multigrad_"):
        pytest.importorskip(name.partition(".")[0].removeprefix("multigrad_"))
    failed, _ = doctest.testmod(import_module(name), optionflags=OPTIONS)
    assert not failed

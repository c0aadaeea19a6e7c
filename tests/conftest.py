"""What the tests share: one thread, and the adapter of a third party, installed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from multigrad import backends

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch and JAX are first imported

HERE = Path(__file__).parent


def forget_backends() -> None:
    """Look at the installed distributions anew."""
    backends._registered.cache_clear()
    backends.get_backend.cache_clear()


def distribute(site: Path, distribution: str, backend: str, entry: str) -> None:
    """Put the metadata of a distribution into ``site`` that registers ``entry`` as ``backend``."""
    info = site / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[multigrad.backends]\n{backend} = {entry}\n")
    importlib.invalidate_caches()
    forget_backends()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder on the path, in which distributions can be put."""
    monkeypatch.syspath_prepend(tmp_path)
    forget_backends()
    yield tmp_path
    monkeypatch.undo()
    forget_backends()


@pytest.fixture(scope="session")
def toy_adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed ``multigrad-toy``; it stays on the path for the session."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(target), str(HERE / "third_party_adapter")]
    subprocess.run([*pip, *options], check=True)
    sys.path.append(str(target))
    forget_backends()
    return target

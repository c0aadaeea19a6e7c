"""What the tests share: one thread, and the adapter of a third party, installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from multigrad import backends

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch and JAX are first imported

HERE = Path(__file__).parent


def forget_backends() -> None:
    """Look at the installed distributions anew."""
    backends._registered.cache_clear()
    backends.get_backend.cache_clear()


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

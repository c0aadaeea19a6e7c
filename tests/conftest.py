"""What the tests share: one thread, and the adapter of a third party, installed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from multigrad import backends

settings.register_profile("ci", derandomize=True)  # the same examples every time: a failure there is of the change
if os.environ.get("CI"):
    settings.load_profile("ci")

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch and JAX are first imported

HERE = Path(__file__).parent

# Large grids, of which an ordinary run takes one test in so many; `make test-all` takes them whole.
GRIDS = {
    "consistency/test_planted_mistakes.py": 4,
    "consistency/test_ports.py": 12,
    "consistency/test_suite.py": 18,
    "jax/test_promote.py": 8,
    "numpy/test_batched_functions.py": 16,
    "numpy/test_mgh.py": 4,
    "numpy/test_snippets.py": 4,
    "numpy/test_special_functions.py": 8,
    "numpy/test_traced_functions.py": 72,
    "soundness/test_diagnosis.py": 4,
    "soundness/test_tiny_inputs.py": 3,
    "test_planted_bugs.py": 8,
    "test_ways.py": 24,
    "torch/test_kernels.py": 4,
    "torch/test_promote.py": 8,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="run the large grids whole")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Thin out the grids, always to the same tests; a file that is named on the command line is run whole."""
    if config.getoption("--thorough") or any(Path(str(arg).partition("::")[0]).suffix for arg in config.args):
        return
    chosen = [item for item in items if zlib.crc32(item.nodeid.encode()) % _share(item) == 0]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _share(item: pytest.Item) -> int:
    return GRIDS.get(item.path.relative_to(HERE).as_posix(), 1) if item.path.is_relative_to(HERE) else 1


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

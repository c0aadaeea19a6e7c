"""These tests need all frameworks at once."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import jax
import pytest

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """XLA's optimisations take longer than everything else; and compiled code is kept, 25 MB for each function."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    jax.clear_caches()

"""Who may import whom: read from the source, and proved in fresh interpreters."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import multigrad

CORE = Path(multigrad.__file__).parent
ADAPTERS = Path(__file__).parent.parent / "backends"
FRAMEWORKS = {"jax", "jaxlib", "torch"}
HEAVY = FRAMEWORKS | {"rich", "scipy"}

FLOORS = (  # rooms and modules from the top: an import only ever points down, or to a neighbour on the same floor
    {""},  # the public names
    {"_gradcheck", "consistency"},  # doors
    {"_check"},  # the door
    {"_run"},  # the sequence
    {"_nearby", "_progress", "_remote", "_second"},  # around it
    {"_analytical", "_belongings", "_probing"},  # stages
    {"_conclusion", "_detached", "_doubt", "_purity", "residual"},
    {"_diagnosis", "precision"},
    {"_report"},
    {"_comparison"},
    {"_sparsity"},
    {"_differences"},
    {"_arguments", "batches", "user_jac"},  # the contract, and what adapters share
    {"backends", "tree"},
    {"findings"},  # words
    {"errors"},
)


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def name_of(path: Path) -> str:
    """A module's name below ``multigrad``; a package's is its folder's, and the core's own is empty."""
    return ".".join(part for part in path.relative_to(CORE).with_suffix("").parts if part != "__init__")


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports when it runs: not those for type checkers alone."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            inside = [f"{node.module}.{a.name}" for a in node.names]  # a module of a package, or a name of a module
            yield from inside if node.module == "multigrad" else [str(node.module), *inside]


def imported_after(statement: str) -> set[str]:
    """The top-level packages in a fresh interpreter after ``statement``."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


@pytest.mark.parametrize("path", modules(CORE), ids=name_of)
def test_the_core_names_no_framework_and_no_adapter(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imports(path)}
    assert not roots & FRAMEWORKS
    # The hook by which users add NumPy rules is the adapter's, and is loaded when it is asked for.
    asked_for = {"multigrad_numpy"} if not name_of(path) else set()
    assert not {root for root in roots if root.startswith("multigrad_")} - asked_for


def floor(module: str) -> int:
    room = module.partition(".")[0]
    numbers = [i for i, names in enumerate(FLOORS) if room in names]
    assert len(numbers) == 1, f"multigrad.{room} stands on {len(numbers)} floors; put it on one of FLOORS"
    return numbers[0]


@pytest.mark.parametrize("path", modules(CORE), ids=name_of)
def test_imports_point_down(path: Path) -> None:
    here = floor(name_of(path))
    for name in imports(path):
        package, _, module = name.partition(".")
        if package == "multigrad" and module:
            assert floor(module) >= here, f"{name_of(path)} imports {module}, which stands above it"


def test_no_module_of_a_room_imports_itself_by_way_of_others() -> None:
    """What ``TopologicalSorter`` can't sort it raises for, with the modules that are in a circle."""
    names = {f"multigrad.{name_of(path)}" for path in modules(CORE) if path.name != "__init__.py"}
    graph = {f"multigrad.{name_of(path)}": names.intersection(imports(path)) for path in modules(CORE)}
    assert sum(map(len, graph.values())) > len(names)
    tuple(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("path", modules(ADAPTERS), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_an_adapter_names_no_other_framework(path: Path) -> None:
    own = path.relative_to(ADAPTERS).parts[0].removeprefix("multigrad_")
    engines = {own, f"{own}lib"} | ({"jax"} if own == "numpy" else set())  # JAX is what differentiates NumPy code
    roots = {name.partition(".")[0] for name in imports(path)}
    assert not roots & FRAMEWORKS - engines
    assert not {root for root in roots if root.startswith("multigrad_")} - {f"multigrad_{own}"}


@pytest.mark.parametrize("path", modules(ADAPTERS), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_an_adapter_uses_nothing_that_is_private_to_the_core(path: Path) -> None:
    """What ours may use, any other may."""
    used = {name for name in imports(path) if name.partition(".")[0] == "multigrad"}
    assert not {name for name in used if "._" in name}


def test_comparing_backends_is_loaded_when_it_is_asked_for() -> None:
    code = "import sys, multigrad; before = 'multigrad.consistency' in sys.modules; multigrad.check_consistency"
    code += "; assert not before and 'multigrad.consistency' in sys.modules and 'ConsistencyReport' in dir(multigrad)"
    assert "multigrad" in imported_after(code)


def test_importing_multigrad_imports_no_framework() -> None:
    imported = imported_after("import multigrad")
    assert "multigrad" in imported
    assert not imported & HEAVY


@pytest.mark.parametrize("own", ["jax", "numpy", "torch"])
def test_an_adapter_imports_no_other_framework(own: str) -> None:
    pytest.importorskip(own)
    imported = imported_after(f"from multigrad.backends import get_backend; get_backend({own!r})")
    assert f"multigrad_{own}" in imported
    assert not imported & {"jax", "torch"} - {own}


def test_telling_the_backend_imports_no_other_framework() -> None:
    imported = imported_after("import numpy, multigrad.backends as b; b.backend_of([numpy.ones(1)])")
    assert not imported & {"jax", "torch"}

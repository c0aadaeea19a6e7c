from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from multigrad.backends import Backend, Leaf, accept_options, available_backends, backend_of, get_backend
from multigrad.errors import BackendUnavailable, DuplicateBackend, InvalidUse, MultigradError, UnknownBackend
from tests.conftest import distribute, forget_backends

OURS = {"jax", "numpy", "torch"}


def test_ours_are_registered() -> None:
    assert set(available_backends()) >= OURS


@pytest.mark.parametrize("name", sorted(OURS))
def test_ours_keep_the_contract(name: str) -> None:
    pytest.importorskip(name)
    backend = get_backend(name)
    assert isinstance(backend, Backend)
    assert backend.name == name
    assert backend is get_backend(name)


def test_unknown_backend_lists_the_known() -> None:
    with pytest.raises(UnknownBackend) as caught:
        get_backend("mlx")
    assert "'mlx'" in str(caught.value)
    assert all(repr(name) in str(caught.value) for name in available_backends())
    assert caught.value.kind == "unknown_backend"


def test_missing_framework_is_named(site: Path) -> None:
    (site / "needs_absent.py").write_text("import framework_that_is_absent\n")
    distribute(site, "multigrad-absent", "absent", "needs_absent:Backend")
    assert "absent" in available_backends()
    with pytest.raises(BackendUnavailable, match="pip install framework_that_is_absent") as caught:
        get_backend("absent")
    assert "'absent'" in str(caught.value)
    assert isinstance(caught.value, ImportError)


def test_our_torch_adapter_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_backends()
    monkeypatch.setitem(sys.modules, "torch", None)
    for module in [name for name in sys.modules if name.partition(".")[0] == "multigrad_torch"]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(BackendUnavailable, match="'torch' needs the package 'torch'"):
        get_backend("torch")
    monkeypatch.undo()
    forget_backends()


def test_double_registration_names_both(site: Path) -> None:
    distribute(site, "multigrad-other", "torch", "other_torch:Backend")
    with pytest.raises(DuplicateBackend) as caught:
        get_backend("torch")
    assert "multigrad_torch:TorchBackend" in str(caught.value)
    assert "other_torch:Backend" in str(caught.value)


def test_a_bad_neighbour_does_no_harm(site: Path) -> None:
    distribute(site, "multigrad-broken", "broken", "no_such_module:Backend")
    assert get_backend("numpy").name == "numpy"


def test_an_error_inside_an_adapter_comes_through(site: Path) -> None:
    (site / "raises.py").write_text("1 / 0\n")
    distribute(site, "multigrad-raises", "raises", "raises:Backend")
    with pytest.raises(ZeroDivisionError):
        get_backend("raises")


@pytest.mark.parametrize(
    ("leaves", "name"),
    [([np.ones(2)], "numpy"), ([1.0], "numpy"), ([np.float64(1), 2], "numpy"), ([2j], "numpy")],
)
def test_numbers_go_to_numpy(leaves: list[object], name: str) -> None:
    assert backend_of(leaves).name == name


def test_torch_and_jax_arrays_are_recognised() -> None:
    torch = pytest.importorskip("torch")
    jnp = pytest.importorskip("jax.numpy")
    assert backend_of([np.ones(1), torch.ones(1)]).name == "torch"
    assert backend_of([np.ones(1), jnp.ones(1)]).name == "jax"


def test_subclasses_of_tensors_are_recognised() -> None:
    torch = pytest.importorskip("torch")
    mine = type("Mine", (torch.Tensor,), {})
    assert backend_of([torch.ones(1).as_subclass(mine)]).name == "torch"


def test_numpy_arrays_load_no_stranger(site: Path) -> None:
    distribute(site, "multigrad-broken", "broken", "no_such_module:Backend")
    assert backend_of([np.ones(1), 2.0]).name == "numpy"


def test_tensors_load_no_stranger(site: Path) -> None:
    torch = pytest.importorskip("torch")
    distribute(site, "multigrad-broken", "broken", "no_such_module:Backend")
    assert backend_of([torch.ones(1)]).name == "torch"


def test_nothing_to_recognise() -> None:
    with pytest.raises(UnknownBackend, match="'numpy'"):
        backend_of(["a string", object()])


def test_third_party_adapter_is_found_and_recognises(toy_adapter: Path) -> None:
    backend = get_backend("toy")
    assert isinstance(backend, Backend)
    module = sys.modules["multigrad_toy"]
    assert Path(str(module.__file__)).is_relative_to(toy_adapter)
    assert backend_of([np.ones(2).view(module.ToyArray)]) is backend
    assert backend_of([np.ones(2), np.ones(2).view(module.ToyArray)]) is backend


class _Plain:
    name = "plain"
    options = frozenset({"trace", "chunk"})


def test_options_of_another_backend_are_refused_by_name() -> None:
    assert accept_options(_Plain(), {"trace": True}) == {"trace": True}  # type: ignore[arg-type]
    with pytest.raises(InvalidUse) as caught:
        accept_options(_Plain(), {"trace": True, "tolerance": 1, "wrong": 2})  # type: ignore[arg-type]
    assert caught.value.kind == "unknown_option"
    assert "'tolerance', 'wrong'" in str(caught.value)
    assert "chunk, trace" in str(caught.value)
    assert "'plain'" in str(caught.value)


@pytest.mark.parametrize(
    ("leaf", "k", "place"),
    [
        (Leaf("inputs[0]", (), "float64", 3), 3, "inputs[0]"),
        (Leaf("inputs[1]", (2, 3), "float32", 4), 9, "inputs[1][1, 2]"),
        (Leaf('inputs[0]["w"]', (2,), "complex128", 1), 3, 'inputs[0]["w"][1].real'),
        (Leaf("output", (), "complex64", 0), 1, "output.imag"),
    ],
)
def test_places(leaf: Leaf, k: int, place: str) -> None:
    assert leaf.place(k) == place
    assert k in range(leaf.slice.start, leaf.slice.stop)


def test_every_error_is_ours() -> None:
    for error in (UnknownBackend, BackendUnavailable, DuplicateBackend, InvalidUse):
        assert issubclass(error, MultigradError)


@pytest.mark.parametrize("keyword", ["jac", "params"])
def test_what_an_adapter_has_no_use_for_is_refused(keyword: str) -> None:
    """A derivative that nobody looks at would be called right."""
    with pytest.raises(InvalidUse, match=f"'plain' takes no {keyword}="):
        accept_options(_Plain(), {keyword: len})  # type: ignore[arg-type]
    assert accept_options(_Plain(), {keyword: None}) == {}  # type: ignore[arg-type]

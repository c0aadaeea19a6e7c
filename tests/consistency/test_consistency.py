"""The call itself: inputs of any framework, any two backends, trees, layouts, orders, and the report."""

from __future__ import annotations

import json
from collections import namedtuple
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from multigrad import check_consistency
from multigrad.backends import Options, get_backend
from multigrad.consistency.handover import hand_over
from multigrad.errors import InvalidUse
from tests.consistency.case import draw

X = draw(500, 3, 4)


def consistency(functions: Any, inputs: Any, **options: Any) -> Any:
    return check_consistency(functions, inputs, raise_exception=False, **options)


def squares(x: Any) -> Any:
    return (x * x).sum()


# ---- inputs


@pytest.mark.parametrize("name", ["torch", "jax", "numpy"])
def test_arrays_are_handed_over_without_a_copy(name: str) -> None:
    room = np.zeros(1024 + 8)
    start = -room.ctypes.data % 64 // 8  # JAX shares memory that lies at a multiple of 64 bytes
    x = room[start : start + 1024]
    x[:] = np.arange(1024.0)
    (given,) = hand_over((x,), get_backend(name), {})
    assert get_backend(name).recognises(given)
    assert np.shares_memory(np.from_dlpack(given), x)


@pytest.mark.parametrize("name", ["torch", "jax", "numpy"])
@pytest.mark.parametrize(
    "x",
    [X.T, X[::-1, ::2], np.float32(0.3), np.array([True, False]), np.zeros((0, 3)), np.array([1 + 2j], np.complex64)],
    ids=["transposed", "negative strides", "scalar", "bool", "empty", "complex64"],
)
def test_any_array_is_handed_over(name: str, x: Any) -> None:
    x = np.asarray(x)
    x.flags.writeable = False
    (given,) = hand_over((x,), get_backend(name), {})
    assert np.array_equal(np.asarray(given), x)
    assert np.asarray(given).dtype == x.dtype


def test_float64_arrays_are_float64_to_jax_whatever_its_mode() -> None:
    """The mode is 32-bit here."""
    (x,) = hand_over((X,), get_backend("jax"), {})
    f = get_backend("jax").flatten(lambda x: jnp.tanh(0.3 * x), (x,), Options())
    assert f.eps == 2.0**-52
    assert np.allclose(f.repeats[0], np.tanh(0.3 * X).ravel(), rtol=1e-15)


def jax_array() -> Any:
    with jax.enable_x64(True):
        return jnp.asarray(X)


@pytest.mark.parametrize(
    "x", [X, torch.tensor(X, requires_grad=True), jax_array()], ids=["numpy", "torch requiring grad", "jax"]
)
def test_inputs_of_any_framework(x: Any) -> None:
    report = consistency(squares, x, backends=["torch", "jax", "numpy"])
    assert report.verdict == "ok", str(report)
    assert list(report.table) == ["torch", "jax", "numpy"]


def test_one_array_api_function_for_all() -> None:
    def center(x: Any) -> Any:
        xp = torch if isinstance(x, torch.Tensor) else x.__array_namespace__()
        return xp.tanh(x - xp.mean(x, axis=0))

    assert consistency(center, X, backends=["torch", "jax"]).verdict == "ok"


def test_nested_inputs_with_fixed_ones() -> None:
    Layer = namedtuple("Layer", "w b")
    inputs = ({"layers": [Layer(draw(501, 2, 2), draw(502, 2))]}, draw(503, 2), np.array([1, 0]), 3, None)

    def network(p: Any, x: Any, order: Any, power: int, _: None) -> Any:
        for layer in p["layers"]:
            x = (layer.w @ x + layer.b)[order]
        return {"y": x**power, "n": 2}

    report = consistency(network, inputs, backends=["torch", "jax", "numpy"])
    assert report.verdict == "ok", str(report)
    assert report.sides["jax"].inputs[0].path == 'inputs[0]["layers"][0].w'


@pytest.mark.parametrize("pair", [("torch", "jax"), ("jax", "numpy"), ("numpy", "torch")], ids="-".join)
def test_any_two_backends(pair: tuple[str, str]) -> None:
    assert consistency(squares, X, backends=pair).verdict == "ok"


def test_a_third_party_takes_part_by_name(toy_adapter: Path) -> None:
    report = consistency(squares, X, backends=["toy", "torch"])
    assert report.verdict == "ok", str(report)
    assert report.table["toy"]["reverse"].note == "none"
    assert report.table["toy"]["forward"].answer == "ok"
    report = consistency({"toy": lambda x: (x * x).sum() * 1.5, "torch": squares, "numpy": squares}, X)
    assert report.odd == ("toy",)


# ---- derivatives


def test_numpy_with_a_jac() -> None:
    functions = {"torch": squares, "numpy": squares}
    assert consistency(functions, X, jac={"numpy": lambda x: 2 * x}).verdict == "ok"
    report = consistency(functions, X, jac={"numpy": lambda x: 2.1 * x})
    assert (report.verdict, report.odd, report.blame) == (
        "mismatch",
        ("numpy",),
        {"numpy": "by the numerical witness"},
    )
    assert report.worst[0].numbers["torch"] == pytest.approx(report.worst[0].numeric)


def test_a_function_without_a_derivative_is_a_witness(toy_adapter: Path) -> None:
    """It can't be differentiated by its backend, and says what the others' derivatives have to be."""

    def untraceable(x: Any) -> Any:
        return np.array([float(v) ** 2 for v in x.ravel()])

    report = consistency({"torch": lambda x: (x**2).ravel(), "numpy": untraceable}, X)
    assert report.verdict == "ok", str(report)
    assert report.sides["numpy"].legs


def test_second_order_finds_what_first_order_cannot() -> None:
    @jax.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    def backward(x: Any, u: Any) -> Any:
        return (u * 3 * jax.lax.stop_gradient(x) ** 2,)

    cube.defvjp(lambda x: (cube(x), x), backward)
    functions = {"torch": lambda x: x**3, "jax": cube}
    assert consistency(functions, X[0]).verdict == "ok"
    report = consistency(functions, X[0], order=2)
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    assert report.blame["jax"].endswith("order 2")
    assert report.table["torch"]["second"].answer == "ok"
    assert report.worst[0].output.startswith("grad(inputs[0])[")


def test_both_sides_wrong_in_the_same_way_are_refuted_by_the_numerical_witness() -> None:
    functions = {"torch": lambda x: x * x.detach(), "jax": lambda x: x * jax.lax.stop_gradient(x)}
    report = consistency(functions, X)
    assert report.odd == ("torch", "jax")
    assert set(report.blame.values()) == {"by the numerical witness"}


# ---- trees and layouts


def test_outputs_are_matched_by_name_and_by_mapping() -> None:
    def torch_two(x: Any) -> Any:
        return {"mean": x.mean(0), "max": x.amax(0)}

    def jax_two(x: Any) -> Any:
        return {"aux": {"max": x.max(0)}, "mean": x.mean(0)}

    def swapped(x: Any) -> Any:
        return x.max(0), x.mean(0)

    assert consistency({"torch": torch_two, "jax": jax_two}, X).verdict == "ok"
    mapping = {"jax": {"output[0]": 'output["max"]', "output[1]": 'output["mean"]'}}
    assert consistency({"torch": torch_two, "jax": swapped}, X, mapping=mapping).verdict == "ok"
    assert consistency({"torch": torch_two, "jax": swapped}, X).verdict == "mismatch"


def test_an_output_that_one_side_lacks() -> None:
    report = consistency({"torch": lambda x: (x.sum(), x), "jax": lambda x: (x.sum(),)}, X)
    assert report.verdict == "mismatch"
    assert any(f.kind == "unmatched" and f.where == "output[1]" for f in report.findings)


@pytest.mark.parametrize("shape", [(4, 4), (5, 4)], ids=["square", "of a shape that fits in no other way"])
def test_a_transposed_weight_is_found_and_can_be_declared(shape: tuple[int, int]) -> None:
    functions = {"torch": torch.nn.functional.linear, "jax": lambda x, w: x @ w}
    inputs = (X, draw(504, *shape))
    report = consistency(functions, inputs, reference="torch")
    assert (report.verdict, report.odd) == ("mismatch", ("jax",))
    assert any(f.kind == "layout" and "inputs[1]" in f.where for f in report.findings)
    assert consistency(functions, inputs, mapping={"jax": {"inputs[1]": (1, 0)}}).verdict == "ok"


def test_channels_last_is_found_and_can_be_declared() -> None:
    def last(x: Any, w: Any) -> Any:
        numbers = jax.lax.conv_dimension_numbers(x.shape, w.shape, ("NHWC", "OIHW", "NHWC"))
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=numbers)

    functions = {"torch": torch.nn.functional.conv2d, "jax": last}
    inputs = (draw(505, 1, 2, 4, 3), draw(506, 3, 2, 2, 2))
    report = consistency(functions, inputs, reference="torch")
    assert (report.verdict, report.odd) == ("mismatch", ("jax",))
    assert report.layouts == {"jax": {"inputs[0]": (0, 2, 3, 1), "output": (0, 2, 3, 1)}}
    assert "NCHW to NHWC" in str(report)
    assert consistency(functions, inputs, mapping=report.layouts).verdict == "ok"


# ---- the report


def test_two_sides_that_differ_cannot_be_told_apart_without_a_reference() -> None:
    functions = {"torch": squares, "jax": lambda x: (x * x).mean()}
    report = consistency(functions, X)
    assert (report.verdict, report.odd, report.agreeing) == ("mismatch", (), ())
    assert "cannot be told which is right" in str(report)
    report = consistency(functions, X, reference="jax")
    assert (report.odd, report.agreeing) == (("torch",), ("jax",))


def test_a_forward_code_that_does_not_fit_its_own_rule_is_odd_among_two() -> None:
    @jax.custom_vjp
    def ported(x: Any) -> Any:
        return jnp.sum(x**2) * 1.1

    ported.defvjp(lambda x: (ported(x), x), lambda x, u: (u * 2 * x,))
    report = consistency({"torch": squares, "jax": ported}, X)
    assert report.odd == ("jax",)


def test_differences_beyond_rounding_and_below_the_tolerance_are_left_open() -> None:
    report = consistency({"torch": squares, "jax": lambda x: squares(x) * (1 + 1e-10)}, X)
    assert report.verdict == "inconclusive"
    assert "more than rounding" in report.reason
    assert (
        consistency({"torch": squares, "jax": lambda x: squares(x) * (1 + 1e-10)}, X, rtol=1e-11).verdict == "mismatch"
    )


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([-0.29, 0.1], [0.36, 0.1], "differs from numpy by up to 0.65 (1.8 of the value) in 1 of 2 entries"),
        ([2.0, 1e-3], [2.5, 2e-3], "differs from numpy by up to 0.5 (0.2 of the value) in 2 of 2 entries"),
        ([np.nan, 1.0], [1.0, 2.0], "differs from numpy by NaN or infinity in 2 of 2 entries"),
    ],
)
def test_how_far_values_differ_is_said_in_both_ways(a: Any, b: Any, words: str) -> None:
    functions = {"torch": lambda x: x + torch.tensor(np.array(a)), "numpy": lambda x: x + np.array(b)}
    report = consistency(functions, np.zeros(2), reference="numpy")
    assert report.table["torch"]["value"].note == words


def test_the_report_is_for_programs_too() -> None:
    report = consistency({"torch": torch.sum, "jax": jnp.sum, "numpy": np.mean}, X, order=2)
    told = json.loads(json.dumps(report.to_dict()))
    assert told["odd"] == ["numpy"]
    assert told["blame"] == {"numpy": "by majority"}
    assert told["worst"][0]["numbers"]["torch"] == pytest.approx(X.sum())
    assert told["table"]["numpy"]["value"]["answer"] == "mismatch"
    assert "backend" in str(report) and "second" in str(report)


def test_the_users_exceptions_come_through_with_the_backend() -> None:
    def broken(x: Any) -> Any:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine") as caught:
        consistency({"torch": squares, "jax": broken}, X)
    assert "'jax'" in caught.value.__notes__[-1]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: check_consistency({"torch": squares}, X), "too_few_backends"),
        (lambda: check_consistency({"torch": squares, "jax": 3}, X), "not_callable"),
        (lambda: check_consistency({"torch": squares, "jax": squares}, X, reference="numpy"), "unknown_backend"),
        (lambda: check_consistency({"torch": squares, "jax": squares}, X, accept=["gelo"]), "unknown_convention"),
        (lambda: check_consistency({"torch": squares, "jax": squares}, X, order=3), "bad_order"),
        (
            lambda: check_consistency(squares, X, backends=["torch", "jax"], mapping={"jax": {"output": (1, 1)}}),
            "bad_mapping",
        ),
        (
            lambda: check_consistency(squares, X, backends=["torch", "jax"], mapping={"jax": {"inputs[0]": (0, 2, 1)}}),
            "bad_mapping",
        ),
        (
            lambda: check_consistency({"torch": squares, "jax": squares}, {"torch": torch.ones(2), "jax": np.zeros(2)}),
            "different_inputs",
        ),
        (lambda: check_consistency(squares, 3, backends=["torch", "jax"]), "no_differentiable_input"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_use(call: Any, kind: str) -> None:
    with pytest.raises(InvalidUse) as caught:
        call()
    assert caught.value.kind == kind


def test_nothing_is_close_to_an_infinite_value() -> None:
    functions = {"numpy": lambda x: np.array([np.inf, x[0]]), "jax": lambda x: jnp.stack([x[1], x[0]])}
    assert consistency(functions, np.array([1.3, 2.2])).verdict == "mismatch"


@pytest.mark.parametrize("options", [{"modes": "reverse"}, {"modes": ("sideways",)}, {"rtol": -1.0}])
def test_arguments_that_make_no_sense(options: Any) -> None:
    with pytest.raises(InvalidUse, match=next(iter(options))):
        consistency({"numpy": squares, "jax": squares}, X, **options)


def test_backends_without_a_function() -> None:
    with pytest.raises(InvalidUse, match=r"backends names \['torch'\]"):
        consistency({"numpy": squares, "jax": squares}, X, backends=["numpy", "torch"])


@pytest.mark.parametrize("inputs", [{"numpy": np.ones(2)}, {"numpy": np.ones(2), "jx": np.ones(2)}])
def test_inputs_by_backend_are_for_all_of_them(inputs):
    with pytest.raises(InvalidUse, match=r"none are given for \['jax'\]"):
        check_consistency({"numpy": np.sin, "jax": jnp.sin}, inputs)

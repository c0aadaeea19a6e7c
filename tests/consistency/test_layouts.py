"""Arrays that lie in another layout, are of another shape, or hold other numbers: what there is, is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from multigrad import check_consistency
from multigrad.backends import Leaf
from multigrad.consistency.layouts import data_orders
from multigrad.consistency.matching import Pair
from tests.consistency.case import draw

IMAGE, KERNEL = draw(560, 1, 2, 5, 5), draw(561, 3, 2, 3, 3)
SEQUENCE = draw(562, 3, 3, 3)


def last(x: Any, axes: tuple[int, ...] = (0, 2, 3, 1)) -> Any:
    return x.transpose(axes).copy()


def conv(padding: str = "VALID") -> Callable[..., Any]:
    def channels_last(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return channels_last


OWN = {"torch": (IMAGE, KERNEL), "jax": (last(IMAGE), last(KERNEL, (2, 3, 1, 0)))}


def consistency(torch_fn: Any, jax_fn: Any, inputs: Any, **options: Any) -> Any:
    return check_consistency({"torch": torch_fn, "jax": jax_fn}, inputs, **{"raise_exception": False, **options})


def evidence(report: Any, kind: str) -> list[str]:
    return [f"{f.where}: {f.evidence} ({f.remedy})" for f in report.findings if f.kind == kind]


# ---- outputs that lie as the inputs do


def test_an_output_that_lies_as_the_image_is_compared_in_that_order() -> None:
    report = consistency(F.conv2d, conv(), OWN)
    assert report.verdict == "ok", str(report)
    assert report.layouts["jax"]["output"] == (0, 2, 3, 1)
    assert "as inputs[0] lies (to say so, mapping={'jax': {'output': (0, 2, 3, 1)}})" in str(report)


def test_two_ports_in_the_same_other_layout() -> None:
    def windows(x: Any, w: Any) -> Any:
        return np.einsum("nabihw,hwio->nabo", np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2)), w)

    functions = {"torch": F.conv2d, "jax": conv(), "numpy": windows}
    report = check_consistency(functions, OWN | {"numpy": OWN["jax"]}, raise_exception=False)
    assert report.verdict == "ok", str(report)


def test_time_first() -> None:
    inputs = {"torch": SEQUENCE, "jax": last(SEQUENCE, (1, 0, 2))}
    report = consistency(lambda x: x.cumsum(1), lambda x: x.cumsum(0), inputs)
    assert report.verdict == "ok", str(report)
    assert report.layouts["jax"]["output"] == (1, 0, 2)


@pytest.mark.parametrize("shape", [(1, 2, 5, 5), (1, 2, 5, 4)], ids=["square", "rectangle"])
def test_a_mistake_in_another_layout_is_shown_in_that_layout(shape: tuple[int, ...]) -> None:
    image = draw(563, *shape)
    inputs = {"torch": (image, KERNEL), "jax": (last(image), OWN["jax"][1])}
    report = consistency(F.conv2d, lambda x, w: 1.1 * conv()(x, w), inputs, reference="torch")
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    assert all(d.numbers["jax"] == pytest.approx(1.1 * d.numbers["torch"]) for d in report.worst)
    assert "a constant factor of 1.1" in str(report)


def test_a_transposed_kernel_is_no_reason_for_a_transposed_output() -> None:
    x, w = draw(564, 3, 3), draw(565, 3, 3)
    inputs = {"torch": (x, w), "jax": (x, w.T.copy())}
    report = consistency(F.linear, lambda x, w: (x @ w).T, inputs, reference="torch")
    assert (report.verdict, report.odd) == ("mismatch", ("jax",)), str(report)
    assert "mapping={'jax': {'output': (1, 0)}}" in str(report)


def test_outputs_stay_where_they_agree_as_they_are() -> None:
    """Channels last inside, and back again at the end."""
    report = consistency(F.conv2d, lambda x, w: conv()(x, w).transpose(0, 3, 1, 2), OWN)
    assert report.verdict == "ok", str(report)
    assert "output" not in report.layouts["jax"]


@pytest.mark.parametrize(
    ("axes", "counts"),
    [
        ((0, 2, 3, 1), True),
        ((0, 3, 1, 2), True),
        ((1, 2, 0), True),
        ((0, 2, 1), True),
        ((1, 0, 2), True),
        ((0, 4, 1, 2, 3), True),
        ((1, 0), False),
        ((2, 3, 1, 0), False),
        ((3, 2, 0, 1), False),
        ((2, 1, 0), False),
        (None, False),
    ],
)
def test_orders_of_data(axes: Any, counts: bool) -> None:
    shape = tuple(range(2, 2 + len(axes or (1,))))
    leaf = Leaf("inputs[0]", shape, "float64", 0)
    assert data_orders([Pair(leaf, leaf, axes)]) == ({axes: leaf.path} if counts else {})


# ---- other layouts


@pytest.mark.parametrize("shape", [(2, 3), (3, 3)], ids=["rectangle", "square"])
@pytest.mark.parametrize("own", [True, False], ids=["own inputs", "inputs given once"])
def test_an_output_in_another_order_comes_with_what_to_write(shape: tuple[int, ...], own: bool) -> None:
    x = draw(566, *shape)
    report = consistency(lambda x: x.T, lambda x: {"y": 1 * x}, {"torch": x, "jax": x} if own else x)
    assert report.verdict == "mismatch"
    assert all(d.output[len("output") :] and shape == (3, 3) for d in report.worst)
    assert "if the arrays of jax lie in another layout" in str(report)
    mapping = {"jax": {'output["y"]': ("output", (1, 0))}}
    assert f"mapping={mapping!r}" in str(report)
    assert consistency(lambda x: x.T, lambda x: {"y": 1 * x}, x, mapping=mapping).verdict == "ok"


def test_entries_of_images_in_another_layout_are_not_set_side_by_side() -> None:
    cube = draw(567, 3, 3, 3, 3)
    report = consistency(F.conv2d, conv(), (cube, draw(568, 3, 3, 3, 3)))
    assert report.verdict == "mismatch"
    assert not report.worst
    assert consistency(F.conv2d, conv(), (cube, draw(568, 3, 3, 3, 3)), mapping=report.layouts).verdict == "ok"


@pytest.mark.parametrize("shape", [(2, 3), (3, 3)], ids=["rectangle", "square"])
def test_the_first_may_be_the_one_that_lies_otherwise(shape: tuple[int, ...]) -> None:
    functions = {"torch": lambda x: x.T, "jax": lambda x: 1 * x, "numpy": lambda x: 1 * x}
    report = check_consistency(functions, draw(569, *shape), raise_exception=False)
    assert (report.verdict, report.odd) == ("mismatch", ("torch",)), str(report)
    assert "reference='jax', mapping={'torch': {'output': (1, 0)}}" in str(report)
    mapping = {"torch": {"output": (1, 0)}}
    assert check_consistency(functions, draw(569, *shape), reference="jax", mapping=mapping).verdict == "ok"


def test_entries_of_transposed_shapes_are_not_set_side_by_side() -> None:
    report = consistency(lambda x: x.T**2, lambda x: 1 * x, draw(570, 2, 3))
    assert report.verdict == "mismatch"
    assert not report.worst
    assert report.table["jax"]["value"].note == "its axes are not in the order of torch's"
    (said,) = evidence(report, "layout")
    assert "returns it in shape (2, 3), torch in (3, 2)" in said
    assert "mapping={'jax': {'output': (1, 0)}}" in said


# ---- other shapes, other numbers


@pytest.mark.parametrize(
    ("torch_fn", "jax_fn", "inputs", "words"),
    [
        (
            lambda x, w: F.conv2d(x, w, padding=1),
            conv(),
            OWN,
            "output: shape (1, 3, 5, 5) in torch, (1, 3, 3, 3) in jax (look at padding and strides: they differ along axes 2, 3)",
        ),
        (
            lambda x: x.sum(0),
            lambda x: x.sum(1),
            draw(571, 3, 4),
            "output: shape (4,) in torch, (3,) in jax (as if axis 0 of inputs[0] were reduced in torch, axis 1 in jax)",
        ),
        (
            lambda x: x[:2],
            lambda x: x[:3],
            draw(572, 5),
            "output: shape (2,) in torch, (3,) in jax (look at what is reduced, cut off or joined: they differ along axis 0)",
        ),
        (
            lambda x: x.sum(),
            lambda x: x.sum(1, keepdims=True),
            draw(573, 3, 4),
            "output: shape () in torch, (3, 1) in jax (look at axes that are reduced, kept (keepdims) or added)",
        ),
        (lambda x: x + 0j, lambda x: x * 1.0, draw(574, 3), "output: complex128 in torch, float64 in jax ()"),
    ],
    ids=["padding", "axis", "slice", "rank", "type"],
)
def test_the_shapes_are_said_and_where_to_look(torch_fn: Any, jax_fn: Any, inputs: Any, words: str) -> None:
    report = consistency(torch_fn, jax_fn, inputs)
    assert report.verdict == "mismatch"
    assert evidence(report, "unmatched") == [words]


def test_parameters_that_were_not_copied() -> None:
    def f(p: Any, x: Any) -> Any:
        return p["w"] * x

    w, x = np.array([0.3, 0.5]), np.array([1.2, 0.7])
    report = consistency(f, f, {"torch": ({"w": torch.tensor(w)}, x), "jax": ({"w": w - 0.1}, x)})
    (said,) = evidence(report, "unmatched")
    assert "jax's inputs[0][\"w\"] has this name and shape but other numbers than torch's" in said
    assert "(they differ by up to 0.1) (copy the parameters" in said


def test_a_kernel_that_was_not_copied_and_lies_otherwise() -> None:
    w, x = draw(575, 2, 3), draw(576, 3)
    inputs = {"torch": (w, x), "jax": ({"kernel": w.T + 0.1}, x)}
    report = consistency(lambda w, x: w @ x, lambda p, x: x @ p["kernel"], inputs)
    (said,) = evidence(report, "unmatched")
    assert "has this shape with the axes in the order (1, 0), transposed, but other numbers" in said
    assert "by up to 0.1)" in said


def test_who_has_a_copy_is_not_accused() -> None:
    def f(p: Any, x: Any) -> Any:
        return p["w"] * x

    w, x = np.array([0.3, 0.5]), np.array([1.2, 0.7])
    inputs = {"torch": ({"w": w}, x), "jax": ({"w": w + 0.1}, x), "numpy": ({"w": w}, x)}
    report = check_consistency(dict.fromkeys(inputs, f), inputs, raise_exception=False)
    (said,) = evidence(report, "unmatched")
    assert said.startswith('inputs[0]["w"]: jax\'s')
    assert report.odd == ("jax",)

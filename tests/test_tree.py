from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest

from multigrad.tree import map_leaves, walk

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Layer:
    w: float
    name: str


TREE = ([1.0, (2.0,)], {"a": 3.0, 5: Point(4.0, Layer(5.0, "dense"))}, None)


def test_paths_are_written_as_the_user_writes_them():
    paths = [path for path, _ in walk(TREE, "inputs")]
    assert paths == [
        "inputs[0][0]",
        "inputs[0][1][0]",
        'inputs[1]["a"]',
        "inputs[1][5].x",
        "inputs[1][5].y.w",
        "inputs[1][5].y.name",
        "inputs[2]",
    ]
    layers = Layer(1.0, "x")
    assert all(eval(path, {"inputs": TREE}) == value for path, value in walk(TREE, "inputs")), layers


def test_map_leaves_makes_new_containers_of_the_same_types():
    copied = map_leaves(lambda value: value, TREE)
    assert copied == TREE
    assert copied[0] is not TREE[0] and copied[1] is not TREE[1]
    assert type(copied[1][5]) is Point and type(copied[1][5].y) is Layer


def test_map_leaves_changes_a_frozen_dataclass_without_touching_the_original():
    layer = Layer(1.0, "dense")
    assert map_leaves(lambda v: v * 2, layer) == Layer(2.0, "densedense")
    assert layer == Layer(1.0, "dense")


@pytest.mark.parametrize("tree", [[], (), {}, OrderedDict(b=1.0, a=2.0), [{}, ()]])
def test_empty_and_ordered_containers_survive(tree):
    copied = map_leaves(lambda value: value, tree)
    assert copied == tree and type(copied) is type(tree)
    assert list(walk(copied)) == list(walk(tree))

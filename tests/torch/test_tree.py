from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field

import pytest
import torch

from multigrad_torch._data.tree import Tree

Pair = namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Frozen:
    a: object
    b: list = field(default_factory=list)


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (7, ["x"]),
        (None, ["x"]),
        ([1, (2,)], ["x[0]", "x[1][0]"]),
        ({"w": 1, 3: [2]}, ['x["w"]', "x[3][0]"]),
        (OrderedDict(b=1, a=2), ['x["b"]', 'x["a"]']),
        (Pair(1, {"k": 2}), ["x.first", 'x.second["k"]']),
        (Frozen(1, [2, 3]), ["x.a", "x.b[0]", "x.b[1]"]),
        ((), []),
    ],
)
def test_paths_and_rebuilding(value, paths):
    tree = Tree(value, "x")
    assert [path for path, _ in tree.leaves] == paths
    again = tree.build(iter([leaf for _, leaf in tree.leaves]))
    assert again == value
    assert type(again) is type(value)


def test_rebuilt_containers_are_fresh():
    inner = [1]
    made = Tree({"k": inner}, "x").build(iter([5]))
    made["k"].append(6)
    assert inner == [1]


def test_structures_that_torch_returns():
    tree = Tree(torch.linalg.eigh(torch.eye(2)), "output")
    assert len(tree.leaves) == 2
    assert type(tree.build(iter([1, 2]))).__name__ == "linalg_eigh"


def test_modules_and_tensors_are_leaves():
    module, tensor = torch.nn.Linear(1, 1), torch.zeros(3)
    assert [leaf for _, leaf in Tree((module, tensor), "x").leaves] == [module, tensor]

"""The planted derivatives are what the frameworks then compute: proved with the frameworks' own AD."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bugs import BUGS
from tests.derivatives import with_derivative
from tests.problems import PROBLEMS, Problem, tree

NAMES = ("matmul", "two_inputs_two_outputs", "dict_input", "dict_output", "integer_index", "complex_square")
some = pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.name in NAMES], ids=lambda p: p.name)


@some
def test_torch(problem: Problem) -> None:
    torch = pytest.importorskip("torch")
    planted = BUGS["one entry dropped"](problem.blocks(), problem.name)
    assert planted is not None
    fn, _ = with_derivative(problem, "torch", planted.blocks)
    inputs = problem.arguments("torch")
    outputs = [torch.view_as_real(y) if y.is_complex() else y for y in tree.leaves(fn(*inputs))]
    checked = [x for x in tree.leaves(inputs) if x.requires_grad]
    for y, row in zip(outputs, planted.blocks, strict=True):
        for r, entry in enumerate(y.reshape(-1)):
            bars = torch.autograd.grad(entry, checked, retain_graph=True)
            for bar, block in zip(bars, row, strict=True):
                real = torch.view_as_real(bar) if bar.is_complex() else bar
                np.testing.assert_array_equal(real.reshape(-1).numpy(), block[r])


@some
def test_jax(problem: Problem) -> None:
    jax = pytest.importorskip("jax")
    planted = BUGS["one entry dropped"](problem.blocks(), problem.name)
    assert planted is not None
    with jax.enable_x64(True):
        fn, _ = with_derivative(problem, "jax", planted.blocks)
        outputs, pull = jax.vjp(fn, *problem.arguments("jax"))
        leaves = tree.leaves(outputs)
        for i, row in enumerate(planted.blocks):
            for r in range(leaves[i].size):
                # The real part is picked by the cotangent 1; for complex numbers rows come in pairs.
                one = [np.zeros(y.shape, y.dtype) for y in leaves]
                one[i].flat[r] = 1
                bars = [b for b in tree.leaves(pull(tree.refill(outputs, iter(one)))) if b.dtype.kind in "fc"]
                for bar, block in zip(bars, row, strict=True):
                    real = np.conj(bar).ravel().view(np.float64) if np.iscomplexobj(bar) else np.ravel(bar)
                    np.testing.assert_array_equal(real, block[r * (1 + np.iscomplexobj(leaves[i]))])


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_change_what_they_say(bug: str) -> None:
    for problem in PROBLEMS:
        right = problem.blocks()
        planted = BUGS[bug](right, problem.name)
        if planted is None:
            continue
        changed = {
            (i, j, int(r), int(c))
            for i, (a, b) in enumerate(zip(right, planted.blocks, strict=True))
            for j, (x, y) in enumerate(zip(a, b, strict=True))
            for r, c in np.argwhere(x != y)
        }
        assert changed == planted.places

"""One planted bug of each kind of diagnosis, on each backend that can have it; and none where nothing is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from multigrad import check_grad
from multigrad._diagnosis.diagnose import of_cotangent
from multigrad.backends import Leaf

from .rules import BACKENDS, with_rule

X = np.array([0.3, -0.7, 1.1, 0.45])
A = np.array([[0.3, -1.2, 0.5], [0.8, 0.1, -0.4], [-0.6, 0.9, 1.3]])
B = np.array([[0.2, 0.7], [-1.1, 0.4], [0.6, -0.9]])


def sines(xp: Any, x: Any) -> Any:
    return xp.sin(x)


def product(xp: Any, x: Any, y: Any) -> Any:
    return x * xp.sin(y)


def times_matrix(xp: Any, x: Any) -> Any:
    return xp.asarray(A) @ x


def cumulative(xp: Any, x: Any) -> Any:
    return xp.cumsum(xp.sin(x), 0)


def summed(xp: Any, x: Any) -> Any:
    return xp.sum(xp.sin(x))


def weighted(xp: Any, x: Any) -> Any:
    return xp.sum(xp.asarray(A) * xp.sin(x))


def _upper(xp: Any, g: Any) -> Any:
    return g * 0 + xp.sum(g) - xp.cumsum(g, 0) + g


BUGS = {
    "sign": (sines, lambda xp, g, x: (-g * xp.cos(x),), (X,), "minus the derivative: the sign is wrong"),
    "factor": (sines, lambda xp, g, x: (1.25 * g * xp.cos(x),), (X,), "1.25 times the derivative"),
    "twice": (sines, lambda xp, g, x: (2 * g * xp.cos(x),), (X,), "2 times the derivative: accumulated twice"),
    "half": (sines, lambda xp, g, x: (g * xp.cos(x) / 2,), (X,), "1/2 times the derivative"),
    "mean for sum": (summed, lambda xp, g, x: (g * xp.cos(x) / 4,), (X,), "1/4 times the derivative, 4 being a size"),
    "sum for mean": (
        lambda xp, x: xp.sum(xp.sin(x)) / 4,
        lambda xp, g, x: (g * xp.cos(x),),
        (X,),
        "4 times the derivative, that being a size of inputs[0]: a sum is taken for a mean",
    ),
    "transposed": (times_matrix, lambda xp, g, x: (xp.asarray(A) @ g,), (X[:3],), "the block is the transpose"),
    "transposed gradient": (
        weighted,
        lambda xp, g, x: ((g * xp.asarray(A) * xp.cos(x)).T,),
        (A + 0.1,),
        "the gradient of inputs[0], shape (3, 3), is transposed",
    ),
    "one input zero": (
        product,
        lambda xp, g, x, y: (g * xp.sin(y), 0 * g),
        (X, X + 0.5),
        "no gradient of output reaches inputs[1]",
    ),
    "one entry zero": (
        summed,
        lambda xp, g, x: (g * xp.cos(x) * xp.asarray(np.array([1.0, 0.0, 1.0, 0.0])),),
        (X,),
        "the columns of inputs[0][1], inputs[0][3] are zero",
    ),
    "exchanged": (
        product,
        lambda xp, g, x, y: (g * x * xp.cos(y), g * xp.sin(y)),
        (X, X + 0.5),
        "the gradients of inputs[0] and inputs[1] are exchanged",
    ),
    "permuted": (
        sines,
        lambda xp, g, x: ((g * xp.cos(x))[xp.asarray(np.array([3, 2, 1, 0]))],),
        (X,),
        "the columns of inputs[0] are permuted: in reverse order",
    ),
    "shifted": (
        summed,
        lambda xp, g, x: ((g * xp.cos(x))[xp.asarray(np.array([1, 2, 3, 0]))],),
        (X,),
        "the columns of inputs[0] are permuted: shifted by 1",
    ),
    "cotangent unused": (sines, lambda xp, g, x: (0 * g + xp.cos(x),), (X,), "not multiplied by the cotangent"),
    "diagonal": (
        cumulative,
        lambda xp, g, x: (_upper(xp, g) * xp.cos(x) + 0.3 * x * g,),
        (X,),
        "only the diagonal is wrong, all of it",
    ),
    "off the diagonal": (
        cumulative,
        lambda xp, g, x: (g * xp.cos(x) + (_upper(xp, g) - g) * x,),
        (X,),
        "only entries off the diagonal are wrong, all of them",
    ),
    "divided by the input": (
        lambda xp, x: xp.sum(x**3),
        lambda xp, g, x: (3 * g * x,),
        (X,),
        "divided by the value of inputs[0]",
    ),
    "straight through": (
        lambda xp, x: xp.floor(x),
        lambda xp, g, x: (g,),
        (X,),
        "the derivative claimed is the identity: a straight-through rule",
    ),
    "other input right": (
        product,
        lambda xp, g, x, y: (g * xp.sin(y), 3 * g * x * xp.cos(y)),
        (X, X + 0.5),
        "only the gradient of inputs[1] is wrong; that of inputs[0] is right",
    ),
}


def told(fn: Any, inputs: Any, **options: Any) -> list[str]:
    report = check_grad(fn, inputs, raise_exception=False, **options)
    assert report.verdict == "mismatch"
    return [f.evidence for f in report.findings if f.kind in ("diagnosis", "nonlinear_backward")]


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_told(backend: str, bug: str) -> None:
    pytest.importorskip(backend)
    fn, vjp, inputs, words = BUGS[bug]
    function, arguments, options = with_rule(backend, fn, vjp, *inputs)
    assert any(words in text for text in told(function, arguments, backend=backend, **options))


@pytest.mark.parametrize("backend", BACKENDS)
def test_entries_that_should_be_zero_are_no_multiple_of_others(backend: str) -> None:
    """Each output is the last of two numbers that are written to it; the gradient of both is claimed to be 1."""
    pytest.importorskip(backend)
    x = np.concatenate([X, X + 2.0])

    def both(xp: Any, g: Any, x: Any) -> Any:
        return (xp.concatenate([g, g]),)

    function, arguments, options = with_rule(backend, lambda xp, x: x[4:] * 1.0, both, x)
    assert not any("times" in text for text in told(function, arguments, backend=backend, **options))


def rough(x: Any) -> Any:
    """Sums whose digits are noise from the first on."""
    t = np.sin(x * 7.123e8) * 43758.5453
    return np.sum(x) + np.sum(t - np.floor(t))


def test_what_is_not_told_is_not_called_right() -> None:
    def fn(x: Any, y: Any, z: Any) -> Any:
        return np.sum(x**2), np.sum(z**2) + rough(y)

    def jac(x: Any, y: Any, z: Any) -> Any:
        return (3 * x, 0 * y, 0 * z), (0 * x, 1 + 0 * y, 2 * z)

    found = told(fn, (X, X + 0.5, X - 0.5), backend="numpy", jac=jac)
    assert any("the gradient of inputs[0] is wrong" in text for text in found)
    assert not any("only" in text or "inputs[1] is right" in text for text in found)


@pytest.mark.parametrize("wrong", [1, 5, 6])
def test_lists_say_where_they_are_cut(wrong: int) -> None:
    def jac(*xs: Any) -> Any:
        return tuple((2 + (k < wrong) * X) * x for k, x in enumerate(xs))

    found = told(lambda *xs: sum(np.sum(x**2) for x in xs), (X,) * 11, backend="numpy", jac=jac)
    (text,) = [text for text in found if "is right" in text]
    listed = text.split(" is wrong; that of ")
    assert text.startswith("only ") and [part.count("inputs") for part in listed] == [min(wrong, 4), min(11 - wrong, 4)]
    assert ["..." in part for part in listed] == [wrong > 4, True]


CLIPPED = {
    "it takes the absolute value of the cotangent": lambda xp, g, x: (abs(g) * xp.cos(x),),
    "the cotangent is multiplied in twice": lambda xp, g, x: (g * g * xp.cos(x),),
    "it clips the cotangent at 1": lambda xp, g, x: (xp.clip(g, -1, 1) * xp.cos(x),),
    "it clips the cotangent at 10": lambda xp, g, x: (xp.clip(g, -10, 10) * xp.cos(x),),
    "it takes the sign of the cotangent": lambda xp, g, x: (xp.sign(g) * xp.cos(x),),
}


@pytest.mark.parametrize("words", CLIPPED)
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_cotangents(backend: str, words: str) -> None:
    pytest.importorskip(backend)
    function, arguments, options = with_rule(backend, sines, CLIPPED[words], X)
    (text,) = told(function, arguments, backend=backend, **options)
    assert text.endswith(words)


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_a_conjugate_missing(backend: str) -> None:
    pytest.importorskip(backend)
    conjugated = backend == "torch"  # torch's cotangent rule has a conjugate, JAX's has none
    function, arguments, _ = with_rule(
        backend,
        lambda xp, z: z * z * z,
        lambda xp, g, z: (3 * g * z * z if conjugated else 3 * g * xp.conj(z * z),),
        X[:3] + 1j * X[1:],
    )
    (text,) = told(function, arguments, backend=backend)
    assert text == "the derivative is conjugated: a conj() is missing or one too many"


def test_which_mode() -> None:
    torch = pytest.importorskip("torch")

    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g * ctx.saved_tensors[0].cos()

        @staticmethod
        def jvp(ctx, t):  # type: ignore[no-untyped-def]
            return 1.5 * t * ctx.saved_tensors[0].cos()

    texts = told(Rule.apply, torch.tensor(X))
    assert "forward mode is wrong and reverse mode is right: the error is in its rule alone" in texts


def test_both_modes_agree_against_the_function() -> None:
    jax = pytest.importorskip("jax")
    report = check_grad(lambda x: x * jax.lax.stop_gradient(x), X, backend="jax", raise_exception=False)
    assert {"stop_gradient", "diagnosis"} <= {f.kind for f in report.findings}
    assert any("1/2 times the derivative" in f.evidence for f in report.findings)


def test_a_constant_added_by_a_hook() -> None:
    torch = pytest.importorskip("torch")

    def fn(x):  # type: ignore[no-untyped-def]
        y = x.clone()
        y.register_hook(lambda g: g + 0.25)
        return y

    assert "0.25 is added to every entry" in told(fn, torch.tensor(X, requires_grad=True))


def test_nan_is_named() -> None:
    jnp = pytest.importorskip("jax.numpy")
    texts = told(lambda x: jnp.where(x < 1, x, jnp.sqrt(x)), (np.array([0.0, 0.5]),), backend="jax")
    assert any("are NaN" in text and "where()" in text for text in texts)


def test_one_output_left_out() -> None:
    outputs = [Leaf("output[0]", (2,), "float64", 0), Leaf("output[1]", (1,), "float64", 2)]
    J, u = A[:, :2], np.array([1.5, -2.0, 3.0])
    text = of_cotangent(u, u[:2] @ J[:2], J, outputs)
    assert text == "the cotangent of output[1] is not used where those of other outputs are not zero"
    assert of_cotangent(u, u @ J + 0.1, J, outputs) == ""


@pytest.mark.parametrize("seed", range(200))
def test_nothing_is_told_of_right_functions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6, 2)
    W, b = rng.normal(size=(m, n)), rng.normal(size=m)
    outer = [np.tanh, np.sin, np.exp, np.arctan][seed % 4]
    slope = [lambda t: 1 / np.cosh(t) ** 2, np.cos, np.exp, lambda t: 1 / (1 + t**2)][seed % 4]
    x = rng.normal(size=n)
    report = check_grad(lambda x: outer(W @ x + b), x, jac=lambda x: slope(W @ x + b)[:, None] * W)
    assert report.verdict == "ok"
    assert not {"diagnosis", "nonlinear_backward"} & {f.kind for f in report.findings}

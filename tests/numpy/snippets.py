"""Imperative NumPy code as people write it, each a function of one vector of four positive numbers."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from math import exp, sqrt
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.special
import scipy.stats
from numpy import array, zeros
from numpy import sum as total
from numpy.linalg import norm

X = np.array([0.42, 0.77, 1.21, 0.58])
SNIPPETS: list[Callable[[Any], Any]] = []
WEIGHTS = np.array([[0.5, -1.0, 2.0, 0.3], [1.5, 0.2, -0.7, 1.1]])
TABLE = {"scale": 2.5, "shift": np.array([1.0, 2.0, 3.0, 4.0])}


def snippet(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SNIPPETS.append(function)
    return function


@snippet
def buffer_of_zeros(x):
    out = np.zeros(4)
    for i in range(4):
        out[i] = x[i] ** 2 + x[(i + 1) % 4]
    return out


@snippet
def buffer_like_the_input(x):
    out = np.zeros_like(x)
    out[1:] = x[:-1] * x[1:]
    out[0] = x[0]
    return out


@snippet
def empty_buffer_imported_by_name(x):
    out = zeros((2, 2))
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = x[0], x[1] * x[2], 1.0, x[3] / x[0]
    return out @ out


@snippet
def array_of_scalars(x):
    return array([x[0] * x[1], 2.0, x[2] ** 2]) * total(x)


@snippet
def rotation_matrix(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.array([[c, -s], [s, c]]) @ x[1:3]


@snippet
def in_place_operators(x):
    y = x.copy()
    y += 1
    y *= x
    y -= x[::-1]
    y /= 2
    y **= 2
    return y


@snippet
def writes_through_views(x):
    y = np.zeros((2, 2))
    row = y[1]
    row[:] = x[:2]
    row *= x[2]
    y.T[0] += x[3]
    y.reshape(-1)[3] = x[0] * x[1]
    y.flat[0] = x[2]
    return y


@snippet
def a_view_sees_later_writes(x):
    y = x * 1.0
    tail = y[2:]
    y[3] = x[0] * 5
    y[2:3] = x[1]
    return tail * x[:2]


@snippet
def scalars_are_immutable(x):
    t = x[0]
    u = t
    t += 1
    t *= x[1]
    return np.array([t, u, x[0]])


@snippet
def a_0d_array_is_mutable(x):
    t = np.array(x[0])
    u = t
    t += x[1]
    return u * x


@snippet
def swaps_rows(x):
    y = np.outer(x, x)
    y[[0, 2]] = y[[2, 0]]
    y[:, 1], y[:, 3] = y[:, 3].copy(), y[:, 1].copy()
    return y


@snippet
def masks_and_where(x):
    y = np.where(x > 0.6, x**2, -x)
    y[y < 0] = 0.0
    y[x > 1] *= 3
    return y


@snippet
def branch_on_the_value(x):
    return x * 2 if x.sum() > 1 else x**3


@snippet
def newton_with_while(x):
    y = x[0]
    while abs(y * y - x[1]) > 1e-14:
        y = 0.5 * (y + x[1] / y)
    return y


@snippet
def math_functions(x):
    return math.sin(x[0]) * exp(x[1]) + sqrt(x[2]) * math.atan2(x[3], x[0]) + math.log(x[1])


@snippet
def list_of_results(x):
    rows = []
    for a, b in itertools.pairwise(x):
        rows.append(a * b)
    rows.insert(0, 1.0)
    return np.asarray(rows)


@snippet
def comprehension_and_stack(x):
    return np.stack([np.sin(x) * k for k in range(3)]).sum(axis=0)


@snippet
def out_arguments(x):
    work = np.empty(4)
    np.multiply(x, 2, out=work)
    np.add(work, x[::-1], out=work)
    np.exp(work, work)
    np.dot(WEIGHTS, work, out=(small := np.empty(2)))
    return small


@snippet
def constant_matrix_copied_and_changed(x):
    w = WEIGHTS.copy()
    w[0] = x
    w[1, 2] += x[1]
    return w @ x


@snippet
def constants_in_containers(x):
    return x * TABLE["scale"] + TABLE["shift"]


def _with_buffer() -> Callable[[Any], Any]:
    buffer = np.zeros(4)
    calls = {"n": 0}

    def reuses_a_buffer_of_its_closure(x):
        buffer[:] = 0
        buffer[::2] = x[::2] ** 2
        buffer[1] += x[3]
        calls["n"] += 1
        return buffer * x

    return reuses_a_buffer_of_its_closure


snippet(_with_buffer())


@snippet
def seeded_random_numbers(x):
    rng = np.random.default_rng(3)
    noise = rng.normal(size=4)
    noise[0] = 1.0
    return rng.uniform(size=(2, 4)) @ (x + noise)


@snippet
def isinstance_checks(x):
    assert isinstance(x, np.ndarray) and isinstance(x[0], float) and np.isscalar(x[0]) and np.ndim(x) == 1
    return np.atleast_1d(x) if isinstance(x, np.ndarray) else None


@snippet
def scipy_functions(x):
    return scipy.special.logsumexp(x) + scipy.special.gammaln(x) + scipy.special.expit(x) * scipy.special.j0(x)


@snippet
def scipy_linear_algebra(x):
    a = np.outer(x, x) + np.eye(4)
    return scipy.linalg.solve(a, x) + scipy.linalg.expm(a / 5)[0] + scipy.linalg.inv(a)[1]


snippet(scipy.optimize.rosen)


@snippet
def scatter_add(x):
    out = np.zeros(3)
    np.add.at(out, [0, 2, 0, 1], x**2)
    np.subtract.at(out, [1, 1], x[:2])
    np.multiply.at(out, [0, 0], x[2:])
    return out


@snippet
def spectral(x):
    return np.abs(np.fft.rfft(x * np.hanning(4))) ** 2


@snippet
def vectorized(x):
    return np.vectorize(lambda t: t**2 if t > 0.6 else math.sin(t))(x)


@snippet
def complex_intermediate(x):
    z = x[:2] + 1j * x[2:]
    z[0] *= 1j
    z.real = z.imag + x[0]
    return (z * z.conj()).real + np.angle(z)


@snippet
def interpolation(x):
    return np.interp(x, [0.0, 0.5, 1.0, 2.0], [0.0, 1.0, 0.5, 3.0]) + np.interp(0.3, [0, 1, 2, 3], x)


@snippet
def along_an_axis(x):
    return np.apply_along_axis(lambda row: np.cumsum(row) * row[0], 1, np.outer(x, x))


@snippet
def dynamic_programming(x):
    cost = np.full((4, 4), np.inf)
    cost[0, 0] = x[0]
    for i in range(4):
        for j in range(4):
            if i or j:
                best = min(cost[i - 1, j] if i else np.inf, cost[i, j - 1] if j else np.inf)
                cost[i, j] = best + x[i] * x[j] + abs(x[i] - x[j])
    return cost[3, 3]


@snippet
def cholesky_by_hand(x):
    a = np.outer(x, x) + 2 * np.eye(4)
    low = np.zeros_like(a)
    for i in range(4):
        for j in range(i + 1):
            s = a[i, j] - low[i, :j] @ low[j, :j]
            low[i, j] = np.sqrt(s) if i == j else s / low[j, j]
    return low


@snippet
def runge_kutta(x):
    y, h = x[:2].copy(), 0.1
    for _ in range(5):
        k1 = np.array([y[1], -x[2] * y[0]])
        k2 = np.array([y[1] + h * k1[1], -x[2] * (y[0] + h * k1[0])])
        y += h / 2 * (k1 + k2)
    return y


@snippet
def sliding_mean(x):
    return np.convolve(x, np.ones(2) / 2, mode="valid") * np.diff(x)


@snippet
def sorted_values(x):
    order = np.argsort(x)[::-1]
    return x[order] * np.arange(4) + np.median(x) + sorted(x)[1]


@snippet
def pairwise_distances(x):
    p = x.reshape(2, 2)
    return np.sqrt(((p[:, None] - p[None]) ** 2).sum(axis=-1)) + norm(p)


@snippet
def imports_inside(x):
    import numpy as xp
    from numpy import cumsum

    out = xp.zeros(4)
    out[:] = cumsum(x)
    return out


def accumulate(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args) + 1

    return wrapper


@snippet
@accumulate
def decorated(x):
    out = zeros(4)
    out[:] = x**2
    return out


@functools.cache
def _cached_power(base: float, exponent: int) -> float:
    return base**exponent


@snippet
def calls_a_cached_function(x):
    return np.array([_cached_power(x[0], 2), _cached_power(x[1], 3)])


@snippet
def a_generator(x):
    def running():
        s = 0.0
        for value in x:
            s = s + value
            yield s * value

    return np.array(list(running()))


class Layer:
    bias = np.array([0.1, 0.2])

    def __init__(self, weights: Any) -> None:
        self.weights = weights
        self.seen = np.zeros(2)

    def __call__(self, x: Any) -> Any:
        self.seen[:] = self.weights @ x + self.bias
        return self.activate(self.seen)

    @staticmethod
    def activate(z: Any) -> Any:
        out = np.zeros_like(z)
        out[:] = np.tanh(z)
        return out


class Doubled(Layer):
    def __call__(self, x: Any) -> Any:
        return 2 * super().__call__(x)

    @property
    def size(self) -> float:
        return np.array([self.weights[0, 0]])[0]


MODEL = Doubled(WEIGHTS)


@snippet
def an_object_with_state(x):
    return MODEL(x) * MODEL.size


snippet(Doubled(WEIGHTS * 0.5))
snippet(functools.partial(lambda scale, x: Layer(WEIGHTS * scale)(x), 0.7))


@dataclasses.dataclass
class Params:
    gain: Any
    offset: float = 1.0

    def apply(self, x: Any) -> Any:
        out = np.zeros(4)
        out[:] = self.gain * x + self.offset
        return out


class Pair(NamedTuple):
    first: Any
    second: Any


@snippet
def dataclasses_and_tuples(x):
    pair = Pair(Params(gain=x[0]).apply(x), SimpleNamespace(value=x[1] * 2))
    return pair.first * pair.second.value


@snippet
def itertools_and_reduce(x):
    running = list(itertools.accumulate(x, lambda a, b: a * b))
    return functools.reduce(np.add, running) * np.prod([a + b for a, b in itertools.pairwise(x)])


@snippet
def tree_of_results(x):
    return {"a": x[:2] * 2, "b": [x.sum(), (x[3] ** 2,)]}


@snippet
def array_api_style(x):
    xp = x.__array_namespace__()
    out = xp.zeros(4)
    out[...] = xp.exp(x) / xp.sum(xp.exp(x))
    return xp.concat([out, xp.permute_dims(out, (0,))])


@snippet
def prints_and_formats(x):
    text = f"{x[0]:.3f}"
    return x * len(text)


@snippet
def random_walk_reweighted(x):
    state, path = x[0], np.empty((5, 2))
    for k in range(5):
        state = 0.9 * state + x[1] * (1 if state > 0.5 else -1)
        path[k] = state, np.maximum(state, x[2])
    return path[::2, ::-1]


@snippet
def integer_buffers_truncate(x):
    bins = np.zeros(4, dtype=int)
    bins[:] = np.floor(x * 3)
    return x * bins


@snippet
def nested_lists(x):
    grid = [[x[i] * x[j] for j in range(3)] for i in range(3)]
    grid[1][1] = 5.0
    return np.linalg.det(np.array(grid) + np.eye(3))


SPARSE = scipy.sparse.csr_array(np.diag([1.0, 2.0, 3.0, 4.0]) + np.eye(4, k=1))
FROZEN = scipy.stats.norm(0.2, 1.5)


@snippet
def a_sparse_matrix(x):
    return SPARSE @ x + x @ SPARSE + SPARSE.T.dot(x)


@snippet
def frozen_distributions(x):
    return FROZEN.logpdf(x) + scipy.stats.norm(x[0], scale=x[1]).logpdf(x)


@snippet
def a_polynomial_object(x):
    return np.poly1d(x)(0.3) + np.polynomial.Polynomial([1.0, 2.0, 3.0])(x)


def name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)

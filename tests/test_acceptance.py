"""The quick acceptance says nothing that the general rules don't say."""

from __future__ import annotations

import numpy as np
import pytest

from multigrad._comparison import verdict
from multigrad._comparison.acceptance import accept
from multigrad._comparison.context import Context
from multigrad._comparison.verdict import Rules, Status
from multigrad._differences import kinks, ladder
from multigrad._differences.directions import unit_vectors
from multigrad._differences.estimate import estimate, quotients
from multigrad._differences.noise import Noise
from multigrad.backends import Array

RULES = Rules.for_eps(2.0**-52, None, 0.0)
H = ladder.short_ladder(RULES.eps)
FUNCTIONS = {
    "smooth": lambda X: np.stack([np.sin(X.sum(1)), np.exp(X[:, 0]), X[:, 1] ** 3, 0 * X[:, 0]], axis=1),
    "steep": lambda X: np.stack([np.sin(90 * X.sum(1)), np.exp(30 * X[:, 0]), 1 / X[:, 1]], axis=1),
    "kinks": lambda X: np.stack([np.abs(X[:, 0] - 0.3), np.maximum(X[:, 1], X[:, 2]), np.floor(8 * X[:, 2])], axis=1),
    "domain": lambda X: np.stack([np.log(X[:, 0] - 0.2999), np.sqrt(X[:, 1] - 0.699), X[:, 2]], axis=1),
    "noise": lambda X: np.stack([X.sum(1) + 1e-9 * np.sin(1e12 * X.sum(1)), X[:, 0] * 1e-14 + 1], axis=1),
}


@pytest.mark.parametrize("error", [0.0, 1e-9, 1e-7, 3e-7, 1e-3, np.nan])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accepts_what_the_rules_accept(name: str, error: float) -> None:
    f, x = FUNCTIONS[name], np.array([0.3, 0.7, 0.7])
    directions = unit_vectors(x, np.random.default_rng(0))
    X, up, down = ladder.points(x, directions, H)
    with np.errstate(all="ignore"):
        here = f(x[None])[0]
        sampled = ladder.samples(f(X), up, down, H)
        noise = Noise(np.full_like(here, 1e-9 if name == "noise" else 1e-16), np.abs(here))
        q = quotients(sampled, here, noise, RULES.eps)
        best = estimate(q.central, q.central_noise, sampled.ratio)
        analytical = best.value * (1 + error)
        context = context_of(analytical, here, noise)
        said = verdict.judge(analytical, best, context, RULES)
        sharp = said.sharp & ~kinks.suspected(q, sampled.up, RULES.rtol * context.scale)
        quick = accept(sampled, np.exp2(H), here, noise, analytical, context, RULES)
    assert not (quick.accepted & ~sharp).any()
    assert (said.status[quick.accepted] == Status.OK).all()
    # Its noise is that of the largest value of the row, and its bars are no narrower.
    a = quick.accepted
    assert (quick.bar[a] >= best.bar[a] * (1 - 1e-9)).all()
    assert (np.abs(quick.value[a] - best.value[a]) <= best.bar[a] + quick.bar[a]).all()
    if name == "smooth":
        assert quick.accepted.mean() >= (0.5 if error < 1e-7 else 0.0)
        assert not (quick.accepted & (np.abs(analytical) > 0)).any() or not error >= 3e-7


def context_of(analytical: Array, here: Array, noise: Noise) -> Context:
    scale = np.broadcast_to(
        np.maximum(np.fmax.reduce(np.nan_to_num(np.abs(analytical)), axis=0), np.abs(here)), analytical.shape
    )
    return Context(
        scale,
        scale,
        np.full(analytical.shape, 1e-14),
        noise.relative + RULES.eps,
        np.zeros_like(here),
        np.zeros_like(here),
        np.full_like(here, np.inf),
    )

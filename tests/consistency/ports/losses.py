"""Losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

from tests.consistency.case import draw
from tests.consistency.ports.port import Port

LOGITS, LABELS = draw(660, 4, 3), np.array([2, 0, 1, 1])
TARGET = (draw(661, 5) > 0).astype(np.int64)


def torch_vae(recon: Any, mu: Any, logvar: Any, x: Any) -> Any:
    fit = F.binary_cross_entropy_with_logits(recon, x.to(recon.dtype), reduction="sum")
    return fit - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()), fit


def jax_vae(
    reduce: Any = jnp.sum, spread: Any = jnp.exp, square: Any = jnp.square, sign: float = 1.0
) -> Callable[..., Any]:
    def loss(recon: Any, mu: Any, logvar: Any, x: Any) -> Any:
        fit = jnp.sum(jnp.logaddexp(0, recon) - x * recon)
        return fit + sign * 0.5 * reduce(square(mu) + spread(logvar) - 1 - logvar), fit

    return loss


def torch_smoothed(z: Any, y: Any) -> Any:
    return F.cross_entropy(z, y, label_smoothing=0.1)


def jax_smoothed(others_only: bool = False, eps: float = 0.1, reduce: Any = jnp.mean) -> Callable[..., Any]:
    def loss(z: Any, y: Any) -> Any:
        k = z.shape[-1]
        hot = jax.nn.one_hot(y, k)
        soft = hot * (1 - eps) + (eps / (k - 1) * (1 - hot) if others_only else eps / k)
        return reduce(-(soft * jax.nn.log_softmax(z)).sum(-1))

    return loss


def jax_huber(delta: float = 0.5, divided: bool = False) -> Callable[..., Any]:
    def loss(x: Any, y: Any) -> Any:
        gap = jnp.abs(x - y)
        each = jnp.where(gap < delta, gap**2 / 2, delta * (gap - delta / 2))
        return jnp.mean(each / delta if divided else each)

    return loss


def torch_focal(z: Any, y: Any) -> Any:
    y = y.to(z.dtype)
    bce = F.binary_cross_entropy_with_logits(z, y, reduction="none")
    p = torch.sigmoid(z)
    pt, alpha = p * y + (1 - p) * (1 - y), 0.25 * y + 0.75 * (1 - y)
    return (alpha * (1 - pt) ** 2 * bce).mean()


def jax_focal(gamma: float = 2.0, negatives: float = 0.75, stop: bool = False) -> Callable[..., Any]:
    def loss(z: Any, y: Any) -> Any:
        log_pt = jax.nn.log_sigmoid(jnp.where(y == 1, z, -z))
        weight = (1 - jnp.exp(log_pt)) ** gamma
        weight = jax.lax.stop_gradient(weight) if stop else weight
        return -jnp.mean(jnp.where(y == 1, 0.25, negatives) * weight * log_pt)

    return loss


def torch_cosine(x: Any, y: Any) -> Any:
    return F.cosine_similarity(x, y, dim=-1, eps=1e-8)


def jax_cosine(eps: float = 0.0, axis: int = -1) -> Callable[..., Any]:
    def similarity(x: Any, y: Any) -> Any:
        size = jnp.linalg.norm(x, axis=axis) * jnp.linalg.norm(y, axis=axis)
        return (x * y).sum(axis) / (jnp.maximum(size, 1e-8) + eps)

    return similarity


def torch_contrast(a: Any, b: Any) -> Any:
    z = F.normalize(torch.cat([a, b]), dim=-1)
    scores = (z @ z.T / 0.5).masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    n = len(a)
    return F.cross_entropy(scores, torch.arange(2 * n).roll(n))


def jax_contrast(itself: bool = False, temperature: float = 0.5, times: bool = False) -> Callable[..., Any]:
    def loss(a: Any, b: Any) -> Any:
        n = a.shape[0]
        z = jnp.concatenate([a, b])
        z = z / jnp.linalg.norm(z, axis=-1, keepdims=True)
        scores = z @ z.T * temperature if times else z @ z.T / temperature
        allowed = np.full((2 * n, 2 * n), True) if itself else ~np.eye(2 * n, dtype=bool)
        total = jax.nn.logsumexp(jnp.where(allowed, scores, -jnp.inf), axis=-1)
        rows = np.arange(2 * n)
        return jnp.mean(total - scores[rows, np.roll(rows, n)])

    return loss


def torch_triplet(a: Any, p: Any, n: Any) -> Any:
    return F.triplet_margin_loss(a, p, n, margin=2.0)


def jax_triplet(eps: float = 1e-6, squared: bool = False) -> Callable[..., Any]:
    def distance(x: Any, y: Any) -> Any:
        square = ((x - y + eps) ** 2).sum(-1)
        return square if squared else jnp.sqrt(square)

    return lambda a, p, n: jnp.mean(jax.nn.relu(distance(a, p) - distance(a, n) + 2.0))


def torch_ctc(z: Any) -> Any:
    log_p = torch.log_softmax(z, -1)
    lengths = torch.tensor([[z.shape[0]], [len(CTC)]])
    return F.ctc_loss(log_p[:, None], torch.tensor(CTC)[None], *lengths, reduction="sum")


CTC = np.array([1, 1, 2])


def jax_ctc(repeats_skip: bool = False, last_only: bool = False, normed: bool = True) -> Callable[..., Any]:
    """The forward recursion over the labels with blanks between them."""
    states = np.zeros(2 * len(CTC) + 1, int)
    states[1::2] = CTC
    skip = np.zeros(len(states), bool)
    skip[2:] = (states[2:] != 0) & ((states[2:] != states[:-2]) | repeats_skip)

    def loss(z: Any) -> Any:
        log_p = jax.nn.log_softmax(z, -1) if normed else z

        def step(alpha: Any, row: Any) -> Any:
            one = jnp.concatenate([jnp.full(1, -1e30), alpha[:-1]])
            two = jnp.where(skip, jnp.concatenate([jnp.full(2, -1e30), alpha[:-2]]), -1e30)
            return jnp.logaddexp(jnp.logaddexp(alpha, one), two) + row[states], None

        start = jnp.where(np.arange(len(states)) < 2, log_p[0][states], -1e30)
        alpha, _ = jax.lax.scan(step, start, log_p[1:])
        return -(alpha[-1] if last_only else jnp.logaddexp(alpha[-1], alpha[-2]))

    return loss


def torch_bce(z: Any, y: Any, w: Any) -> Any:
    return F.binary_cross_entropy_with_logits(z, y.to(z.dtype), pos_weight=w)


def jax_bce(both: bool = False) -> Callable[..., Any]:
    def loss(z: Any, y: Any, w: Any) -> Any:
        negative = (w if both else 1.0) * (1 - y) * jax.nn.log_sigmoid(-z)
        return -jnp.mean(w * y * jax.nn.log_sigmoid(z) + negative)

    return loss


def torch_kl(p: Any, q: Any) -> Any:
    return F.kl_div(F.log_softmax(p, -1), F.log_softmax(q, -1), reduction="batchmean", log_target=True)


def jax_kl(reduce: Any = lambda x: x.sum() / x.shape[0], turned: bool = False) -> Callable[..., Any]:
    def loss(p: Any, q: Any) -> Any:
        p, q = (jax.nn.log_softmax(a) for a in ((q, p) if turned else (p, q)))
        return reduce(jnp.exp(q) * (q - p))

    return loss


PORTS = (
    Port(
        "variational autoencoder",
        torch_vae,
        jax_vae(),
        {
            "mean for sum": jax_vae(reduce=jnp.mean),
            "logarithm of the deviation": jax_vae(spread=lambda s: jnp.exp(2 * s)),
            "mean not squared": jax_vae(square=jnp.abs),
            "sign of the divergence": jax_vae(sign=-1.0),
        },
        (draw(662, 2, 5), draw(663, 2, 3), draw(664, 2, 3), (draw(665, 2, 5) > 0).astype(np.int64)),
    ),
    Port(
        "label smoothing",
        torch_smoothed,
        jax_smoothed(),
        {
            "spread over the others alone": jax_smoothed(others_only=True),
            "no smoothing": jax_smoothed(eps=0.0),
            "summed": jax_smoothed(reduce=jnp.sum),
        },
        (LOGITS, LABELS),
    ),
    Port(
        "huber",
        lambda x, y: F.huber_loss(x, y, delta=0.5),
        jax_huber(),
        {"smooth l1": jax_huber(divided=True), "another delta": jax_huber(1.0)},
        (draw(666, 6), draw(667, 6)),
    ),
    Port(
        "focal",
        torch_focal,
        jax_focal(),
        {
            "another gamma": jax_focal(gamma=1.0),
            "one weight for all": jax_focal(negatives=0.25),
            "weight held fixed": jax_focal(stop=True),
        },
        (draw(668, 5), TARGET),
    ),
    Port(
        "cosine similarity",
        torch_cosine,
        jax_cosine(),
        {"epsilon added": jax_cosine(eps=1e-6), "along the batch": jax_cosine(axis=0)},
        (draw(669, 3, 3), draw(670, 3, 3)),
    ),
    Port(
        "contrastive",
        torch_contrast,
        jax_contrast(),
        {
            "itself among the negatives": jax_contrast(itself=True),
            "times the temperature": jax_contrast(times=True),
        },
        (draw(671, 3, 2), draw(672, 3, 2)),
    ),
    Port(
        "triplet",
        torch_triplet,
        jax_triplet(),
        {"no epsilon": jax_triplet(eps=0.0), "squared distances": jax_triplet(squared=True)},
        (draw(673, 3, 2), draw(674, 3, 2), draw(675, 3, 2)),
    ),
    Port(
        "connectionist temporal classification",
        torch_ctc,
        jax_ctc(),
        {
            "no blank between repeats": jax_ctc(repeats_skip=True),
            "the last state alone": jax_ctc(last_only=True),
            "not normed": jax_ctc(normed=False),
        },
        (draw(676, 6, 3),),
    ),
    Port(
        "weighted cross-entropy",
        torch_bce,
        jax_bce(),
        {"weight on both": jax_bce(both=True)},
        (draw(677, 5), TARGET, draw(678, 5, low=0.5)),
        fixed=(2,),
    ),
    Port(
        "divergence of distributions",
        torch_kl,
        jax_kl(),
        {"mean over all": jax_kl(jnp.mean), "turned round": jax_kl(turned=True)},
        (LOGITS, draw(679, 4, 3)),
    ),
)

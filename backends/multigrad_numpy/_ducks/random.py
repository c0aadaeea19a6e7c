"""Methods of a random generator with live arguments: the draw itself is a constant.

Numbers move with the location and the scale of their distribution; what is drawn from an array or put in random order
takes its gradient along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._ducks.duck import DuckArray, is_live

# By the method's name: its parameters with their defaults, and its draw for those of a standard variable and a size.
_AFFINE: dict[str, tuple[dict[str, float], Callable[..., Any]]] = {
    name: ({"loc": 0.0, "scale": 1.0}, lambda draw, loc, scale: loc + scale * draw)
    for name in ("gumbel", "laplace", "logistic", "normal")
} | {
    "exponential": ({"scale": 1.0}, lambda draw, scale: scale * draw),
    "lognormal": ({"mean": 0.0, "sigma": 1.0}, lambda draw, mean, sigma: np.exp(mean + sigma * np.log(draw))),
    "rayleigh": ({"scale": 1.0}, lambda draw, scale: scale * draw),
    "uniform": ({"low": 0.0, "high": 1.0}, lambda draw, low, high: low + (high - low) * draw),
}


def _variable(kind: type[DuckArray], method: Any, *args: Any, **kwargs: Any) -> Any:
    defaults, place = _AFFINE[method.__name__]
    given = dict(zip((*defaults, "size"), args, strict=False)) | kwargs
    size = given.pop("size", None)
    parameters = {name: given.get(name, default) for name, default in defaults.items()}
    if size is None:
        size = np.broadcast_shapes(*(np.shape(p) for p in parameters.values())) or None
    return place(kind.lift(method(*defaults.values(), size=size)), **parameters)


def _chosen(kind: type[DuckArray], method: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    return kind.asarray(a)[method(len(a), *args, **kwargs)]


def _shuffled(kind: type[DuckArray], method: Any, x: Any) -> None:
    order = np.arange(len(x))
    method(order)
    x[...] = x[order]


_DRAWS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_AFFINE, _variable),
    "choice": _chosen,
    "permutation": _chosen,
    "shuffle": _shuffled,
}


def draw(kind: type[DuckArray], method: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for ``method`` of a random generator: ``otherwise``, where no argument is live."""
    live = _DRAWS.get(getattr(method, "__name__", ""))
    if live is None:
        return otherwise
    return lambda *args, **kwargs: (
        live(kind, method, *args, **kwargs) if is_live((args, kwargs)) else otherwise(*args, **kwargs)
    )

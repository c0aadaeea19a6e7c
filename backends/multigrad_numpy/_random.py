"""Random numbers whose distribution has live parameters of location and scale: the draw itself is a constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multigrad_numpy._duck import DuckArray, is_live

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


class Draw:
    """A method of a random generator that also takes live parameters."""

    def __init__(self, kind: type[DuckArray], method: Any, otherwise: Callable[..., Any]) -> None:
        self._kind, self._method, self._otherwise = kind, method, otherwise

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_live((args, kwargs)):
            return self._otherwise(*args, **kwargs)
        defaults, place = _AFFINE[self._method.__name__]
        given = dict(zip((*defaults, "size"), args, strict=False)) | kwargs
        size = given.pop("size", None)
        parameters = {name: given.get(name, default) for name, default in defaults.items()}
        if size is None:
            size = np.broadcast_shapes(*(np.shape(p) for p in parameters.values())) or None
        return place(self._kind.lift(self._method(*defaults.values(), size=size)), **parameters)


def drawn(kind: type[DuckArray], method: Any, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for a method of a random generator."""
    return Draw(kind, method, otherwise) if getattr(method, "__name__", "") in _AFFINE else otherwise

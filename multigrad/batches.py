"""Rows through a function in batches: vectorised where the adapter can, row by row where it cannot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multigrad.backends import Array
from multigrad.errors import Defect, Unsupported, first_line

# Doubles touched per vectorised call: 1 MB of them stay in the L2 cache; larger batches cost 3 to 5 times as much.
DOUBLES = 2**17
FEWEST, MOST = 16, 512


class Batched:
    """A method of a flat function, (b, n) -> (b, m), for any number of rows.

    Vectorised rows are compared with plain calls (two of the first batch, one of every later one), since a function
    under vmap can silently compute something else. What differs, or raises, is done row by row from then on.

    Attributes:
        rows: how many rows were evaluated.
        why_looped: the reason for going row by row; empty while vectorised.
        raised: the first exception that the function raised at a single row, whose values are then NaN.
    """

    def __init__(
        self,
        call: Callable[[Array], Array],
        width: int,
        *,
        slack: float = 1e-6,
        lenient: bool = True,
        compared: bool = True,
        workers: int = 1,
        doubles: int = DOUBLES,
    ) -> None:
        """Wrap ``call``, which returns rows of ``width``.

        Vectorised and plain rows may differ by rounding, and by ``slack`` of the differences between rows, which is
        what values of f are for. Unless ``lenient``, exceptions at single rows propagate. Unless ``compared``, the
        caller sees to the comparison with plain calls. ``workers`` share a batch, of which each gets some ``doubles``.
        """
        self.call = call
        self.width = width
        self.slack = slack
        self.lenient = lenient
        self.compared = compared
        self.workers = workers
        self.doubles = doubles
        self.rows = 0
        self.why_looped = ""
        self.raised: Exception | None = None
        self._trusted = False

    def __call__(self, X: Array) -> Array:
        """Evaluate the rows of X."""
        b = len(X)
        if b <= 1:
            return self.one_by_one(X)
        size = self.rows_at_once(X.shape[1])
        if b <= size:
            return self._batch(X)
        # Batches of equal length, so that an adapter that compiles for a shape does so once.
        size = -(-b // -(-b // size))
        out = np.empty((b, self.width))
        for start in range(0, b, size):
            out[start : start + size] = self._batch(X[start : start + size])
        return out

    def expect(self, rows: int) -> None:
        """Let the adapter know that so many rows are to come, if it cares."""
        prepare = getattr(self.call, "expect", None)
        if prepare is not None:
            prepare(rows)

    def rows_at_once(self, n: int) -> int:
        """How many rows of length ``n`` go into one call."""
        return self.workers * min(max(self.doubles // max(n, self.width, 1), FEWEST), MOST)

    def _batch(self, X: Array) -> Array:
        if self.why_looped or len(X) == 1:
            return self.one_by_one(X)
        try:
            Y = self.call(X)
        except Exception as error:  # noqa: BLE001 - whatever the framework or the user's function raises
            return self._after_failure(X, error)
        self.rows += len(X)
        if not self.compared:
            return Y
        picked = self._picked(len(X))
        plain = self.one_by_one(X[picked])
        if not self._agree(Y[picked], plain, Y):
            self.why_looped = "vectorised rows differ from plain calls"
            return self.one_by_one(X)
        self._trusted = True
        return Y

    def _after_failure(self, X: Array, error: Exception) -> Array:
        before, self.raised = self.raised, None
        Y = self.one_by_one(X)
        # Where the plain calls raise as well, the points are at fault and not the vectorisation.
        if self.raised is None:
            reason = first_line(error).partition(". ")[0]
            self.why_looped = reason if isinstance(error, Unsupported) else f"{type(error).__name__}: {reason}"
        self.raised = before or self.raised
        return Y

    def _picked(self, b: int) -> list[int]:
        return [self.rows % b] if self._trusted else [b // 2, b - 1]

    def one_by_one(self, X: Array) -> Array:
        """Evaluate the rows of X by plain calls."""
        out = np.empty((len(X), self.width))
        for i in range(len(X)):
            out[i] = self._one(X[i : i + 1])
        return out

    def _one(self, row: Array) -> Array:
        self.rows += 1
        try:
            return np.asarray(self.call(row)[0])
        except Exception as error:
            if not self.lenient or isinstance(error, Unsupported):
                raise
            if self.raised is None or isinstance(error, Defect):
                self.raised = error
            return np.full(self.width, np.nan)

    def _agree(self, some: Array, plain: Array, every: Array) -> bool:
        if np.array_equal(some, plain, equal_nan=True):
            return True
        with np.errstate(all="ignore"):
            difference = np.abs(some - plain)
            largest = np.max(np.abs(plain), axis=1, keepdims=True, initial=0.0, where=np.isfinite(plain))
            if (difference <= 1e-12 * largest).all():
                return True
            spread = self.slack * np.ptp(every, axis=0)
            tolerance = 1e-12 * largest + np.where(np.isfinite(spread), spread, 0.0)
            same = (difference <= tolerance) | (some == plain) | (np.isnan(some) & np.isnan(plain))
        return bool(same.all())

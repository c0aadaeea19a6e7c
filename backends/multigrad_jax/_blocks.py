"""Many rows through one compiled block of fixed shape, or one by one where that is cheaper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multigrad.backends import Array
from multigrad_jax._work import Work

# Compiling a block takes 25-100 ms for up to a dozen operations, an eager operation 15 us, so up to 2000 eager
# operations in all are cheaper one by one. Above, the block is: its rows cost a hundredth of eager ones.
COMPILE_FROM = 2000
# A block's largest array should stay in the second-level cache: from 4 rows of 10^6 entries to 8, a row's time went
# from 0.3 ms to 1.9, and narrow functions gain nothing above 256 rows.
BLOCK_ENTRIES = 2**17


def compiling_pays(rows: int, work: Work) -> bool:
    """Whether ``rows`` evaluations are so much work that a compiled block is the faster way."""
    return rows * work.dispatches > COMPILE_FROM


def block_rows(work: Work, *sizes: int) -> int:
    """Choose how many rows a block has: one fixed number, so that it is compiled once whatever the batch."""
    return int(np.clip(BLOCK_ENTRIES // max(work.widest, *sizes), 1, 256))


def in_blocks(run: Callable[[Array], Array], X: Array, rows: int, filler: Array) -> Array:
    """Apply ``run`` to X (b, n) in blocks of exactly ``rows`` rows; the last is padded with ``filler`` (n,)."""
    done = []
    for start in range(0, len(X), rows):
        block = X[start : start + rows]
        padding = np.broadcast_to(filler, (rows - len(block), len(filler)))
        done.append(run(np.concatenate([block, padding]))[: len(block)])
    return np.concatenate(done)

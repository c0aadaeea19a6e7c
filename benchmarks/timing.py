"""What the benchmarks share: one thread, and times that a busy machine disturbs least."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path
from time import thread_time

for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(pool, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

RESULTS = Path(__file__).parent / "results"


def milliseconds(run: Callable[[], object], repeats: int) -> float:
    """The median processor time of this thread, after one call that is not counted."""
    run()
    times = []
    for _ in range(repeats):
        start = thread_time()
        run()
        times.append(thread_time() - start)
    return 1e3 * statistics.median(times)

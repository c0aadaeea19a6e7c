"""Evaluation by the workers of an executor: the same report, no block lost, and a user's state as it was."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from multigrad import GradReport, check_grad
from multigrad.errors import InvalidUse

torch = pytest.importorskip("torch")
HOME = os.getpid()


def coupled(x: Any) -> Any:
    return torch.tanh(x).cumsum(-1) * x


def fatal(x: Any) -> Any:
    """Ends any process but the one that this file was first read in; under spawn every worker reads it anew."""
    if os.environ.get("MULTIGRAD_TEST_WORKER"):
        os._exit(3)
    return coupled(x)


def be_a_worker() -> None:
    os.environ["MULTIGRAD_TEST_WORKER"] = "1"


def point() -> Any:
    return torch.linspace(-2, 2, 40, dtype=torch.double).requires_grad_()


def same(one: GradReport, other: GradReport) -> None:
    assert one.verdict == other.verdict
    assert one.evaluations == other.evaluations
    for a, b in zip(one.blocks, other.blocks, strict=True):
        np.testing.assert_allclose(a.numeric, b.numeric, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(a.status, b.status)


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_a_process_pool_says_what_is_said_here(pool: Executor) -> None:
    here, there = (check_grad(coupled, (point(),), executor=e) for e in (None, pool))
    same(there, here)
    assert not [f for f in there.findings if f.kind == "executor"]


def test_closures_go_through_cloudpickle(pool: Executor) -> None:
    pytest.importorskip("cloudpickle")
    factor = torch.linspace(0.5, 2, 40, dtype=torch.double)
    here, there = (check_grad(lambda x: coupled(x * factor), (point(),), executor=e) for e in (None, pool))
    same(there, here)
    assert not [f for f in there.findings if f.kind == "executor"]


def test_a_wrong_gradient_is_wrong(pool: Executor) -> None:
    report = check_grad(
        np.cumsum,
        np.arange(1.0, 31.0),
        jac=lambda x: 1.01 * np.tril(np.ones((30, 30))),
        executor=pool,
        raise_exception=False,
    )
    assert report.verdict == "mismatch"


def test_a_worker_that_dies_loses_nothing() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), initializer=be_a_worker) as dying:
        report = check_grad(fatal, (point(),), executor=dying)
    assert report.verdict == "ok"
    same(report, check_grad(fatal, (point(),)))
    assert [f for f in report.findings if f.kind == "executor"]


class Counting(ThreadPoolExecutor):
    submitted = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        return super().submit(*args, **kwargs)


def test_threads() -> None:
    with Counting(2) as executor:
        same(check_grad(coupled, (point(),), executor=executor), check_grad(coupled, (point(),)))
        assert executor.submitted > 4


def test_what_cannot_be_sent_is_refused(pool: Executor) -> None:
    lock = multiprocessing.get_context("spawn").Lock()

    def guarded(x: Any) -> Any:
        with lock:
            return coupled(x)

    with pytest.raises(InvalidUse) as caught:
        check_grad(guarded, (point(),), executor=pool)
    assert caught.value.kind == "unpicklable"


@pytest.mark.filterwarnings("ignore")  # Dask's own, of its dashboard and of event loops
def test_a_dask_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = check_grad(lambda x: coupled(x) * 2, (point(),), executor=client.get_executor())
    same(there, check_grad(lambda x: coupled(x) * 2, (point(),)))
    assert not [f for f in there.findings if f.kind == "executor"]

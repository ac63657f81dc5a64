"""Clusters whose workers come by demand, leave before they are asked, or are closed in a run."""

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster
from faults.harness import Job
from support.hosts import wait_for
from support.toy import Toy, squares

import multigpu
from multigpu.cluster.deploy.start import workers_of_client
from multigpu.cluster.engine.dispatch import dispatch
from multigpu.cluster.errors import Failure
from multigpu.cluster.workers.dask_workers import CLOSED, PAUSED


@contextmanager
def clustered(count: int, **options: Any) -> Iterator[tuple[LocalCluster, Client]]:
    """Yield a cluster of `count` worker processes of one thread, and a client of it."""
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, host="127.0.0.1", silence_logs=60,
            dashboard_address="127.0.0.1:0", **{"memory_limit": 0, **options},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield cluster, client


@pytest.fixture
def scan_job(job: Job) -> Callable[..., Any]:
    """The job as a call of the Python function. Skips other jobs than the scan."""
    if job.name != "scan":
        pytest.skip("one job says it all")
    _, samples, _, signatures, *_ = job.arguments
    return partial(multigpu.scan, samples, signatures, max_chunk_bytes=15_000)


@pytest.mark.parametrize("point", ["run", "register_plugin", "submit"])
@pytest.mark.parametrize("how", ["known", "unknown", "for good"])
def test_workers__all_gone_just_before_they_are_asked_are_waited_for_until_the_timeout(
    scan_job: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, point: str, how: str
) -> None:
    """When they are examined, when the job is made known, when the first chunk is sent."""
    expected = scan_job(gpus="none").to_table()
    with clustered(2) as (cluster, client):
        ask, asked = getattr(client, point), threading.Event()

        def after_the_last_left(*arguments: Any, **options: Any) -> Any:
            if not asked.is_set():
                asked.set()
                cluster.scale(0)
                if how != "unknown":
                    wait_for(lambda: not client.nthreads(), "the end of the workers")
                if how != "for good":
                    threading.Timer(1.0, cluster.scale, [1]).start()
            return ask(*arguments, **options)

        monkeypatch.setattr(client, point, after_the_last_left)
        if how == "for good":
            missed = r"^no worker has been left for 2 s \(worker_timeout\)"
            with pytest.raises(Failure, match=missed):
                scan_job(client=client, worker_timeout=2).to_table()
        else:
            assert scan_job(client=client, worker_timeout=60).to_table().equals(expected)
    assert asked.is_set()


def test_worker_timeout__counts_from_when_a_worker_is_needed() -> None:
    """Not from the last look, which may be long ago: a client reads, and asks nobody."""
    with clustered(1) as (cluster, client):
        workers = workers_of_client(client, None, worker_timeout=2)
        cluster.scale(0)
        wait_for(lambda: not client.nthreads(), "the end of the worker")
        time.sleep(2.5)
        assert workers.present() == set()
        threading.Timer(0.5, cluster.scale, [1]).start()
        workers._timeout = 60  # type: ignore[attr-defined]
        outcomes = dispatch(workers, Toy("late"), range(5))
        assert [outcome.part for outcome in outcomes] == squares(5)


@pytest.mark.parametrize("minimum", [0, 1])
def test_adaptive_cluster__grows_to_its_maximum_and_shrinks_again(minimum: int) -> None:
    """With chunks of which a single worker would have done all in time, by Dask's reckoning."""
    with clustered(0) as (cluster, client):
        cluster.adapt(minimum=minimum, maximum=3, interval="200ms")
        workers = workers_of_client(client, None, worker_timeout=30)
        slow = {("compute", number): partial(time.sleep, 0.2) for number in range(120)}
        outcomes = list(dispatch(workers, Toy("grows", slow), range(120), chunks=120))
        assert [outcome.part for outcome in outcomes] == squares(120)
        assert len({outcome.worker for outcome in outcomes}) == 3
        wait_for(lambda: len(client.nthreads()) == minimum, "the end of the workers")
        assert cluster.scheduler.tasks == {}


def test_workers__paused_for_ever_end_the_run_with_the_reason() -> None:
    limits = {"pause": 0.001, "target": False, "spill": False, "terminate": False}
    with (
        dask.config.set({f"distributed.worker.memory.{k}": v for k, v in limits.items()}),
        clustered(1, memory_limit="2GB") as (cluster, client),
    ):
        there = cluster.scheduler.workers.values
        wait_for(lambda: {w.status.name for w in there()} == {"paused"}, "a pause")
        with pytest.raises(Failure) as caught:
            workers_of_client(client, None, worker_timeout=1)
    assert str(caught.value) == f"{PAUSED} for 1 s (worker_timeout)"


@pytest.mark.parametrize("what", ["client", "cluster"])
def test_client__closed_in_the_middle_of_a_run_is_said_and_the_journal_kept(
    scan_job: Callable[..., Any], tmp_path: Path, what: str
) -> None:
    expected = scan_job(gpus="none").to_table()
    journal = tmp_path / "journal"
    with clustered(2) as (cluster, client):
        result = scan_job(client=client, journal=journal)
        batches = iter(result)
        next(batches)
        (client if what == "client" else cluster).close()
        with pytest.raises(Failure) as caught:
            list(batches)
    assert str(caught.value) == CLOSED
    assert journal.stat().st_size > 0
    resumed = scan_job(gpus="none", journal=journal, resume=True).to_table()
    assert resumed.equals(expected)


def test_compressed_files__are_read_on_without_a_worker(job: Job, tmp_path: Path) -> None:
    if job.name != "scan":
        pytest.skip("one job says it all")
    _, samples, _, signatures, *_ = job.arguments
    packed = gzip.compress(Path(samples).read_bytes() * 3)
    paths = [tmp_path / f"{number}.fq.gz" for number in range(4)]
    for path in paths:
        path.write_bytes(packed)
    scan = partial(multigpu.scan, paths, signatures, max_chunk_bytes=30_000)
    expected = scan(gpus="none").to_table()
    with clustered(2) as (cluster, client):
        batches = iter(scan(client=client, worker_timeout=30))
        found = [next(batches)]
        cluster.scale(1)
        found += batches
    assert sum(map(len, found)) == expected.num_rows
    starts = [start for rows in found for start in rows.start.tolist()]
    assert starts == expected.column("start").to_pylist()

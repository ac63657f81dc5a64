"""Worker processes of this machine: LocalCUDACluster, one for each GPU, or LocalCluster."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from typing import Any

import dask
from distributed import Client, LocalCluster, Nanny
from distributed.security import Security

from multigpu.cluster.deploy import connections
from multigpu.cluster.deploy.dask_clients import CLOSE_TIMEOUT, changed_settings, closing_client
from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.errors import Failure, UsageError, first_line
from multigpu.cluster.workers.threads import call_within

LOOPBACK = "127.0.0.1"
START_TIMEOUT = 120.0  # seconds for worker processes: they load from what may be a slow disk
KILL_AFTER = 0.5  # seconds: a worker that hangs does not end by itself, and Ctrl-C is to be quick
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_one_cluster_at_a_time = threading.Lock()  # is made


@contextmanager
def local_client(deployment: Deployment, folder: str) -> Iterator[Any]:
    """Yield a client of worker processes that are started for the block.

    Nothing listens outside of the loopback.

    folder: for files of the processes
    """
    with changed_settings():
        with _blocked_signals():
            _quiet_resource_tracker()
        with _start_failures(folder), _blocked_signals():
            cluster = call_within(START_TIMEOUT, partial(_start_cluster, deployment, folder))
        try:
            # No default client: it would belong to the thread that makes it.
            # Parts come from the workers themselves, not through the scheduler in this process.
            client = Client(
                cluster,
                timeout=deployment.connect_timeout,
                set_as_default=False,
                direct_to_workers=True,
            )
            with closing_client(client):
                yield client
        finally:
            _close_cluster(cluster, folder)


def _start_cluster(deployment: Deployment, folder: str) -> Any:
    """Start a cluster whose scheduler and workers answer nobody but this process and each other.

    All users of a machine share its loopback. So the processes speak TLS, with a key that is made
    here, handed to the workers through a pipe, and gone with the run.
    """
    common = {
        "host": LOOPBACK,
        "security": Security.temporary(),
        "dashboard_address": f"{LOOPBACK}:0",  # None would be a fixed port on all interfaces
        "scheduler_kwargs": {"dashboard": False},
        "memory_limit": 0,  # else Dask pauses, spills and kills: chunks bound the memory
        "silence_logs": logging.CRITICAL,
        "local_directory": folder,
        "preload": [connections.__name__],
        "threads_per_worker": deployment.lanes,
    }
    # For what the scheduler and the workers take no argument.
    settings = {
        "temporary-directory": folder,
        "distributed.scheduler.http.routes": [],  # by some of which anyone retires workers
        "distributed.worker.http.routes": [],
    }
    with _one_cluster_at_a_time, dask.config.set(settings):
        if deployment.devices:
            from dask_cuda import LocalCUDACluster

            gpus = deployment.gpus
            cluster = LocalCUDACluster(
                CUDA_VISIBLE_DEVICES=gpus, device_memory_limit=None, **common
            )
        else:
            cluster = LocalCluster(n_workers=deployment.workers, **common)
    connections.dask_setup(cluster.scheduler)
    return cluster


def _close_cluster(cluster: Any, folder: str) -> None:
    """End the workers, within some seconds; those that are late are killed."""
    late = threading.Timer(KILL_AFTER, kill_workers, [folder])
    late.start()
    with contextlib.suppress(TimeoutError):  # nannies that are late end by themselves
        cluster.close(timeout=CLOSE_TIMEOUT)
    late.cancel()
    kill_workers(folder)


def kill_workers(folder: str) -> None:
    """Kill the worker processes that are left of those with their files in `folder`.

    They end with this process where they notice; one that is stopped or hangs does not.
    """
    with contextlib.suppress(RuntimeError):  # one is just being made, and ends with this process
        for nanny in list(Nanny._instances):
            if nanny.local_directory.startswith(folder) and (pid := nanny.pid) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block the signals that stop the program, in threads and processes that start in the block.

    Ctrl-C reaches all processes of a terminal, SIGHUP too, and batch systems send SIGTERM to all;
    but it is the first process that decides what follows.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _start_failures(folder: str) -> Iterator[None]:
    """Turn errors of workers that die or hang while they start into Failure; kill these workers."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        kill_workers(folder)
        reason = first_line(error)
        if isinstance(error, TimeoutError) and not str(error):
            reason = f"they gave no answer within {START_TIMEOUT:g} s (is `ulimit -n` too low?)"
        raise Failure(f"the workers could not be started: {reason}") from error


def _quiet_resource_tracker() -> None:
    """Start Python's watcher of semaphores without its warnings.

    It outlives this process, and would complain where workers are late to end.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        resource_tracker.ensure_running()
    finally:
        os.environ.pop("PYTHONWARNINGS")
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before

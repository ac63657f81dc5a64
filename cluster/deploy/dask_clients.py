"""Clients of Dask: of a running scheduler, and of worker processes of this machine.

Dask is made as this program needs it: quiet, with its own settings. Worker processes are those of
LocalCUDACluster, one for each GPU, or of LocalCluster.
"""

import contextlib
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Nanny
from distributed.security import Security

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.errors import Failure, UsageError, first_line
from multigpu.cluster.workers.threads import call_within

logger = logging.getLogger(__name__)

CONNECT_GRACE = 1.0  # seconds
LARGEST_SCHEDULER_FILE = 1 << 20  # bytes
FILE_POLL = 0.05  # seconds
LISTENS = "runs what anybody sends who reaches it, as every user of its machine can: use TLS"
PRIVATE_SCHEMES = ("tls://", "wss://", "inproc://")  # strangers cannot send tasks there
QUIET_LOGGERS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")
# Messages that Dask keeps of each connection, with all that is in them; by default 1000.
LOGGED_MESSAGES = 10
CLOSE_TIMEOUT = 2.0  # seconds

SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    # Tasks wait where there is room; a thief may deadlock with a worker that leaves.
    "distributed.scheduler.work-stealing": False,
    # A nanny starts its worker again. Dask would close it where the worker dies once more, and is
    # just away this long after the first time; by default 15 s.
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.admin.low-level-log-length": LOGGED_MESSAGES,
    "distributed.admin.large-graph-warning-threshold": "1 TB",  # spans may carry their text
}

# A process has one set of settings: they are changed as long as somebody uses them.
_lock = threading.Lock()
_users: set[object] = set()
_changes = contextlib.ExitStack()
LOOPBACK = "127.0.0.1"
START_TIMEOUT = 120.0  # seconds for worker processes: they load from what may be a slow disk
KILL_AFTER = 0.5  # seconds: a worker that hangs does not end by itself, and Ctrl-C is to be quick
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_one_cluster_at_a_time = threading.Lock()  # is made


@contextmanager
def changed_settings() -> Iterator[None]:
    """Change Dask's settings, and quiet its logs, while one or more such blocks last."""
    user = object()
    with _lock:
        if not _users:
            _changes.enter_context(dask.config.set(SETTINGS))
            for dask_logger in map(logging.getLogger, QUIET_LOGGERS):
                _changes.callback(dask_logger.setLevel, dask_logger.level)
                dask_logger.setLevel(logging.CRITICAL)
        _users.add(user)
    try:
        yield
    finally:
        with _lock:
            _users.remove(user)
            if not _users:
                _changes.close()


@contextmanager
def closing_client(client: Any) -> Iterator[Any]:
    """Yield a client, closed with the block, or the process if its scheduler is silent."""
    try:
        yield client
    finally:
        with contextlib.suppress(TimeoutError):
            client.close(timeout=CLOSE_TIMEOUT)


@contextmanager
def connected_client(deployment: Deployment) -> Iterator[Any]:
    """Yield a `dask.distributed.Client` of the deployment's scheduler."""
    with changed_settings(), closing_client(_connect(deployment)) as client:
        yield client


def _connect(deployment: Deployment) -> Any:
    """Return a client. Raises UsageError where no scheduler answers, or it may not be used."""
    address, limit = deployment.scheduler, deployment.connect_timeout
    if deployment.scheduler_file:
        address = _address_in(Path(deployment.scheduler_file), limit)
    where = deployment.scheduler or deployment.scheduler_file
    connect = partial(Client, address, timeout=limit, set_as_default=False)
    try:
        return call_within(limit + CONNECT_GRACE, connect)
    except (OSError, TimeoutError) as error:
        reason = first_line(error) if str(error) else "is it tcp:// or tls://?"
        raise UsageError(f"{where}: no scheduler answered within {limit:g} s ({reason})") from error
    except (RuntimeError, TypeError, ValueError) as error:  # the address, or settings of TLS
        cure = "; DASK_CONFIG names the settings of its TLS" if isinstance(error, TypeError) else ""
        raise UsageError(f"{where}: {first_line(error)}{cure}") from error


def _address_in(path: Path, seconds: float) -> str:
    """Return the address in the file of a scheduler. Raises UsageError where there is none."""
    try:
        known = json.loads(_scheduler_file(path, seconds).decode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: this is no scheduler file: no JSON") from error
    address = known.get("address") if isinstance(known, dict) else None
    if not isinstance(address, str):
        raise UsageError(f"{path}: this is no scheduler file: no address")
    return address


def _scheduler_file(path: Path, seconds: float) -> bytes:
    """Return what the file holds, once a scheduler that is starting has written it."""
    deadline = time.monotonic() + seconds
    is_reported = False
    while True:
        with suppress(FileNotFoundError), path.open("rb") as file:
            if content := file.read(LARGEST_SCHEDULER_FILE):
                return content
        if time.monotonic() >= deadline:
            raise UsageError(f"{path}: no scheduler has written this file within {seconds:g} s")
        if not is_reported:
            logger.warning("multigpu: waiting for a scheduler to write %s", path)
            is_reported = True
        time.sleep(FILE_POLL)


def warn_of_listeners(client: Any) -> None:
    """Warn of a scheduler without TLS: Dask runs what it is sent."""
    if not (address := client.scheduler.address).startswith(PRIVATE_SCHEMES):
        logger.warning("multigpu: %s %s (multigpu tls DIR; docs/clusters.md)", address, LISTENS)


@contextmanager
def local_client(deployment: Deployment, folder: str) -> Iterator[Any]:
    """Yield a client of worker processes, started for the block on the loopback, with a folder."""
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
    from multigpu.cluster.deploy import connections  # which changes how this process listens

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
    """Kill the worker processes with files in `folder` that are left: stopped, or hanging."""
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

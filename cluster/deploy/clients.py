"""Dask's clients: of a scheduler that runs, or of processes of this machine that are started."""

import contextlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.errors import Failure, UsageError, first_line
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import within

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
START_TIMEOUT = 120.0  # seconds for worker processes: they load from what may be a slow disk
CLOSE_TIMEOUT = 2.0  # seconds
KILL_AFTER = 0.5  # seconds: a worker that hangs does not end by itself, and Ctrl-C is to be soon
CONNECT_GRACE = 1.0
LARGEST_SCHEDULER_FILE = 1 << 20  # bytes
PRIVATE = ("tls://", "wss://", "inproc://")  # addresses to which strangers cannot send tasks
DECIDED_ABOVE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
QUIET = (
    "distributed",
    "distributed.client",
    "tornado",
    "tornado.application",
    "asyncio",
)  # loggers
LOGGED_MESSAGES = 10  # that Dask keeps of each connection, with all that is in them; else 1000
# What `--dashboard` serves beside Dask's plots. It changes nothing, unlike `http.scheduler.api`, by
# which anyone retires workers, and which a user's configuration may name.
SHOWN = ("distributed.http.scheduler.info", "distributed.http.statics")
MEASURED = (
    "benchmark_disk",
    "benchmark_memory",
    "benchmark_network",
)  # by who opens a plot of them


@dataclass
class _Settings:
    """Of Dask, while somebody uses it."""

    users: int = 0
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


_settings, _settings_lock = _Settings(), threading.Lock()
_one_at_a_time = threading.Lock()  # clusters are made


def import_dask() -> None:
    """Raises UsageError where its configuration is wrong."""
    try:
        import distributed  # noqa: F401 - reads Dask's configuration
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from error


@contextmanager
def client_of(deployment: Deployment, folder: str) -> Iterator[Any]:
    """A `dask.distributed.Client`, which ends with the block, as does what was started for it.

    folder: for files of processes of this machine, of which there are none unless something goes
    wrong
    """
    import_dask()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_dask_as_wanted())
        if deployment.remote:
            client = _connect(deployment)
            stack.callback(_close, client)
        else:
            client = stack.enter_context(_local_cluster(deployment, folder))
        if deployment.dashboard:
            _say_dashboard(client)
        yield client


def _say_dashboard(client: Any) -> None:
    if find_spec("bokeh") is None:
        logger.warning("multigpu: Dask's status page needs bokeh: pip install bokeh")
    else:
        logger.warning("multigpu: Dask's status page is %s", client.dashboard_link)


def warn_of_listeners(client: Any) -> None:
    """Dask runs what it is sent; whom it listens to is known by TLS, or by its being here."""
    from distributed.comm.addressing import get_address_host

    address = client.scheduler.address
    if not address.startswith(PRIVATE) and not _is_loopback(get_address_host(address)):
        logger.warning(
            "multigpu: %s runs what anybody sends who can reach it: use TLS (docs/clusters.md)",
            address,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _connect(deployment: Deployment) -> Any:
    from distributed import Client

    where = deployment.scheduler or deployment.scheduler_file
    kind: dict[str, Any] = {"address": deployment.scheduler}
    if deployment.scheduler_file:
        _check_scheduler_file(Path(deployment.scheduler_file))
        kind = {"scheduler_file": deployment.scheduler_file}
    limit = deployment.connect_timeout
    try:
        return within(
            limit + CONNECT_GRACE, lambda: Client(**kind, timeout=limit, set_as_default=False)
        )
    except (OSError, TimeoutError) as error:
        reason = first_line(error) if str(error) else "is it tcp:// or tls://?"
        raise UsageError(f"{where}: no scheduler answered within {limit:g} s ({reason})") from error
    except (RuntimeError, TypeError, ValueError) as error:  # the address, or settings of TLS
        raise UsageError(f"{where}: {first_line(error)}") from error


def _close(client: Any) -> None:
    """Where the scheduler does not answer, the connection ends with the process."""
    with contextlib.suppress(TimeoutError):
        client.close(timeout=CLOSE_TIMEOUT)


def _check_scheduler_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            known = json.loads(file.read(LARGEST_SCHEDULER_FILE).decode())  # as Dask reads it
    except OSError as error:
        raise UsageError(f"{path}: no such scheduler file") from error
    except ValueError as error:
        raise UsageError(f"{path}: this is no scheduler file: no JSON") from error
    if not isinstance(known, dict) or not isinstance(known.get("address"), str):
        raise UsageError(f"{path}: this is no scheduler file: no address")


@contextmanager
def _local_cluster(deployment: Deployment, folder: str) -> Iterator[Any]:
    """A client of worker processes on this machine, one for each GPU. Nothing listens off loopback.

    folder: for their files.
    """
    from distributed import Client

    with _deaf_children():
        _quiet_tracker()
    with _start_named(folder), _deaf_children():
        cluster = within(START_TIMEOUT, partial(_cluster, deployment, folder))
    try:
        # No default client: it would belong to the thread that makes it.
        # Parts come from the workers themselves, not through the scheduler in this process.
        client = Client(
            cluster, timeout=deployment.connect_timeout, set_as_default=False,
            direct_to_workers=True,
        )  # fmt: skip
        with contextlib.ExitStack() as stack:
            stack.callback(_close, client)
            with _start_named(folder):
                end_at_once = partial(client.run, worker.end_at_once, on_error="ignore")
                within(START_TIMEOUT, end_at_once)
            yield client
    finally:
        _close_cluster(cluster, folder)


def _close_cluster(cluster: Any, folder: str) -> None:
    """Some seconds at most; no worker is left."""
    late = threading.Timer(KILL_AFTER, kill_workers, [folder])
    late.start()
    with contextlib.suppress(TimeoutError):  # nannies that are late end by themselves
        cluster.close(timeout=CLOSE_TIMEOUT)
    late.cancel()
    kill_workers(folder)


def kill_workers(folder: str) -> None:
    """End those that are left of the worker processes that have their files in `folder`.

    They end with this process where they notice; one that is stopped or hangs does not.
    """
    nannies = getattr(sys.modules.get("distributed.nanny"), "Nanny", None)  # it may be loading
    if nannies is None:
        return
    with contextlib.suppress(RuntimeError):  # one is just being made, and ends with this process
        for nanny in list(nannies._instances):
            if nanny.local_directory.startswith(folder) and (pid := nanny.pid) is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _cluster(deployment: Deployment, folder: str) -> Any:
    """A cluster whose scheduler and workers answer nobody but this process and each other.

    All users of a machine share its loopback. So the processes speak TLS, with a key that is made
    here, handed to the workers through a pipe, and gone with the run.
    """
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    common = {
        "host": LOOPBACK,
        "security": Security.temporary(),
        "dashboard_address": f"{LOOPBACK}:0",  # None would be a fixed port on all interfaces
        "scheduler_kwargs": {"dashboard": deployment.dashboard},
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
        "local_directory": folder,
        "threads_per_worker": deployment.lanes,
    }
    # For what the scheduler and the workers take no argument.
    settings = {
        "temporary-directory": folder,
        "distributed.scheduler.http.routes": list(SHOWN) if deployment.dashboard else [],
        "distributed.worker.http.routes": [],
        "distributed.worker.blocked-handlers": list(MEASURED),
    }
    with _one_at_a_time, dask.config.set(settings):
        if not deployment.devices:
            return LocalCluster(n_workers=deployment.workers, **common)
        from dask_cuda import LocalCUDACluster

        gpus = [device.uuid for device in deployment.devices]
        return LocalCUDACluster(CUDA_VISIBLE_DEVICES=gpus, device_memory_limit=None, **common)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal, but the first one decides.

    SIGHUP does the same, and batch systems send SIGTERM to all. Threads that begin here, and the
    processes that these start then or later, never see them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DECIDED_ABOVE)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _start_named(folder: str) -> Iterator[None]:
    """Workers that die or hang while they start are a failure of the run."""
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


def _quiet_tracker() -> None:
    """Start Python's watcher of semaphores such that it does not complain.

    It outlives this process, and would where workers are late to end.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        resource_tracker.ensure_running()
    finally:
        os.environ.pop("PYTHONWARNINGS")
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


@contextmanager
def _dask_as_wanted() -> Iterator[None]:
    """Dask's settings, which are those of the process: the first takes them, the last gives back.

    Dask reports lost connections while a cluster closes; what matters arrives as exceptions.
    """
    with _settings_lock:
        if not _settings.users:
            _settings.stack = contextlib.ExitStack()
            _set_all(_settings.stack)
        _settings.users += 1
    try:
        yield
    finally:
        with _settings_lock:
            _settings.users -= 1
            if not _settings.users:
                _settings.stack.close()


def _set_all(stack: contextlib.ExitStack) -> None:
    import dask

    stack.enter_context(dask.config.set({
        "distributed.scheduler.allowed-failures": 0,
        "distributed.admin.low-level-log-length": LOGGED_MESSAGES,
        "distributed.admin.large-graph-warning-threshold": "1 TB",  # spans may carry their text
    }))  # fmt: skip
    for name in QUIET:
        dask_logger = logging.getLogger(name)
        stack.callback(dask_logger.setLevel, dask_logger.level)
        dask_logger.setLevel(logging.CRITICAL)

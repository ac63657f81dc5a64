"""Start the workers of a deployment, and end them afterwards.

Dask takes a while to import: what needs it is imported here where it is called.
"""

import contextlib
import logging
import resource
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.devices import context
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.errors import Failure, UsageError, first_line
from multigpu.cluster.files import failures_named, scratch_folder
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import LocalWorkers, Workers

logger = logging.getLogger(__name__)

START_GRACE = 2.0  # seconds that workers which are still starting are waited for at the end
MOST_FILES = 1 << 16  # that a process may have open, unless its user or system allows fewer
END_TIMEOUT = 10.0  # seconds; the client, the cluster and its workers have limits of their own


class PendingWorkers:
    """Workers that start, and end, in another thread.

    devices  GPUs of this machine that they use
    start    called at once; returns the workers
    end      called after it; ends whatever was started
    """

    def __init__(
        self, devices: tuple[Device, ...], start: Callable[[], Workers], end: Callable[[], None]
    ) -> None:
        self.devices, self._end = devices, end
        self._pool = ThreadPoolExecutor(1, "workers")
        self._started = self._pool.submit(start)

    def wait(self) -> Workers:
        """Return the workers when they have started. Raises what went wrong."""
        return self._started.result()

    def close(self) -> None:
        """End the workers, and wait for that, for some seconds at most."""
        try:
            ended = self._pool.submit(self._end)
        except RuntimeError:  # the interpreter ends, and so do its pools
            self._end()
            return
        wait([self._started], START_GRACE)
        if self._started.done():
            wait([ended], END_TIMEOUT)
            if ended.done() and (error := ended.exception()):
                problem = "the workers did not shut down cleanly"
                logger.warning("multigpu: %s: %s", problem, first_line(error))
        self._pool.shutdown(wait=False)


@contextmanager
def start_workers(deployment: Deployment) -> Iterator[PendingWorkers]:
    """Yield workers that start while the block does something else, and end with it."""
    stack, unwanted = contextlib.ExitStack(), threading.Event()
    start: Callable[[], Workers]
    with contextlib.ExitStack() as outer:
        if deployment.in_process:
            context.start_all(deployment.gpus)
            gpus, cpu_fallback = deployment.gpus, deployment.cpu_fallback
            local = LocalWorkers(deployment.lanes, gpus, cpu_fallback=cpu_fallback)
            stack.callback(local.close)
            start = lambda: local  # noqa: E731
        elif deployment.remote:
            start = partial(_find_workers, deployment, stack)
        else:
            with failures_named(tempfile.gettempdir()):
                folder = outer.enter_context(scratch_folder())
            outer.callback(_kill_late_workers, folder)
            # Workers that are late make the folder again.
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            start = partial(_start_processes, deployment, stack, folder, unwanted)
        pending = PendingWorkers(deployment.devices, start, stack.close)
        outer.callback(pending.close)
        outer.callback(unwanted.set)
        yield pending


def _find_workers(deployment: Deployment, stack: contextlib.ExitStack) -> Workers:
    """Return the workers of a running scheduler; the connection ends with the stack."""
    _import_dask()
    from multigpu.cluster.deploy.dask_clients import connected_client

    client = stack.enter_context(connected_client(deployment))
    return workers_of_client(client, worker.OWN, deployment.worker_timeout)


def _start_processes(
    deployment: Deployment, stack: contextlib.ExitStack, folder: str, unwanted: threading.Event
) -> Workers:
    """Return worker processes, with files in `folder`; `unwanted`: nobody waits for them."""
    _import_dask()
    if unwanted.is_set():
        raise Failure("nobody waits for the workers")
    from multigpu.cluster.deploy.dask_clients import local_client

    client = stack.enter_context(local_client(deployment, folder))
    gpu = worker.OWN if deployment.devices else None
    found = workers_of_client(client, gpu, deployment.worker_timeout)
    found.everywhere(worker.start_device, gpu)  # what fails there fails again where it is used
    return found


def _import_dask() -> None:
    """Import Dask; allow it many connections. Raises UsageError where its settings are wrong."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, MOST_FILES)), hard))
    try:
        import distributed  # noqa: F401 - reads Dask's configuration
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from error


def _kill_late_workers(folder: str) -> None:
    """Kill the worker processes that are left; none is where their module is still loading."""
    module = sys.modules.get("multigpu.cluster.deploy.dask_clients")
    if kill_workers := getattr(module, "kill_workers", None):
        kill_workers(folder)


def workers_of_client(client: Any, gpu: str | None, worker_timeout: float) -> Workers:
    """Return the workers of Dask's client, which stays open. Raises UsageError."""
    from distributed import Client

    from multigpu.cluster.deploy.dask_clients import warn_of_listeners
    from multigpu.cluster.workers.dask_workers import DaskWorkers

    if not isinstance(client, Client):
        raise UsageError(f"client is a {type(client).__name__}, no dask.distributed.Client")
    if client.asynchronous:
        raise UsageError("client is asynchronous: make it with asynchronous=False")
    if client.status != "running":
        raise UsageError(f"client is not connected: it is {client.status}")
    warn_of_listeners(client)
    return DaskWorkers(client, gpu, worker_timeout)

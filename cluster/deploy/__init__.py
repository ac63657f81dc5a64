"""From "these GPUs" or "that scheduler" to workers, and back to nothing afterwards."""

import contextlib
import json
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from cluster import context, worker
from cluster.devices import Device
from cluster.errors import Failure, UsageError, first_line
from cluster.head_start import HeadStart, Left
from cluster.workers import LocalWorkers, Workers, within

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
CLOSE_TIMEOUT = 2.0  # seconds, and
CONNECT_GRACE = 1.0
LARGEST_SCHEDULER_FILE = 1 << 20  # bytes
PRIVATE = ("tls://", "wss://", "inproc://")  # addresses to which strangers cannot send tasks
LOGGED_MESSAGES = 10  # that Dask keeps of each connection, with all that is in them; else 1000


@dataclass
class _Settings:
    """Of Dask, while somebody uses it."""

    users: int = 0
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


_settings, _settings_lock = _Settings(), threading.Lock()
_one_at_a_time = threading.Lock()  # clusters are made


@dataclass(frozen=True)
class Deployment:
    """Where the work is to run.

    devices    the GPUs of this machine to use; none means its CPU
    threads    CPU threads, or chunks in hand per GPU
    processes  workers as processes of their own even without several GPUs (0: as few as possible)
    head_start      threads of this process that begin, on the first device, while worker processes
                    start; 0: none
    worker_timeout  seconds without any worker, or without an answer, after which a run fails
    cpu_fallback    whether the CPU may take over from a device that fails
    dashboard       whether Dask's status page is served, on the loopback
    """

    devices: tuple[Device, ...] = ()
    threads: int = 1
    processes: int = 0
    head_start: int = 0
    scheduler: str | None = None
    scheduler_file: str | None = None
    connect_timeout: float = 30.0
    worker_timeout: float = 60.0
    cpu_fallback: bool = True
    dashboard: bool = False

    @property
    def remote(self) -> bool:
        """Whether a running cluster does the work."""
        return bool(self.scheduler or self.scheduler_file)

    @property
    def workers(self) -> int:
        """How many there are, this process included, unless a running cluster has them."""
        return len(self.devices) or max(1, self.processes)

    @property
    def lanes(self) -> int:
        """Threads of each: a GPU has all of `threads`, the CPU's are divided."""
        return self.threads if self.devices else max(1, self.threads // self.workers)

    @property
    def in_process(self) -> bool:
        """Whether threads of this process do it."""
        return not self.remote and len(self.devices) < 2 and not self.processes

    @property
    def local_cluster(self) -> bool:
        """Whether processes of this machine do it, which are started for that."""
        return not (self.remote or self.in_process)

    @property
    def first_gpu(self) -> str | None:
        """The UUID of the device that this process works with, if it does."""
        return self.devices[0].uuid if self.devices else None


class Coming:
    """Workers that come up, and end, while other things are done; see `starting`.

    here  threads of this process that begin with the work before the workers are there
    over  set when nobody waits for them any more
    """

    def __init__(
        self,
        make: Callable[[], Workers],
        end: Callable[[], None],
        here: LocalWorkers | None,
        over: threading.Event,
    ) -> None:
        self._make, self._end, self._here, self._over = make, end, here, over
        self._pool = ThreadPoolExecutor(1, "workers")
        self.made: Future[Workers] | None = None
        self._ended: Future[None] | None = None
        if here is None:
            self.begin()

    def begin(self) -> "Future[Workers]":
        """Have them started, if they are not on their way."""
        self.made = self.made or self._pool.submit(self._make)
        return self.made

    def __call__(self, left: Left = lambda: None) -> Workers:
        """Waits for them, unless threads of this process begin. Raises what went wrong.

        left: about how many chunks of the job are not finished, if that is known
        """
        return HeadStart(self._here, self, left) if self._here else self.begin().result()

    def release(self) -> None:
        """They have nothing to do any more."""
        self._over.set()
        if self._ended is None:
            try:
                self._ended = self._pool.submit(self._end)
            except RuntimeError:  # the interpreter ends, and so do its pools
                self._end()

    def close(self) -> None:
        """Waits for them to end; but where threads of this process began, nobody waits for others.

        These end behind our back, or with this process.
        """
        self.release()
        if self._here:
            self._here.close()
        elif self.made:
            wait([self.made], CLOSE_TIMEOUT)
            if self.made.done() and self._ended:
                self._ended.result()
        self._pool.shutdown(wait=False)


@contextmanager
def starting(
    deployment: Deployment, prepare: Callable[[str | None], object] = worker.free_bytes
) -> Iterator[Coming]:
    """Workers that come up while the block does something else, at once or when they are asked for.

    What was started ends with the block, or soon after it where threads of this process have a head
    start. The context of the GPU that this process works with comes up at once.

    prepare  run on every worker process, with its GPU: loads what its first chunk would wait for
    """
    gpu, here = deployment.first_gpu, None
    if gpu and (deployment.in_process or deployment.head_start):
        threading.Thread(target=context.start, args=(gpu,), daemon=True).start()
    if deployment.head_start:
        here = LocalWorkers(deployment.head_start, gpu)
    with contextlib.ExitStack() as around:
        stack, over, folder = contextlib.ExitStack(), threading.Event(), ""
        if deployment.local_cluster:
            folder = tempfile.mkdtemp(prefix="multigpu-")
            remove = partial(shutil.rmtree, folder, ignore_errors=True)
            around.callback(remove)
            stack.callback(remove)  # workers that come late make it again

        def ready() -> Workers:
            if deployment.local_cluster:
                _import_dask()  # which takes a while
                if over.is_set():
                    raise Failure("nobody waits for the workers")
            found = stack.enter_context(_made(deployment, folder))
            if deployment.local_cluster:
                found.everywhere(prepare, found.gpu)  # what fails there fails again, and is said
            return found

        yield around.enter_context(contextlib.closing(Coming(ready, stack.close, here, over)))


@contextmanager
def workers(deployment: Deployment) -> Iterator[Workers]:
    """The workers of a deployment; what was started for it ends with the block, as in `starting`.

    One GPU, or the CPU, is served by threads of this process, more GPUs by a process each.
    """
    with starting(deployment) as coming:
        yield coming()


@contextmanager
def _made(deployment: Deployment, folder: str) -> Iterator[Workers]:
    """folder: for files of a local cluster, of which there are none unless something goes wrong."""
    with contextlib.ExitStack() as stack:
        if deployment.in_process:
            local = LocalWorkers(deployment.threads, deployment.first_gpu, deployment.cpu_fallback)
            stack.callback(local.close)
            yield local
            return
        _import_dask()
        stack.enter_context(_dask_as_wanted())
        if deployment.remote:
            client = _connect(deployment)
            stack.callback(_close, client)
        else:
            client = stack.enter_context(_local_cluster(deployment, folder))
        if deployment.dashboard:
            _say_dashboard(client)
        gpu = worker.FIRST if deployment.remote or deployment.devices else None
        yield of_client(client, gpu, deployment.worker_timeout)


def of_client(client: Any, gpu: str | None, worker_timeout: float) -> Workers:
    """The workers of a `dask.distributed.Client`, which stays open.

    Raises UsageError where it is none, or one that cannot be used.
    """
    from distributed import Client

    from cluster.dask_workers import DaskWorkers

    if not isinstance(client, Client):
        raise UsageError(f"client is a {type(client).__name__}, no dask.distributed.Client")
    if client.asynchronous:
        raise UsageError("client is asynchronous: make it with asynchronous=False")
    if client.status != "running":
        raise UsageError(f"client is not connected: it is {client.status}")
    _warn_of_listeners(client)
    return DaskWorkers(client, gpu, worker_timeout)


def _import_dask() -> None:
    try:
        import distributed  # noqa: F401 - reads Dask's configuration
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from error


def _say_dashboard(client: Any) -> None:
    if find_spec("bokeh") is None:
        logger.warning("multigpu: Dask's status page needs bokeh: pip install bokeh")
    else:
        logger.warning("multigpu: Dask's status page is %s", client.dashboard_link)


def _warn_of_listeners(client: Any) -> None:
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

    _quiet_tracker()
    with _start_named(), _deaf_children():
        cluster = _cluster(deployment, folder)
    try:
        # No default client: it would belong to the thread that makes it.
        # Parts come from the workers themselves, not through the scheduler in this process.
        client = Client(
            cluster, timeout=deployment.connect_timeout, set_as_default=False,
            direct_to_workers=True,
        )  # fmt: skip
        with contextlib.closing(client):
            client.run(worker.end_at_once, on_error="ignore")
            yield client
    finally:
        with contextlib.suppress(TimeoutError):  # nannies that are late end by themselves
            cluster.close(timeout=CLOSE_TIMEOUT)


def _cluster(deployment: Deployment, folder: str) -> Any:
    import dask
    from distributed import LocalCluster

    common = {
        "host": LOOPBACK,
        "dashboard_address": f"{LOOPBACK}:0",  # None would be a fixed port on all interfaces
        "scheduler_kwargs": {"dashboard": deployment.dashboard},
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
        "local_directory": folder,
        "threads_per_worker": deployment.lanes,
    }
    # The scheduler takes no `local_directory`.
    with _one_at_a_time, dask.config.set({"temporary-directory": folder}):
        if not deployment.devices:
            return LocalCluster(n_workers=deployment.workers, **common)
        from dask_cuda import LocalCUDACluster

        gpus = [device.uuid for device in deployment.devices]
        return LocalCUDACluster(CUDA_VISIBLE_DEVICES=gpus, device_memory_limit=None, **common)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal, but the first one decides.

    Threads that begin here, and the processes that these start then or later, never see it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _start_named() -> Iterator[None]:
    """Workers that die while they start are a failure of the run."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        reason = first_line(error)
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
    for name in ("distributed", "tornado", "asyncio"):
        dask_logger = logging.getLogger(name)
        stack.callback(dask_logger.setLevel, dask_logger.level)
        dask_logger.setLevel(logging.CRITICAL)

"""From "these GPUs" or "that scheduler" to workers, and back to nothing afterwards."""

import contextlib
import json
import logging
import os
import queue
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cluster import worker
from cluster.devices import Device
from cluster.errors import Failure, UsageError

LOOPBACK = "127.0.0.1"
CLOSE_TIMEOUT = 2.0  # seconds, and
CONNECT_GRACE = 1.0
WORKER_NICENESS = 5
GPU_LANES = 6  # chunks on their way through one GPU: some load, some compute, some finish


@dataclass(frozen=True)
class Deployment:
    """Where the work is to run.

    devices    the GPUs of this machine to use; none means its CPU
    threads    CPU threads, or chunks in hand per GPU
    processes  workers as processes of their own even without several GPUs (0: as few as possible)
    """

    devices: tuple[Device, ...] = ()
    threads: int = 1
    processes: int = 0
    scheduler: str | None = None
    scheduler_file: str | None = None
    connect_timeout: float = 30.0


class Future(Protocol):
    """What a task is going to give."""

    def result(self) -> Any: ...

    def done(self) -> bool: ...

    def cancel(self) -> Any: ...


class Workers(Protocol):
    """Threads that run tasks, here or elsewhere.

    threads  of all workers together
    lanes    of the worker that has most
    gpu      what tasks get as their device: a UUID, None for the CPU, or `worker.FIRST`
    """

    threads: int
    lanes: int
    gpu: str | None

    def share(self, value: Any) -> Any:
        """`value` in a form to give to `submit`, sent once to every worker."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Run it on some worker."""

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Run it on every worker now; what each gave, by its name."""


class LocalWorkers:
    """The threads of this process: no start, no import of Dask, no copy of anything."""

    def __init__(self, threads: int, gpu: str | None) -> None:
        self.threads, self.lanes, self.gpu = threads, threads, gpu
        self._pool = ThreadPoolExecutor(threads, "worker", _step_back)

    def share(self, value: Any) -> Any:
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        return self._pool.submit(function, *arguments)

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        return {"this process": function(*arguments)}

    def close(self) -> None:
        """Forget what has not begun; what has ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _step_back() -> None:
    """Lets the thread that reads and decompresses go first where there are more threads than cores.

    What it does cannot be divided, and the workers wait for it.
    """
    if sys.platform == "linux":  # where every thread has a priority of its own
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), WORKER_NICENESS)


class DaskWorkers:
    """The workers of a Dask scheduler. A task whose worker dies is run again on another one."""

    def __init__(self, client: Any, gpu: str | None) -> None:
        threads = client.nthreads()
        if not threads:
            raise Failure("the scheduler has no workers: start some with `dask worker`")
        self.threads, self.lanes = sum(threads.values()), max(threads.values())
        self.gpu = gpu
        self._client = client

    def share(self, value: Any) -> Any:
        return self._client.scatter(value, broadcast=True, hash=False)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        return _DaskFuture(self._client.submit(function, *arguments, pure=False))

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        try:
            given: dict[str, Any] = self._client.run(function, *arguments)
        except ModuleNotFoundError as error:
            raise Failure(
                f"a worker lacks the program: {error}; install the same version"
            ) from error
        return given


@dataclass(frozen=True)
class _DaskFuture:
    """A future whose failures are ours."""

    future: Any

    def result(self) -> Any:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError

        try:
            return self.future.result()
        except KilledWorker as error:
            raise Failure(
                "a chunk was given up: the workers that ran it died, one after the other"
            ) from error
        except (FutureCancelledError, CommClosedError) as error:
            raise Failure(f"the connection to the scheduler was lost ({error})") from error

    def done(self) -> bool:
        return bool(self.future.done())

    def cancel(self) -> Any:
        return self.future.cancel()


@contextmanager
def workers(deployment: Deployment) -> Iterator[Workers]:
    """The workers of a deployment; what was started for it ends with the block.

    One GPU, or the CPU, is served by threads of this process, more GPUs by a process each.
    """
    with contextlib.ExitStack() as stack:
        if deployment.scheduler or deployment.scheduler_file:
            stack.enter_context(_quiet_dask())
            client = _connect(deployment)
            stack.callback(client.close, timeout=2)
            yield DaskWorkers(client, worker.FIRST)
        elif len(deployment.devices) > 1 or deployment.processes:
            stack.enter_context(_quiet_dask())
            client = stack.enter_context(_local_cluster(deployment))
            yield DaskWorkers(client, worker.FIRST if deployment.devices else None)
        else:
            gpu = deployment.devices[0].uuid if deployment.devices else None
            local = LocalWorkers(deployment.threads, gpu)
            stack.callback(local.close)
            yield local


def _connect(deployment: Deployment) -> Any:
    from distributed import Client

    where = deployment.scheduler or deployment.scheduler_file
    kind: dict[str, Any] = {"address": deployment.scheduler}
    if deployment.scheduler_file:
        _check_scheduler_file(Path(deployment.scheduler_file))
        kind = {"scheduler_file": deployment.scheduler_file}
    limit = deployment.connect_timeout
    try:
        return _within(limit + CONNECT_GRACE, lambda: Client(**kind, timeout=limit))
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{where}: no scheduler answered within {limit:g} s ({reason})") from error


def _check_scheduler_file(path: Path) -> None:
    try:
        known = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: no such scheduler file") from error
    except ValueError as error:
        raise UsageError(f"{path}: this is no scheduler file: no JSON") from error
    if not isinstance(known, dict) or "address" not in known:
        raise UsageError(f"{path}: this is no scheduler file: no address")


def _within(seconds: float, make: Callable[[], Any]) -> Any:
    """What `make` gives, or TimeoutError: not all that accepts a connection answers."""
    given: queue.Queue[tuple[Any, Exception | None]] = queue.Queue()

    def run() -> None:
        try:
            given.put((make(), None))
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            given.put((None, error))

    threading.Thread(target=run, name="connect", daemon=True).start()
    try:
        result, error = given.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError("it accepts connections, but does not answer") from None
    if error is not None:
        raise error
    return result


async def _ignore_interrupts() -> None:
    """On a worker: Ctrl-C reaches all processes of a terminal, but the first one decides."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _local_cluster(deployment: Deployment) -> Iterator[Any]:
    """A client of worker processes on this machine, one for each GPU. Nothing listens off loopback.

    The workers' folder is for their files, of which there are none unless something goes wrong.
    """
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory(prefix="multigpu-") as folder:
        common = {
            "host": LOOPBACK,
            "dashboard_address": f"{LOOPBACK}:0",
            "memory_limit": 0,
            "silence_logs": logging.CRITICAL,
            "local_directory": folder,
        }
        if deployment.devices:
            from dask_cuda import LocalCUDACluster

            cluster = LocalCUDACluster(
                CUDA_VISIBLE_DEVICES=[device.uuid for device in deployment.devices],
                threads_per_worker=deployment.threads,
                device_memory_limit=None,
                **common,
            )
        else:
            threads = max(1, deployment.threads // deployment.processes)
            cluster = LocalCluster(
                n_workers=deployment.processes, threads_per_worker=threads, **common
            )
        try:
            with Client(cluster, timeout=deployment.connect_timeout) as client:
                client.run(_ignore_interrupts)
                yield client
        finally:
            with contextlib.suppress(TimeoutError):  # nannies that are late end by themselves
                cluster.close(timeout=CLOSE_TIMEOUT)


@contextmanager
def _quiet_dask() -> Iterator[None]:
    """Dask reports lost connections while a cluster closes; what matters arrives as exceptions."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)

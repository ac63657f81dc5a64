"""From "these GPUs" or "that scheduler" to a Dask client, and back to nothing afterwards."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import worker
from cluster.devices import Device
from cluster.errors import Failure, UsageError

LOOPBACK = "127.0.0.1"
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


@dataclass(frozen=True)
class Workers:
    """A client and what its workers compute on.

    gpu: the UUID of the device, None for the CPU, "first" where every worker has its own.
    """

    client: Any
    gpu: str | None
    count: int
    threads: int  # of all workers together


@contextmanager
def workers(deployment: Deployment) -> Iterator[Workers]:
    """A client for the deployment; what was started for it ends with the block."""
    from distributed import Client

    with contextlib.ExitStack() as stack, _quiet_dask():
        if deployment.scheduler or deployment.scheduler_file:
            client = _connect(deployment)
            stack.callback(client.close, timeout=2)
            yield _remote(client)
            return
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="multigpu-"))
        cluster = stack.enter_context(_closing(_local_cluster(deployment, folder)))
        client = stack.enter_context(Client(cluster, timeout=deployment.connect_timeout))
        count = max(1, len(deployment.devices), deployment.processes)
        gpu: str | None = None
        if len(deployment.devices) == 1 and not deployment.processes:
            gpu = deployment.devices[0].uuid
        elif deployment.devices:
            gpu = worker.FIRST
        yield Workers(client, gpu, count, sum(client.nthreads().values()))


def of_client(client: Any) -> Workers:
    """The workers of a client that somebody else made."""
    return _remote(client)


def _remote(client: Any) -> Workers:
    threads = client.nthreads()
    if not threads:
        raise Failure("the scheduler has no workers: start some with `dask worker` or `dask cuda`")
    return Workers(client, worker.FIRST, len(threads), sum(threads.values()))


def _connect(deployment: Deployment) -> Any:
    from distributed import Client

    where = deployment.scheduler or deployment.scheduler_file
    kind: dict[str, Any] = {"address": deployment.scheduler}
    if deployment.scheduler_file:
        if not Path(deployment.scheduler_file).exists():
            raise UsageError(f"{where}: no such scheduler file")
        kind = {"scheduler_file": deployment.scheduler_file}
    try:
        return Client(**kind, timeout=deployment.connect_timeout)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(
            f"{where}: no scheduler answered within {deployment.connect_timeout:g} s ({reason})"
        ) from error


def _local_cluster(deployment: Deployment, folder: str) -> Any:
    """In this process for one GPU or the CPU, else a process each. Nothing listens off loopback.

    folder: for the workers' files, of which there are none unless something goes wrong.
    """
    common = {
        "dashboard_address": f"{LOOPBACK}:0",
        "memory_limit": 0,
        "silence_logs": logging.CRITICAL,
        "local_directory": folder,
    }
    if len(deployment.devices) > 1 or (deployment.devices and deployment.processes):
        from dask_cuda import LocalCUDACluster

        return LocalCUDACluster(
            CUDA_VISIBLE_DEVICES=[device.uuid for device in deployment.devices],
            threads_per_worker=deployment.threads,
            device_memory_limit=None,
            host=LOOPBACK,
            **common,
        )
    from distributed import LocalCluster

    if deployment.processes:
        return LocalCluster(
            n_workers=deployment.processes,
            threads_per_worker=max(1, deployment.threads // deployment.processes),
            host=LOOPBACK,
            **common,
        )
    return LocalCluster(
        n_workers=1,
        threads_per_worker=deployment.threads,
        processes=False,
        worker_dashboard_address=f"{LOOPBACK}:0",
        **common,
    )


@contextmanager
def _closing(cluster: Any) -> Iterator[Any]:
    try:
        yield cluster
    finally:
        cluster.close(timeout=2)


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

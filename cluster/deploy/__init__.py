"""From "these GPUs" or "that scheduler" to workers, and back to nothing afterwards."""

import contextlib
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

from multigpu.cluster.deploy.clients import (
    CLOSE_TIMEOUT,
    client_of,
    import_dask,
    kill_workers,
    warn_of_listeners,
)
from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.devices.context import Contexts
from multigpu.cluster.engine.output import failures_named
from multigpu.cluster.engine.scratch import scratch_folder
from multigpu.cluster.errors import Failure, UsageError, first_line
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.head_start import HeadStart, Left
from multigpu.cluster.workers.threads import LocalWorkers, Workers

logger = logging.getLogger(__name__)

CLOSING_TIMEOUT = 10.0  # seconds, for what has its own limits: the client, the cluster, its workers

__all__ = ["Coming", "Deployment", "of_client", "starting", "workers"]


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
                wait([self._ended], CLOSING_TIMEOUT)
                if self._ended.done() and (error := self._ended.exception()):
                    logger.warning("multigpu: the workers ended badly: %s", first_line(error))
        self._pool.shutdown(wait=False)


@contextmanager
def starting(
    deployment: Deployment,
    prepare: Callable[[str | None], object] = worker.free_bytes,
    here_too: bool = False,
) -> Iterator[Coming]:
    """Workers that come up while the block does something else, at once or when they are asked for.

    What was started ends with the block, or soon after it where threads of this process have a head
    start. The contexts of the GPUs that this process works with come up at once.

    prepare   run on every worker process, with its GPU: loads what its first chunk would wait for
    here_too  also for the GPUs of this process, where the input is read before there are chunks
    """
    with contextlib.ExitStack() as around:
        stack, over, folder = contextlib.ExitStack(), threading.Event(), ""
        if deployment.local_cluster:
            with failures_named(tempfile.gettempdir()):
                folder = around.enter_context(scratch_folder())
            around.callback(kill_workers, folder)
            # workers that come late make it again
            stack.callback(partial(shutil.rmtree, folder, ignore_errors=True))
        gpus, here = deployment.own_gpus, None
        contexts = Contexts(gpus, prepare if here_too else None) if gpus else None
        if deployment.head_start:
            here = LocalWorkers(deployment.lanes, gpus, contexts=contexts)

        def ready() -> Workers:
            if deployment.local_cluster:
                import_dask()  # which takes a while
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
    """folder: for files of processes that are started."""
    if deployment.in_process:
        gpus = deployment.own_gpus
        local = LocalWorkers(deployment.threads, gpus, deployment.cpu_fallback)
        with contextlib.closing(local):
            yield local
        return
    with client_of(deployment, folder) as client:
        on_gpus = deployment.remote or deployment.devices
        yield of_client(client, worker.OWN if on_gpus else None, deployment.worker_timeout)


def of_client(client: Any, gpu: str | None, worker_timeout: float) -> Workers:
    """The workers of a `dask.distributed.Client`, which stays open.

    Raises UsageError where it is none, or one that cannot be used.
    """
    from distributed import Client

    from multigpu.cluster.workers.dask_workers import DaskWorkers

    if not isinstance(client, Client):
        raise UsageError(f"client is a {type(client).__name__}, no dask.distributed.Client")
    if client.asynchronous:
        raise UsageError("client is asynchronous: make it with asynchronous=False")
    if client.status != "running":
        raise UsageError(f"client is not connected: it is {client.status}")
    warn_of_listeners(client)
    return DaskWorkers(client, gpu, worker_timeout)

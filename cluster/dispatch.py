"""Spans to tasks to outcomes, in the order of the input, with a bounded number under way."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from cluster import worker
from cluster.deploy import Workers
from cluster.errors import Failure
from cluster.worker import Outcome
from cluster.workload import P, S, Workload

WINDOW_PER_THREAD = 2  # tasks sent for each thread of the workers: one running, one waiting


def dispatch(
    workers: Workers, workload: Workload[S, P], spans: Iterable[S]
) -> Iterator[Outcome[P]]:
    """Run every span; yield the outcomes in order.

    `spans` is advanced only as outcomes are taken, so that neither a fast reader nor a late chunk
    lets anything pile up. Dask runs the chunks of a lost worker again elsewhere. Raises what a step
    raised, and Failure when a chunk cannot be run.
    """
    client = workers.client
    shared = client.scatter(workload, broadcast=True, hash=False)
    source = iter(spans)
    waiting: deque[tuple[S, Any]] = deque()
    try:
        while True:
            while len(waiting) < workers.threads * WINDOW_PER_THREAD:
                if (span := next(source, None)) is None:
                    break
                waiting.append((span, _submit(workers, shared, span)))
            if not waiting:
                return
            span, future = waiting[0]
            outcome = _result(future)
            while (corrected := workload.correct(span, outcome.part)) is not None:
                span = corrected
                outcome = _result(_submit(workers, shared, span))
            waiting.popleft()
            yield outcome
    finally:
        for _, future in waiting:
            future.cancel()
        client.run(worker.close, workload.key)


def _submit(workers: Workers, shared: Any, span: Any) -> Any:
    """A large span (bytes of a stream) travels as data, a small one in the task."""
    if getattr(span, "nbytes", 0):
        span = workers.client.scatter(span, hash=False)
    return workers.client.submit(worker.run_chunk, shared, workers.gpu, span, pure=False)


def _result(future: Any) -> Any:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        return future.result()
    except KilledWorker as error:
        raise Failure(
            "a chunk was given up: the workers that ran it died, one after the other"
        ) from error
    except FutureCancelledError as error:
        raise Failure(f"the connection to the scheduler was lost ({error})") from error

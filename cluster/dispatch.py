"""Spans to tasks to outcomes, in the order of the input, with a bounded number under way."""

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator

from cluster import worker
from cluster.deploy import Future, Workers
from cluster.worker import Outcome
from cluster.workload import P, S, Workload

WINDOW_PER_THREAD = 2  # tasks sent for each thread of the workers: one running, one waiting


def dispatch(
    workers: Workers, workload: Workload[S, P], spans: Iterable[S]
) -> Iterator[Outcome[P]]:
    """Run every span; yield the outcomes in order.

    `spans` is advanced only as outcomes are taken, so that neither a fast reader nor a late chunk
    lets anything pile up. Raises what a step raised, and Failure when a chunk cannot be run.
    """
    shared = workers.share(workload)
    source = iter(spans)
    waiting: deque[tuple[S, Future]] = deque()

    def submit(span: S) -> Future:
        return workers.submit(worker.run_chunk, shared, workers.gpu, span)

    try:
        while True:
            full = len(waiting) >= workers.threads * WINDOW_PER_THREAD
            ready = bool(waiting) and waiting[0][1].done()
            if not (full or ready) and (span := next(source, None)) is not None:
                waiting.append((span, submit(span)))
                continue
            if not waiting:
                return
            span, future = waiting.popleft()
            outcome = future.result()
            while (corrected := workload.correct(span, outcome.part)) is not None:
                span = corrected
                outcome = submit(span).result()
            yield outcome
    finally:
        for _, future in waiting:
            future.cancel()
        with contextlib.suppress(Exception):  # of workers that are gone nothing has to be freed
            workers.everywhere(worker.close, workload.key)

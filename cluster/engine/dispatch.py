"""Spans to tasks to outcomes, in the order of the input, whatever happens to workers meanwhile."""

import contextlib
import itertools
import math
import queue
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic

from multigpu.cluster.engine.events import Event, Listener, unheard
from multigpu.cluster.engine.journal import SYNC_EVERY, Journal
from multigpu.cluster.engine.workload import P, S, Workload
from multigpu.cluster.errors import DeviceFailed, Failure, Lost, Unfit, WorkerDied
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import Task, Workers
from multigpu.cluster.workers.worker import Outcome

WINDOW_PER_THREAD = 2  # tasks sent for each thread of the workers: one running, one waiting
LINE_PER_THREAD = 6  # chunks taken up and not yet given out, those done before their turn included
LOOK_EVERY = 1.0  # seconds between two looks at the workers
DEADLY = 3  # workers that a chunk may kill
SUSPECT = 2  # after so many it runs alone

# A late chunk is begun again elsewhere. These figures come of benchmarks/simulate_cluster.py.
RECENT = 1000  # chunks to learn from
USUAL = 0.9  # share of them whose turnaround was no longer than what is called usual
SLOWEST = 5.0  # times the usual turnaround a chunk may take,
LEAST_PATIENCE = 60.0  # and at least so many seconds;
HURRIED = 1.2  # times only where threads stand idle, or where the line behind it is long:
LONG_LINE = 4  # chunks for each thread
ATTEMPTS = 3  # under way at a time for one chunk


@dataclass(frozen=True)
class Faults:
    """What to do when things go wrong.

    cpu_fallback   whether a chunk that does not fit on its device runs on the CPU
    chunk_timeout  seconds after which a chunk is begun on another worker too; None: by what the
                   others take
    """

    cpu_fallback: bool = True
    chunk_timeout: float | None = None


@dataclass(eq=False)
class _Chunk(Generic[S, P]):
    """A span on its way. attempts: tasks under way, by number; the first to end well counts."""

    number: int
    span: S
    attempts: dict[int, Task] = field(default_factory=dict)
    began: float = 0.0  # the first of them
    deaths: int = 0
    outcome: Outcome[P] | None = None
    error: Exception | None = None

    @property
    def settled(self) -> bool:
        return self.outcome is not None or self.error is not None


def dispatch(
    workers: Workers,
    workload: Workload[S, P],
    spans: Iterable[S],
    journal: Journal | None = None,
    faults: Faults = Faults(),
    tell: Listener = unheard,
    before: Iterable[Outcome[P]] = (),
) -> Iterator[Outcome[P]]:
    """Run every span; yield the outcomes in order.

    What is run is written to the journal before it is given out; `spans` are those behind what it
    has. They are advanced only as outcomes are taken, so that neither a fast reader nor a late
    chunk lets anything pile up. Raises what a step raised, and Failure when a chunk cannot be run.

    before: outcomes to give out first, when the workers have begun; they go on meanwhile, as far
            as the line is long
    """
    with contextlib.closing(_Dispatch(workers, workload, spans, journal, faults, tell)) as run:
        yield from run.outcomes(before)


def resumed(
    journal: Journal, workload: Workload[S, P], tell: Listener = unheard
) -> Iterator[Outcome[P]]:
    """What the journal has, of the first spans, which are not run again; no worker is needed."""
    for number, part in enumerate(journal.parts()):
        workload.correct(None, part)  # it may keep account
        tell(Event("resumed", facts={"chunk": number}))
        yield Outcome(part)


class _Dispatch(Generic[S, P]):
    """One run: the line of chunks, and what comes in about them."""

    def __init__(
        self,
        workers: Workers,
        workload: Workload[S, P],
        spans: Iterable[S],
        journal: Journal | None,
        faults: Faults,
        tell: Listener,
    ) -> None:
        self._workers, self._workload, self._journal = workers, workload, journal
        self._faults, self._listener = faults, tell
        self._spans = enumerate(spans, journal.held if journal else 0)
        self._more = True  # spans
        self._line: deque[_Chunk[S, P]] = deque()
        self._under_way: dict[_Chunk[S, P], None] = {}  # the one that began first comes first
        self._again: list[_Chunk[S, P]] = []  # lost, to be submitted when the workers are there
        self._suspects: set[_Chunk[S, P]] = set()  # that workers seem to die of
        self._inbox = workers.inbox()
        self._tasks = itertools.count()
        self._present, self._threads = workers.present(), workers.threads
        self._retired: set[str] = set()
        self._looked = workers.clock()
        self._turnarounds: deque[float] = deque(maxlen=RECENT)  # seconds

    def close(self) -> None:
        for chunk in self._under_way:
            for task in chunk.attempts.values():
                task.cancel()
        self._workers.dismiss(self._workload.key)
        del self._workload  # it may hold gigabytes, and tasks that come late hold this

    # ---- the order of the input ---------------------------------------------------------------

    def outcomes(self, before: Iterable[Outcome[P]]) -> Iterator[Outcome[P]]:
        self._workers.admit(self._workload)
        self._fill()
        for earlier in before:
            yield earlier
            self._take_news()
            self._fill()
        while True:
            if self._line and self._line[0].settled:
                outcome = self._given(self._line[0])
                if outcome is not None:
                    yield outcome
            elif self._has_room():
                self._take_up()
            elif self._line or self._more:  # with no worker there is no room, either
                self._wait()
            else:
                break
        if self._journal is not None:
            self._journal.sync()  # what is made of the parts may take long

    def _given(self, chunk: _Chunk[S, P]) -> Outcome[P] | None:
        """The outcome of the first chunk in line; None where it has to be run anew."""
        if chunk.error is not None:
            raise chunk.error
        assert chunk.outcome is not None
        corrected = self._workload.correct(chunk.span, chunk.outcome.part)
        if corrected is not None:
            self._tell("corrected", chunk=chunk.number)
            chunk.span, chunk.outcome = corrected, None
            self._submit(chunk)
            return None
        if self._journal is not None:
            self._journal.append(chunk.outcome.part)
        self._line.popleft()
        return chunk.outcome

    def _has_room(self) -> bool:
        return (
            self._more
            and len(self._under_way) < self._threads * WINDOW_PER_THREAD
            and len(self._line) < self._threads * LINE_PER_THREAD
            and not self._suspects
            and not self._again
        )

    def _fill(self) -> None:
        while self._has_room():
            self._take_up()

    def _take_up(self) -> None:
        number, span = next(self._spans, (-1, None))
        if span is None:
            self._more = False
            return
        chunk: _Chunk[S, P] = _Chunk(number, span)
        self._line.append(chunk)
        self._submit(chunk)

    # ---- tasks --------------------------------------------------------------------------------

    def _submit(self, chunk: _Chunk[S, P], apart_from: Task | None = None) -> None:
        attempt = next(self._tasks)

        def report(outcome: Any, error: Exception | None) -> None:
            self._inbox.put((chunk, attempt, outcome, error))

        if not chunk.attempts:
            chunk.began = self._workers.clock()
        self._under_way[chunk] = None
        self._tell("started", chunk=chunk.number, span=self._workload.name(chunk.span))
        chunk.attempts[attempt] = self._workers.submit(
            report, worker.run_chunk, self._workload.key, self._workers.gpu, chunk.span,
            self._faults.cpu_fallback, apart_from=apart_from,
        )  # fmt: skip

    def _wait(self) -> None:
        """Take all that is reported, so that what is done is not late; look at the workers."""
        with contextlib.suppress(queue.Empty):
            self._take(*self._inbox.get(timeout=LOOK_EVERY))
            self._take_news()
        if self._workers.clock() - self._looked >= LOOK_EVERY:
            self._look()

    def _take_news(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._take(*self._inbox.get(block=False))

    def _take(
        self, chunk: _Chunk[S, P], attempt: int, outcome: Any, error: Exception | None
    ) -> None:
        if attempt not in chunk.attempts:  # another one was faster
            return
        del chunk.attempts[attempt]
        if error is None:
            self._finished(chunk, outcome)
        elif isinstance(error, Lost):
            self._lost(chunk, error)
        else:
            self._settle(chunk)
            chunk.error = error

    def _finished(self, chunk: _Chunk[S, P], outcome: Outcome[P]) -> None:
        self._turnarounds.append(self._workers.clock() - chunk.began)
        chunk.outcome = outcome
        self._settle(chunk)
        for event in outcome.events:
            self._listener(Event(event.name, event.at, {"chunk": chunk.number, **event.facts}))
        self._tell(
            "finished", chunk=chunk.number, worker=outcome.worker, device=outcome.device,
            steps=[[step.name, step.begin, step.end, step.thread] for step in outcome.steps],
        )  # fmt: skip

    def _settle(self, chunk: _Chunk[S, P]) -> None:
        for task in chunk.attempts.values():
            task.cancel()
        chunk.attempts.clear()
        self._under_way.pop(chunk, None)
        self._suspects.discard(chunk)
        self._resubmit()

    # ---- when things go wrong -----------------------------------------------------------------

    def _lost(self, chunk: _Chunk[S, P], error: Lost) -> None:
        """A task came to nothing through no fault of its span, as far as one can tell."""
        self._tell("retried", chunk=chunk.number, reason=str(error))
        if isinstance(error, DeviceFailed | Unfit):
            self._retire(error.worker, str(error))
        if isinstance(error, WorkerDied):
            alone = chunk.deaths >= SUSPECT
            chunk.deaths += error.deaths
            if chunk.deaths >= SUSPECT:
                self._suspects.add(chunk)
            if alone and chunk.deaths >= DEADLY:
                self._settle(chunk)
                name = self._workload.name(chunk.span)
                chunk.error = Failure(f"{name}: given up, {chunk.deaths} workers died of it")
                return
        if not chunk.attempts:
            del self._under_way[chunk]
            self._again.append(chunk)
        if type(error) is not Lost:  # then the scheduler is away, and it is asked with every look
            self._resubmit()

    def _retire(self, name: str, reason: str) -> None:
        if name in self._retired:
            return
        self._retired.add(name)
        self._tell("retired", worker=name, reason=reason)
        try:
            self._workers.retire(name)
        except Failure as error:
            raise Failure(f"{reason}; {error}") from error

    def _resubmit(self) -> None:
        """Lost chunks again; one that several workers died of runs when nothing else does."""
        waiting, self._again = self._again, []
        for chunk in waiting:
            if chunk in self._suspects and self._under_way:
                self._again.append(chunk)
            else:
                self._submit(chunk)

    def _look(self) -> None:
        """Who is there, and who is late; what the journal has got since the last part."""
        self._looked = self._workers.clock()
        if self._journal is not None:
            self._journal.sync(SYNC_EVERY)
        present = self._workers.present()
        for name in sorted(present - self._present):
            self._tell("joined", worker=name)
        for name in sorted(self._present - present):
            self._tell("left", worker=name)
        self._present, self._threads = present, self._workers.threads
        self._resubmit()
        if len(present) > 1:
            self._begin_late_again()

    def _begin_late_again(self) -> None:
        """Elsewhere too: the first attempt to end counts."""
        hurried, patience = self._patience()
        idle = None  # threads: asked for once, and only where it matters
        for chunk in self._under_way:
            waited, attempts = self._looked - chunk.began, len(chunk.attempts)
            if waited <= hurried:
                return
            if attempts == ATTEMPTS or waited <= hurried * attempts:
                continue
            if waited <= patience * attempts:
                idle = self._workers.idle() if idle is None else idle
                if not idle:
                    continue
                idle -= 1
            self._tell("moved", chunk=chunk.number, after=waited)
            self._submit(chunk, apart_from=list(chunk.attempts.values())[-1])

    def _patience(self) -> tuple[float, float]:
        """Seconds until a chunk is late: where a thread stands idle for it, and where none does."""
        if self._faults.chunk_timeout is not None:
            return self._faults.chunk_timeout, self._faults.chunk_timeout
        if not self._turnarounds:
            return math.inf, math.inf
        usual = sorted(self._turnarounds)[int(USUAL * len(self._turnarounds))]
        hurried = HURRIED * usual
        tasks = sum(len(chunk.attempts) for chunk in self._under_way)
        if tasks < self._threads or len(self._line) >= self._threads * LONG_LINE:
            return hurried, hurried
        return hurried, max(LEAST_PATIENCE, SLOWEST * usual)

    def _tell(self, name: str, **facts: Any) -> None:
        self._listener(Event(name, facts=facts))

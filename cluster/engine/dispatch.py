"""Turn spans into outcomes in the order of the input, whatever happens to workers meanwhile."""

import contextlib
import itertools
import math
import queue
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic

from multigpu.cluster.engine.events import Event, Listener, ignore_event
from multigpu.cluster.engine.journal import SYNC_EVERY, Journal
from multigpu.cluster.engine.workload import P, S, Series, Workload
from multigpu.cluster.errors import DeviceFailed, Failure, Lost, Unfit, WorkerDied
from multigpu.cluster.workers.threads import Task, Workers
from multigpu.cluster.workers.worker import Outcome, run_chunk

# Tasks that are sent for each thread of the workers: one runs, one waits.
WINDOW_PER_THREAD = 2
# Chunks, or series of them, that are taken up and not yet given out, for each thread; some are done
# before their turn.
LINE_PER_THREAD = 6
# Bytes of parts of series that wait for their turn; the first in line continues above it.
WAITING_BYTES = 512 << 20
LOOK_EVERY = 1.0  # seconds between two looks at the workers
DEATHS_BEFORE_FAILURE = 3  # workers that a chunk may kill
DEATHS_BEFORE_ALONE = 2  # workers that a chunk has killed when it is run alone

# A late chunk is also run on another worker. A model of up to 10,000 devices gave these figures;
# its results are in the log of benchmarks/.
RECENT = 1000  # chunks to learn from
USUAL = 0.9  # share of the chunks that take no longer than what is called the usual turnaround
SLOWEST = 5.0  # times the usual turnaround after which a chunk is late, but …
LEAST_PATIENCE = 60.0  # … not before so many seconds
HURRIED = 1.2  # times the usual turnaround, where threads stand idle or the line is long
LONG_LINE = 4  # chunks for each thread
ATTEMPTS = 3  # of one chunk at a time


@dataclass(eq=False)
class _Entry(Generic[S, P]):
    """An entry of the line: a chunk, or those of a series.

    home      the worker that has the input of a series open; empty: any
    busy      chunks in progress
    chunks    those that are taken and not given out, in order
    """

    series: Series[S, P] | None
    home: str = ""
    busy: int = 0
    chunks: "deque[_ChunkInWork[S, P]]" = field(default_factory=deque)


@dataclass(eq=False)
class _ChunkInWork(Generic[S, P]):
    """A span on its way through a worker.

    entry     the one of the line that it belongs to
    attempts  tasks in progress, by number; the first to end well counts
    began     when the first of them was submitted
    deaths    of workers that ran it
    size      bytes of the part of one of a series, while it waits
    """

    number: int
    span: S
    entry: _Entry[S, P]
    attempts: dict[int, Task] = field(default_factory=dict)
    began: float = 0.0
    deaths: int = 0
    size: int = 0
    outcome: Outcome[P] | None = None
    error: Exception | None = None

    @property
    def settled(self) -> bool:
        return self.outcome is not None or self.error is not None


def dispatch(
    workers: Workers,
    workload: Workload[S, P],
    spans: Iterable[S | Series[S, P]],
    *,
    journal: Journal | None = None,
    chunks: int | None = None,
    cpu_fallback: bool = True,
    chunk_timeout: float | None = None,
    tell: Listener = ignore_event,
) -> Iterator[Outcome[P]]:
    """Run every span; yield the outcomes in order.

    Spans are taken only as outcomes are taken, so that neither a fast reader nor a late chunk lets
    anything pile up. Raises what a step raised, and Failure when a chunk cannot be run.

    spans          those that follow the ones in the journal
    journal        gets every part before it is given out
    chunks         their number, with those in the journal; None: unknown
    cpu_fallback   whether a chunk that does not fit on its device runs on the CPU
    chunk_timeout  seconds after which a chunk is run on another worker too; None: depends on what
                   the others take
    tell           called with every event
    """
    run = _Dispatch(workers, workload, spans, journal, chunks, cpu_fallback, chunk_timeout, tell)
    with contextlib.closing(run):
        yield from run.outcomes()


def journal_outcomes(
    journal: Journal, workload: Workload[S, P], tell: Listener = ignore_event
) -> Iterator[Outcome[P]]:
    """Yield what the journal has of the first spans, for which no worker is needed."""
    for number, part in enumerate(journal.parts()):
        workload.correct(None, part)  # which may keep count of parts
        tell(Event("resumed", details={"chunk": number}))
        yield Outcome(part)


class _Dispatch(Generic[S, P]):
    """A run: the line of chunks, and the reports about them."""

    def __init__(
        self,
        workers: Workers,
        workload: Workload[S, P],
        spans: Iterable[S | Series[S, P]],
        journal: Journal | None,
        chunks: int | None,
        cpu_fallback: bool,
        chunk_timeout: float | None,
        tell: Listener,
    ) -> None:
        self._workers, self._workload, self._journal = workers, workload, journal
        self._cpu_fallback, self._chunk_timeout, self._listener = cpu_fallback, chunk_timeout, tell
        held = journal.held if journal else 0
        self._spans = iter(spans)
        self._chunk_numbers = itertools.count(held)
        self._left = math.inf if chunks is None else chunks - held  # spans to be taken
        self._has_more_spans = True
        self._line: deque[_Entry[S, P]] = deque()
        self._open: list[_Entry[S, P]] = []  # of the line: those that have more
        self._waiting_bytes = 0  # of parts of series
        self._in_progress: dict[_ChunkInWork[S, P], None] = {}  # in the order begun
        self._lost_chunks: list[_ChunkInWork[S, P]] = []  # to be submitted again
        self._suspects: set[_ChunkInWork[S, P]] = set()  # workers seem to die of them
        self._inbox = workers.inbox()
        self._task_numbers = itertools.count()
        self._present, self._threads = workers.present(), workers.threads
        self._retired: set[str] = set()
        self._looked_at = workers.clock()
        self._turnarounds: deque[float] = deque(maxlen=RECENT)  # seconds

    def close(self) -> None:
        """Withdraw the tasks in progress, and forget the job."""
        for chunk in self._in_progress:
            for task in chunk.attempts.values():
                task.cancel()
        self._workers.dismiss(self._workload.key)
        del self._workload  # it may hold gigabytes, and tasks that come late hold this

    # ---- the order of the input ---------------------------------------------------------------

    def outcomes(self) -> Iterator[Outcome[P]]:
        self._workers.admit(self._workload)
        while True:
            first = self._first_chunk()
            if first is not None and first.settled:
                outcome = self._outcome_of(first)
                if outcome is not None:
                    yield outcome
            elif self._has_room():
                self._take_span()
            elif self._line or self._has_more_spans:  # with no worker there is no room, either
                self._wait()
            else:
                break
        if self._journal is not None:
            self._journal.sync()  # what is made of the parts may take long

    def _first_chunk(self) -> _ChunkInWork[S, P] | None:
        """Return the first chunk in line; None where none was taken yet."""
        while self._line and not self._line[0].chunks and self._line[0] not in self._open:
            self._line.popleft()
        chunks = self._line[0].chunks if self._line else ()
        return chunks[0] if chunks else None

    def _outcome_of(self, chunk: _ChunkInWork[S, P]) -> Outcome[P] | None:
        """Return the outcome of the first chunk in line; None where it has to be run again."""
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
        chunk.entry.chunks.popleft()
        self._waiting_bytes -= chunk.size
        return chunk.outcome

    def _has_room(self) -> bool:
        return (
            len(self._in_progress) < self._threads * WINDOW_PER_THREAD
            and not self._suspects
            and not self._lost_chunks
            and (self._may_take_entry() or self._open_entry() is not None)
        )

    def _may_take_entry(self) -> bool:
        """Whether what follows the line may be taken; each thread may have a series of its own."""
        return (
            self._has_more_spans
            and len(self._line) < self._threads * LINE_PER_THREAD
            and self._waiting_bytes < WAITING_BYTES
            and len(self._open) < self._threads
        )

    def _open_entry(self) -> _Entry[S, P] | None:
        """Return the series in line with fewest chunks in progress, of those that may continue."""
        is_full = self._waiting_bytes >= WAITING_BYTES
        most = self._threads * LINE_PER_THREAD
        busiest = self._workers.lanes * WINDOW_PER_THREAD  # all are on one worker
        entries = [
            entry
            for entry in self._open
            if entry.busy < busiest
            and (len(entry.chunks) < most if entry is self._line[0] else not is_full)
        ]
        return min(entries, key=attrgetter("busy"), default=None)

    def _take_span(self) -> None:
        """Take a span of a series that has none in progress, else a new entry, else of a series."""
        entry = self._open_entry()
        is_idle = entry is not None and not entry.busy
        if self._may_take_entry() and not is_idle:
            new = next(self._spans, None)
            if new is None:
                self._has_more_spans = False
                return
            series = new if isinstance(new, Series) else None
            entry = _Entry(series)
            self._line.append(entry)
            if isinstance(new, Series):
                self._open.append(entry)
            else:
                self._left -= 1
                self._begin(new, entry)
                return
        if entry is not None and entry.series is not None:
            self._begin(next(entry.series.spans), entry)

    def _begin(self, span: S, entry: _Entry[S, P]) -> None:
        chunk: _ChunkInWork[S, P] = _ChunkInWork(next(self._chunk_numbers), span, entry)
        entry.chunks.append(chunk)
        self._submit(chunk)

    # ---- tasks --------------------------------------------------------------------------------

    def _submit(self, chunk: _ChunkInWork[S, P], avoid: Task | None = None) -> None:
        attempt = next(self._task_numbers)

        def report(outcome: Any, error: Exception | None) -> None:
            self._inbox.put((chunk, attempt, outcome, error))

        if not chunk.attempts:
            chunk.began = self._workers.clock()
        if chunk not in self._in_progress:
            self._in_progress[chunk] = None
            chunk.entry.busy += 1
        home = self._home_of(chunk.entry, is_late=avoid is not None)
        self._tell("started", chunk=chunk.number, span=self._workload.name(chunk.span))
        arguments = (self._workload.key, self._workers.gpu, chunk.span, self._cpu_fallback)
        chunk.attempts[attempt] = self._workers.submit(
            report, run_chunk, *arguments, avoid=avoid, home=home
        )

    def _home_of(self, entry: _Entry[S, P], is_late: bool) -> str:
        """Return the worker of a series, another one where it has left or is late."""
        if entry.series is not None and (is_late or entry.home not in self._present):
            homes = Counter(other.home for other in self._open if other is not entry)
            entry.home = self._workers.home(homes, entry.home)
        return entry.home

    def _wait(self) -> None:
        """Wait for a report and take all that are there; look at the workers now and then."""
        with contextlib.suppress(queue.Empty):
            self._take(*self._inbox.get(timeout=LOOK_EVERY))
            while True:
                self._take(*self._inbox.get(block=False))
        if self._workers.clock() - self._looked_at >= LOOK_EVERY:
            self._look()

    def _take(
        self, chunk: _ChunkInWork[S, P], attempt: int, outcome: Any, error: Exception | None
    ) -> None:
        if attempt not in chunk.attempts:  # another one was faster
            return
        del chunk.attempts[attempt]
        if error is None:
            self._finish(chunk, outcome)
        elif isinstance(error, Lost):
            self._run_again(chunk, error)
        else:
            self._settle(chunk)
            chunk.error = error
            self._end_series(chunk)

    def _finish(self, chunk: _ChunkInWork[S, P], outcome: Outcome[P]) -> None:
        self._turnarounds.append(self._workers.clock() - chunk.began)
        chunk.outcome = outcome
        self._settle(chunk)
        if (series := chunk.entry.series) is not None:
            chunk.size = series.size(outcome.part)
            self._waiting_bytes += chunk.size
            if series.is_last(outcome.part):
                self._end_series(chunk)
        for event in outcome.events:
            self._listener(Event(event.name, event.at, {"chunk": chunk.number, **event.details}))
        self._tell(
            "finished",
            chunk=chunk.number,
            worker=outcome.worker,
            device=outcome.device,
            steps=[[step.name, step.begin, step.end, step.thread] for step in outcome.steps],
        )

    def _end_series(self, last: _ChunkInWork[S, P]) -> None:
        """Take no more of a series; throw away what was taken after its last chunk."""
        if last.entry in self._open:
            self._open.remove(last.entry)
        while (chunk := last.entry.chunks[-1]) is not last:
            last.entry.chunks.pop()
            self._waiting_bytes -= chunk.size
            if chunk in self._lost_chunks:
                self._lost_chunks.remove(chunk)
            self._settle(chunk)

    def _settle(self, chunk: _ChunkInWork[S, P]) -> None:
        for task in chunk.attempts.values():
            task.cancel()
        chunk.attempts.clear()
        self._leave(chunk)
        self._suspects.discard(chunk)
        self._resubmit()

    def _leave(self, chunk: _ChunkInWork[S, P]) -> None:
        if chunk in self._in_progress:
            del self._in_progress[chunk]
            chunk.entry.busy -= 1

    # ---- when things go wrong -----------------------------------------------------------------

    def _run_again(self, chunk: _ChunkInWork[S, P], error: Lost) -> None:
        """Run a chunk again whose task was lost, through no fault of its span as far as known."""
        if isinstance(error, DeviceFailed | Unfit):
            self._retire(error.worker, f"{error}")
        self._tell("retried", chunk=chunk.number, reason=f"{error}")
        if isinstance(error, WorkerDied):
            ran_alone = chunk.deaths >= DEATHS_BEFORE_ALONE
            chunk.deaths += error.deaths
            if chunk.deaths >= DEATHS_BEFORE_ALONE:
                self._suspects.add(chunk)
            if ran_alone and chunk.deaths >= DEATHS_BEFORE_FAILURE:
                self._settle(chunk)
                name = self._workload.name(chunk.span)
                chunk.error = Failure(f"{name}: {chunk.deaths} workers died while computing it")
                return
        if not chunk.attempts:
            self._leave(chunk)
            self._lost_chunks.append(chunk)
        if type(error) is not Lost:  # else the scheduler is away, and it is asked with every look
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
        """Submit lost chunks; one that several workers died of runs when nothing else does."""
        waiting, self._lost_chunks = self._lost_chunks, []
        for chunk in waiting:
            if chunk in self._suspects and self._in_progress:
                self._lost_chunks.append(chunk)
            else:
                self._submit(chunk)

    def _look(self) -> None:
        """Look which workers are there and which chunks are late; sync the journal."""
        self._looked_at = self._workers.clock()
        if self._journal is not None:
            self._journal.sync(SYNC_EVERY)
        present = self._workers.present()
        for name in sorted(present - self._present):
            self._tell("joined", worker=name)
        for name in sorted(self._present - present):
            self._tell("left", worker=name)
        self._present, self._threads = present, self._workers.threads
        self._workers.want(max(1, self._left) if self._has_more_spans else 0)
        self._resubmit()
        if len(present) > 1:
            self._move_late_chunks()

    def _move_late_chunks(self) -> None:
        """Submit late chunks to other workers, too: the first attempt to end counts."""
        hurried, patience, series_patience = self._patience()
        idle = None  # number of idle threads: asked for once, and only where it matters
        for chunk in self._in_progress:
            waited, attempts = self._looked_at - chunk.began, len(chunk.attempts)
            if waited <= hurried:
                return
            if attempts == ATTEMPTS or waited <= hurried * attempts:
                continue
            if chunk.entry.series is not None:
                if waited <= series_patience * attempts:
                    continue
            elif waited <= patience * attempts:
                idle = self._workers.idle() if idle is None else idle
                if not idle:
                    continue
                idle -= 1
            self._tell("moved", chunk=chunk.number, after=waited)
            self._submit(chunk, avoid=list(chunk.attempts.values())[-1])

    def _patience(self) -> tuple[float, float, float]:
        """Return after how many seconds a chunk is late: where a thread is idle, and where none is.

        The third is for a chunk of a series: another worker reads its input from the first byte.
        """
        if self._chunk_timeout is not None:
            return (self._chunk_timeout,) * 3
        if not self._turnarounds:
            return (math.inf,) * 3
        usual = sorted(self._turnarounds)[int(USUAL * len(self._turnarounds))]
        hurried, patience = HURRIED * usual, max(LEAST_PATIENCE, SLOWEST * usual)
        tasks = sum(len(chunk.attempts) for chunk in self._in_progress)
        if tasks < self._threads or len(self._line) >= self._threads * LONG_LINE:
            return hurried, hurried, patience
        return hurried, patience, patience

    def _tell(self, name: str, **details: Any) -> None:
        self._listener(Event(name, details=details))

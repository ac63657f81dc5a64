"""What every workload's job shares: workers and whether they are fit, journal, events, facts."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from multigpu.cluster import deploy
from multigpu.cluster.deploy import Coming, Deployment
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.engine.codec import Codec
from multigpu.cluster.engine.dispatch import Faults, dispatch, resumed
from multigpu.cluster.engine.events import Event, Listener
from multigpu.cluster.engine.journal import Journal
from multigpu.cluster.engine.plan import Capacity
from multigpu.cluster.engine.workload import P, S, Workload
from multigpu.cluster.errors import DiskFull
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import Workers
from multigpu.cluster.workers.worker import Outcome
from multigpu.errors import Failure, InputError, Unreadable, UsageError
from multigpu.formats.storage.sources import fingerprint, fingerprint_or_none
from multigpu.run import fitness
from multigpu.run.fitness import Expected, Fitness, unanswered
from multigpu.run.options import NO_LANES, Lanes, RunOptions
from multigpu.run.values import path_of

logger = logging.getLogger(__name__)

STARTING_OVER = "multigpu: starting over; --resume would have continued the interrupted run"
KEPT = "multigpu: what is finished is kept: --resume continues from there"
NO_FILE = "not a file"  # what a journal says of an input that has no fingerprint
SAID = {  # events that a user is told of, as warnings
    "on_cpu": "chunk {chunk} runs on the CPU: {reason}",
    "retried": "chunk {chunk} is run again: {reason}",
    "retired": "{worker} gets no more work: {reason}",
    "left": "worker {worker} is gone",
}


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def path_list(paths: Paths, name: str = "files") -> list[str]:
    """One path or several, as texts. Raises UsageError where there is none, or something else."""
    given: Any = paths
    if isinstance(given, str | bytes | os.PathLike) or not isinstance(given, Iterable):
        given = [given]
    found = [path_of(name, path) for path in given]
    if not found:
        raise UsageError(f"no {name} given")
    return found


def journal_path(journal: str | os.PathLike[str] | None) -> Path | None:
    """None where there is to be no journal."""
    return None if journal in (None, "") else Path(path_of("journal", journal))


@dataclass
class JobFacts:
    """What a run has done so far. resumed: chunks that an earlier run had finished."""

    chunks: int = 0
    resumed: int = 0
    seconds: dict[str, float] = field(default_factory=dict)  # of each step, over all threads
    workers: dict[str, int] = field(default_factory=dict)  # chunks of each
    events: dict[str, int] = field(default_factory=dict)  # how often each happened

    def add(self, outcome: Outcome[Any]) -> None:
        self.chunks += 1
        if not outcome.worker:
            self.resumed += 1
            return
        name = f"{outcome.worker}:{outcome.device}"
        self.workers[name] = self.workers.get(name, 0) + 1
        for step in outcome.steps:
            self.seconds[step.name] = self.seconds.get(step.name, 0.0) + step.end - step.begin


@dataclass(frozen=True)
class Crew:
    """Workers for a job; those elsewhere have been looked at.

    capacity  what they can compute with
    coming    gives them: those of this machine may still be on their way
    fitness   what each of those elsewhere said
    """

    capacity: Capacity
    coming: Callable[[], Workers]
    fitness: dict[str, Fitness] = field(default_factory=dict)
    expected: Expected | None = None  # of those that join later; None: nobody can

    @cached_property
    def workers(self) -> Workers:
        """Waits for them. Raises what went wrong."""
        return self.coming()


class Job:
    """Workers for a workload, and a run of it that can be stopped and resumed.

    lanes    chunks in hand on each GPU, where --threads does not say how many
    client   a `dask.distributed.Client` to use instead of what `run` says
    coming   the workers, where they were started before (`multigpu.cluster.deploy.starting`)
    journal  where a run keeps what it has finished; None: nowhere
    """

    def __init__(
        self,
        run: RunOptions,
        lanes: Lanes = NO_LANES,
        client: Any = None,
        devices: tuple[Device, ...] | None = None,
        coming: Coming | None = None,
        journal: Path | None = None,
    ) -> None:
        self.run, self.lanes = run, lanes
        self._client, self._coming, self._journal_path = client, coming, journal
        if devices is None:
            devices = () if client else run.devices()
        self.devices = devices
        self.facts = JobFacts()
        self.listeners: list[Listener] = [self._count]
        self._journal: Journal | None = None
        self._taken = False
        self.published = False  # the output has its name: what goes wrong later is no input

    # ---- workers ------------------------------------------------------------------------------

    @property
    def deployment(self) -> Deployment:
        return deployment(self.run, self.devices, self.lanes)

    @property
    def in_process(self) -> bool:
        """Whether threads of this process do the work."""
        return self._client is None and self.deployment.in_process

    @property
    def uses_own_threads(self) -> bool:
        """Whether threads of this process are among the workers, or all of them."""
        return self._client is None and self.deployment.own_threads > 0

    @property
    def resuming(self) -> bool:
        """Whether a run before this one has left something to go on with."""
        return self._journal is not None and self._journal.continued

    @property
    def keeps_journal(self) -> bool:
        """Whether a run that is stopped can be continued."""
        return self._journal_path is not None

    @property
    def remote(self) -> bool:
        """Whether workers run elsewhere, and may see other files than this process."""
        return self._client is not None or self.run.elsewhere

    @property
    def chunks(self) -> int | None:
        """How many there are going to be, where that is known."""
        return None

    def free_here(self) -> int:
        """Bytes that are free on the device of this machine that has least.

        With a head start two processes share one for a while.
        """
        if self.devices:
            shares = 2 if self.deployment.head_start else 1
            return min(device.free_bytes for device in self.devices) // shares
        return worker.free_bytes(None)

    @property
    def capacity(self) -> Capacity:
        """That of this machine."""
        here = self.deployment
        threads = here.lanes * here.workers
        gpu, own = bool(self.devices), here.own_threads
        return Capacity(self.free_here(), threads, here.lanes, gpu, own)

    def crew(self, stack: ExitStack, inputs: Sequence[str], folders: Sequence[str] = ()) -> Crew:
        """The workers, all fit for a job with these inputs, which have absolute paths.

        Raises Failure that names every worker that is not, with all that is wrong with it.
        """
        if not self.remote:
            return Crew(self.capacity, partial(self._started, stack))
        workers = self._workers(stack)
        if self.run.gpus == "none":
            workers.gpu = None
        wanted = fitness.expected(inputs, folders)
        found = _examined(workers, wanted)
        if workers.gpu is not None and not any(each.gpu for each in found.values()):
            if self.run.gpus == "all":
                raise UsageError("--gpus all: no worker has a GPU that can be used")
            workers.gpu = None
        if workers.gpu is not None and not self.run.mixed:
            wanted = replace(wanted, gpu=True)
            found = _examined(workers, wanted)
        problems = [f"worker {n}: {'; '.join(f.problems)}" for n, f in found.items() if f.problems]
        if problems:
            raise Failure("\n  ".join(["not all workers can take part:", *problems]))
        free = min(each.free_bytes for each in found.values())
        capacity = Capacity(free, workers.threads, workers.lanes, workers.gpu is not None)
        return Crew(capacity, lambda: workers, found, wanted)

    def _workers(self, stack: ExitStack) -> Workers:
        """Those of a running cluster."""
        if self._client is not None:
            return deploy.of_client(self._client, worker.OWN, self.run.worker_timeout)
        return self._started(stack)

    def _started(self, stack: ExitStack) -> Workers:
        coming = self._coming or stack.enter_context(deploy.starting(self.deployment))
        return coming(self._left)

    def _left(self) -> int | None:
        """About how many chunks are not finished, where that is known."""
        return None if self.chunks is None else self.chunks - self.facts.chunks

    # ---- running ------------------------------------------------------------------------------

    def open_journal(
        self, about: dict[str, str], plan: dict[str, Any], codec: Codec
    ) -> dict[str, Any]:
        """Open the journal, if there is to be one; the plan that holds. See `Journal`."""
        if self._journal_path is None:
            return plan
        self._journal = Journal(self._journal_path, about, plan, codec, self.run.resume)
        if self._journal.thrown_away:
            logger.warning(STARTING_OVER)
        return self._journal.plan

    def skip_finished(self, spans: Iterator[S]) -> Iterator[S]:
        """Without those that a run before this one has finished."""
        for _ in range(self._journal.held if self._journal else 0):
            if next(spans, None) is None:
                raise Failure("the journal holds more than the input")
        return spans

    def last_finished(self) -> Any | None:
        """The last part that a run before this one has finished, if any."""
        return self._journal.last() if self._journal else None

    def run_spans(
        self, crew: Crew, workload: Workload[S, P], spans: Iterator[S], **plan: Any
    ) -> Iterator[Outcome[P]]:
        """The parts in order, those of the journal first, for which no worker is needed.

        spans: what is `left`
        plan: facts to be told of it
        """
        for outcome in self._outcomes(crew, workload, spans, plan):
            self.facts.add(outcome)
            yield outcome
        if self._coming is not None:
            self._coming.release()

    def _outcomes(
        self, crew: Crew, workload: Workload[S, P], spans: Iterator[S], plan: dict[str, Any]
    ) -> Iterator[Outcome[P]]:
        """Workers at hand have begun with what is left before the journal is read."""
        journal = self._journal
        before: Iterator[Outcome[P]] = iter(())
        if journal is not None:
            before = resumed(journal, workload, self.emit)
            if not self.uses_own_threads:  # they may come meanwhile
                yield from before
        self._planned(crew.workers, **plan)
        faults = Faults(self.run.cpu_fallback, self.run.chunk_timeout)
        yield from dispatch(crew.workers, workload, spans, journal, faults, self.emit, before)

    def _planned(self, workers: Workers, **plan: Any) -> None:
        """Tell of the plan."""
        present = sorted(workers.present())  # which may change the threads
        facts = {"chunks": self.chunks, "threads": workers.threads, **plan}
        self.emit(Event("planned", facts={**facts, "workers": present}))

    def emit(self, event: Event) -> None:
        """Something happened."""
        for listener in self.listeners:
            listener(event)

    def _count(self, event: Event) -> None:
        self.facts.events[event.name] = self.facts.events.get(event.name, 0) + 1
        if event.name in SAID:
            logger.warning("multigpu: %s", SAID[event.name].format_map(event.facts))

    def take_once(self, results: str, function: str) -> None:
        """Raises UsageError the second time: results are computed as they are taken."""
        if self._taken:
            again = f"keep them, or call {function} once more"
            raise UsageError(f"the {results} were taken already, which is possible once: {again}")
        self._taken = True

    @contextmanager
    def keep_journal(self) -> Iterator[None]:
        """Around all that makes the output: the journal stays where a run can go on with it.

        With a wrong input or option none can: when it is mended, it is another one. An input that
        cannot be read may be the same later.
        """
        try:
            yield
        except BaseException as error:
            passing = isinstance(error, DiskFull | Unreadable)
            wrong = isinstance(error, UsageError) and not passing
            self._end_journal(keep=self.published or not wrong)
            raise
        self._end_journal(keep=False)

    def _end_journal(self, keep: bool) -> None:
        journal = self._journal
        if journal is None:
            return
        if not (keep and (journal.held or journal.continued)):
            journal.remove()
            return
        there = journal.is_there
        with suppress(Failure):  # what ended the run is what is told
            journal.close()
            if there:
                logger.warning(KEPT)


def deployment(run: RunOptions, devices: tuple[Device, ...], lanes: Lanes) -> Deployment:
    """Where a job with these options runs."""
    cores = len(os.sched_getaffinity(0))
    usual = min(lanes.each(len(devices)), max(2, cores)) if devices else cores
    threads = run.threads or usual
    return Deployment(
        devices,
        threads,
        run.processes,
        lanes.here if len(devices) > 1 and not run.processes else 0,
        run.scheduler,
        run.scheduler_file,
        run.connect_timeout,
        run.worker_timeout,
        run.cpu_fallback,
        run.dashboard,
    )


def _examined(workers: Workers, wanted: Expected) -> dict[str, Fitness]:
    """What each worker says; one that cannot even be asked is not fit."""
    said = workers.everywhere(fitness.examine, wanted, workers.gpu)
    return {
        name: answer if isinstance(answer, Fitness) else unanswered(answer)
        for name, answer in said.items()
    }


def describe_inputs(paths: Sequence[str]) -> dict[str, str]:
    """What a journal says of input files, so that a changed one is noticed."""
    return {f"input {path}": str(fingerprint_or_none(path) or NO_FILE) for path in paths}


def check_unchanged(about: dict[str, str], paths: Sequence[str]) -> None:
    """Raises InputError for a file that was written to since `about` was made.

    One that cannot be read now is Unreadable: it may be the same later.
    """
    for path in paths:
        before = about[f"input {path}"]
        if before != NO_FILE and _told(path) != before:
            raise InputError(path, "was changed while it was read")


def _told(path: str) -> str:
    """What a journal says of an input. Raises Unreadable."""
    try:
        return str(fingerprint(path))
    except Unreadable:
        raise
    except InputError:  # a directory or a pipe has taken its place
        return NO_FILE

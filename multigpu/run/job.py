"""Job of any workload: its workers and their fitness, its journal, its events and statistics."""

import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from multigpu.cluster.deploy.deployment import Deployment, threads_or_processes
from multigpu.cluster.deploy.start import PendingWorkers, start_workers, workers_of_client
from multigpu.cluster.devices import memory
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.engine.dispatch import dispatch, journal_outcomes
from multigpu.cluster.engine.events import Event, Listener
from multigpu.cluster.engine.journal import Codec, Journal
from multigpu.cluster.engine.plan import Capacity, least_free
from multigpu.cluster.engine.workload import P, S, Series, Workload
from multigpu.cluster.errors import DiskFull
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.threads import Workers
from multigpu.cluster.workers.worker import Outcome
from multigpu.errors import (
    Failure,
    InputError,
    TooLittleMemory,
    Unreadable,
    UsageError,
    option,
    spelled,
)
from multigpu.formats.storage.fingerprints import digest, fingerprint, fingerprint_or_none
from multigpu.formats.storage.stored_streams import is_remote
from multigpu.run import fitness
from multigpu.run.fitness import Expected, Fitness
from multigpu.run.options import NO_LANES, GpuLanes, RunOptions

logger = logging.getLogger(__name__)

STARTING_OVER = (
    f"multigpu: starting over; {option('resume')} would have continued the interrupted run"
)
KEPT = f"multigpu: finished chunks are kept: {option('resume')} continues from there"
NOT_KEPT = (
    "multigpu: no journal is kept, so this run cannot be resumed: %s could not be compared with"
    " what it was (it is a pipe, or its server sends neither ETag nor Last-Modified)"
)
INPUT = "input "  # how a journal's entries of inputs begin; the path follows
NO_FILE = "not a file"  # what a journal says of an input that has no fingerprint
NUMBERS = re.compile(r"[0-9,]+")
FILES_AT_A_TIME = 8  # of which fingerprints are made
WARNINGS = {  # of events that concern the user
    "on_cpu": "chunk {chunk} runs on the CPU: {reason}",
    "retried": "chunk {chunk} is run again: {reason}",
    "retired": "{worker} gets no more work: {reason}",
    "left": "worker {worker} has left",
}


@dataclass
class JobStats:
    """Progress of a run.

    chunks   finished chunks
    resumed  how many of these an earlier run had finished
    seconds  time of each step, summed over all threads
    workers  chunks of each worker and device
    events   how often each event happened
    """

    chunks: int = 0
    resumed: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    workers: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome[Any]) -> None:
        self.chunks += 1
        if not outcome.worker:
            self.resumed += 1
            return
        self.workers[f"{outcome.worker}:{outcome.device}"] += 1
        for step in outcome.steps:
            self.seconds[step.name] += step.end - step.begin


@dataclass(frozen=True)
class Crew:
    """Workers of a job; those of a scheduler have been examined.

    capacity  threads and memory that they compute with
    workers   waits for the workers, as those of this machine may still be starting
    fitness   answer of each worker of a scheduler
    expected  requirements for workers that join later; None: none can
    """

    capacity: Capacity
    workers: Callable[[], Workers]
    fitness: dict[str, Fitness] = field(default_factory=dict)
    expected: Expected | None = None


class Job:
    """Run of a workload on its workers, which can be stopped and resumed.

    run      where and how it runs
    lanes    chunks in progress on each GPU, unless --threads gives their number
    client   a `dask.distributed.Client` to use instead of the workers that `run` asks for
    devices  GPUs of this machine; None: those of `coming`, else those that `run` asks for
    coming   the workers, if they were started before (see `start_workers`)
    journal  file that keeps finished chunks; None: no file
    """

    def __init__(
        self,
        run: RunOptions,
        lanes: GpuLanes = NO_LANES,
        client: Any = None,
        devices: tuple[Device, ...] | None = None,
        coming: PendingWorkers | None = None,
        journal: Path | None = None,
    ) -> None:
        self.run = run
        self._client, self._coming, self._journal_path = client, coming, journal
        if devices is None and coming:
            devices = coming.devices
        elif devices is None:
            devices = () if client else run.devices()
        self.deployment = deployment(run, devices, lanes)  # workers that this job has or gets
        self.devices = self.deployment.devices  # those that are used
        self.stats = JobStats()
        self.listeners: list[Listener] = [self._count]
        self._journal: Journal | None = None
        self._taken = False
        self._said: set[str] = set()  # reasons of warnings
        # Once the output has its name, no error is one of the input.
        self.published = False

    # ---- workers ------------------------------------------------------------------------------

    @property
    def in_process(self) -> bool:
        """Return whether threads of this process do the work."""
        return self._client is None and self.deployment.in_process

    @property
    def resuming(self) -> bool:
        """Return whether this run continues an earlier one."""
        return self._journal is not None and self._journal.continued

    @property
    def keeps_journal(self) -> bool:
        """Return whether the run can be continued after it was stopped."""
        return self._journal_path is not None

    @property
    def remote(self) -> bool:
        """Return whether workers run elsewhere, and may see other files than this process."""
        return self._client is not None or self.run.remote

    @property
    def chunks(self) -> int | None:
        """Return the number of chunks, or None where it is not known in advance."""
        return None

    @property
    def capacity(self) -> Capacity:
        """Return the threads and the memory of this machine."""
        here = self.deployment
        # CUDA itself takes some; devices of unknown size share their memory with the CPU.
        known = [device for device in self.devices if device.total_bytes]
        free = [max(0, device.free_bytes - memory.CONTEXT_BYTES) for device in known]
        return Capacity(
            free=least_free(free or [memory.free_bytes(None)]),
            threads=here.lanes * here.workers,
            lanes=here.lanes,
            gpu=bool(self.devices),
            in_process=here.in_process,
        )

    def fit(self, crew: Crew | None, plan: Callable[[Capacity], P]) -> P:
        """Return the plan for a crew, or this machine, or its CPUs. Raises TooLittleMemory."""
        here = crew.capacity if crew else self.capacity
        try:
            return plan(here)
        except TooLittleMemory as error:
            if not (here.gpu and self.run.cpu_fallback):
                raise
            here = _on_cpus(here, error)
        if crew:
            crew.workers().gpu = None
        return plan(here)

    def crew(self, stack: ExitStack, inputs: Sequence[str], folders: Sequence[str] = ()) -> Crew:
        """Return the workers, fit for inputs (absolute paths). Raises Failure that names others."""
        if self._client is None:
            here = self.capacity
            coming = self._coming or stack.enter_context(start_workers(self.deployment))
            if not self.remote:
                if self.devices and (problem := memory.cupy_problem()):
                    if self.run.gpus != "auto":
                        raise UsageError(f"GPUs cannot be used: {problem}")
                    coming.wait().gpu = None
                    here = _on_cpus(here, problem)
                return Crew(here, coming.wait)
            workers = coming.wait()
        else:
            workers = workers_of_client(self._client, worker.OWN, self.run.worker_timeout)
        if self.run.gpus == "none":
            workers.gpu = None
        wanted = fitness.compare_copies(workers, fitness.expected(inputs, folders))
        found = _examined(workers, wanted)
        if workers.gpu is not None and not any(each.gpu for each in found.values()):
            if self.run.gpus == "all":
                raise UsageError(f"{option('gpus')} all: no worker has a GPU that can be used")
            workers.gpu = None
        if workers.gpu is not None:
            wanted = replace(wanted, gpu=True)
            found = _examined(workers, wanted)
        problems = [f"worker {n}: {'; '.join(f.problems)}" for n, f in found.items() if f.problems]
        if problems:
            raise Failure("\n  ".join(["not all workers can take part:", *problems]))
        free = least_free([each.free_bytes for each in found.values()])
        capacity = Capacity(free, workers.threads, workers.lanes, workers.gpu is not None)
        return Crew(capacity, lambda: workers, found, wanted)

    # ---- running ------------------------------------------------------------------------------

    def open_journal(
        self, about: dict[str, str], plan: dict[str, Any], codec: Codec
    ) -> dict[str, Any]:
        """Return the plan that holds; open the journal, unless an input cannot be compared."""
        if self._journal_path is None:
            return plan
        if unknown := [name for name, state in about.items() if state == NO_FILE]:
            self._journal_path = None
            logger.warning(NOT_KEPT, unknown[0].removeprefix(INPUT))
            return plan
        self._journal = Journal(
            self._journal_path, about, plan, codec=codec, resume=self.run.resume, stands=self.stands
        )
        if self._journal.thrown_away:
            logger.warning(spelled(STARTING_OVER))
        return self._journal.plan

    def stands(self, changed: Sequence[str], part: Any) -> bool:
        """Return whether a part of an earlier run is right although these entries have changed."""
        del changed, part
        return False

    def may_be_corrected(self, error: InputError) -> bool:
        """Return whether parts before an input with an error stand, once it is corrected."""
        del error
        return False

    def skip_finished(self, spans: Iterator[S]) -> Iterator[S]:
        """Return spans that no earlier run has finished. Raises Failure for too few of them."""
        for _ in range(self._journal.held if self._journal else 0):
            if next(spans, None) is None:
                raise Failure(
                    f"the journal has more chunks than the input: start over, without"
                    f" {option('resume')}"
                )
        return spans

    def last_finished(self) -> Any:
        """Return the last part that an earlier run has finished; None where none has."""
        return self._journal.last_part() if self._journal else None

    def run_spans(
        self, crew: Crew, workload: Workload[S, P], spans: Iterator[S | Series[S, P]], **plan: Any
    ) -> Iterator[Outcome[P]]:
        """Yield the parts in order, first those of the journal, for which no worker is needed.

        spans: those that no earlier run has finished
        plan: details of the event "planned"
        """
        if self._journal is not None:  # worker processes may start meanwhile
            for outcome in journal_outcomes(self._journal, workload, self.emit):
                self.stats.add(outcome)
                yield outcome
        workers = crew.workers()
        present = sorted(workers.present())  # may change the number of threads
        plan = {"chunks": self.chunks, "threads": workers.threads, **plan, "workers": present}
        self.emit(Event("planned", details=plan))
        run = self.run
        options: dict[str, Any] = {
            "cpu_fallback": run.cpu_fallback, "chunk_timeout": run.chunk_timeout,
            "journal": self._journal, "chunks": self.chunks, "tell": self.emit,
        }  # fmt: skip
        for outcome in dispatch(workers, workload, spans, **options):
            self.stats.add(outcome)
            yield outcome

    def emit(self, event: Event) -> None:
        """Tell all listeners what happened; options in its texts are spelled here."""
        texts = {name: spelled(x) for name, x in event.details.items() if isinstance(x, str)}
        event = replace(event, details={**event.details, **texts})
        for listener in self.listeners:
            listener(event)

    def _count(self, event: Event) -> None:
        self.stats.events[event.name] += 1
        if event.name not in WARNINGS:
            return
        # Every chunk, and every lane of a device, may meet the same problem.
        reason = str(event.details.get("reason", event.details))
        reason = NUMBERS.sub("", reason) if event.name == "on_cpu" else reason
        if reason not in self._said:
            self._said.add(reason)
            logger.warning("multigpu: %s", WARNINGS[event.name].format_map(event.details))

    def take_once(self, results: str, function: str) -> None:
        """Raise UsageError the second time: results are computed as they are taken."""
        if self._taken:
            again = f"keep them, or call {function} once more"
            raise UsageError(f"the {results} were read already, which works once: {again}")
        self._taken = True

    @contextmanager
    def keep_journal(self) -> Iterator[None]:
        """Run the block that makes the output; keep the journal if another run can continue it.

        After an error of an option none can, nor after one of an input: once corrected, it is
        another input, unless parts before it stand. One that cannot be read may be the same later.
        """
        try:
            yield
        except BaseException as error:
            passing = isinstance(error, DiskFull | Unreadable)
            passing |= isinstance(error, InputError) and self.may_be_corrected(error)
            wrong = isinstance(error, UsageError) and not passing
            self._end_journal(keep=self.published or not wrong)
            raise
        self._end_journal(keep=False)

    def _end_journal(self, keep: bool) -> None:
        journal = self._journal
        if journal is None:
            return
        if not (keep and journal.held):
            journal.remove()
            return
        there = journal.is_there
        with suppress(Failure):  # the error that ended the run is the one to report
            journal.close()
            if there:
                logger.warning(spelled(KEPT))


def deployment(run: RunOptions, devices: tuple[Device, ...], lanes: GpuLanes) -> Deployment:
    """Return the workers of a job with these options; see `threads_or_processes`."""
    processes = 0
    if not run.remote:
        devices, processes = threads_or_processes(devices, run.workers, lanes.estimate)
    cores = len(os.sched_getaffinity(0))
    usual = min(lanes.each(len(devices)), max(2, cores)) if devices else cores
    threads = run.threads or usual
    return Deployment(
        devices=devices,
        threads=threads,
        processes=processes,
        scheduler=run.scheduler,
        scheduler_file=None if run.scheduler_file is None else str(run.scheduler_file),
        connect_timeout=run.connect_timeout,
        worker_timeout=run.worker_timeout,
        cpu_fallback=run.cpu_fallback,
    )


def _on_cpus(here: Capacity, why: object) -> Capacity:
    """Return the capacity without GPUs; print why they are not used."""
    logger.warning("multigpu: using the CPU, because %s", spelled(f"{why}"))
    return replace(here, free=memory.free_bytes(None), gpu=False)


def _examined(workers: Workers, wanted: Expected) -> dict[str, Fitness]:
    """Return the fitness of each worker; one that cannot be asked is unfit."""
    found = workers.everywhere(fitness.examine, wanted, workers.gpu)
    for name, answer in found.items():
        if not isinstance(answer, Fitness):
            problem = f"cannot be asked; is the same multigpu installed there? ({answer})"
            found[name] = Fitness((problem,), gpu=False, free_bytes=0)
    return found


def describe_inputs(paths: Sequence[str]) -> dict[str, str]:
    """Return entries for the journal by which other or changed inputs are noticed."""
    with ThreadPoolExecutor(FILES_AT_A_TIME) as pool:  # hashing does not hold the interpreter
        found = pool.map(fingerprint_or_none, paths)
        states = {f"{INPUT}{p}": str(one or NO_FILE) for p, one in zip(paths, found, strict=True)}
    return {**states, "inputs in this order": f"{len(paths):,}, names {digest(list(paths))}"}


def check_unchanged(about: dict[str, str], paths: Sequence[str]) -> None:
    """Raise InputError for a file that was written to since `about` was made.

    Raises Unreadable for one that cannot be read now: it may be the same later. A URL need not be
    there any more, as it was read to its end.
    """
    known = [path for path in paths if about[f"{INPUT}{path}"] != NO_FILE]
    with ThreadPoolExecutor(FILES_AT_A_TIME) as pool:
        for path, now in zip(known, pool.map(_fingerprint_text, known), strict=True):
            if now not in (None, about[f"{INPUT}{path}"]):
                raise InputError(path, "was changed while it was read")


def _fingerprint_text(path: str) -> str | None:
    """Return the journal's entry of an input; None for a URL that is away. Raises Unreadable."""
    try:
        return str(fingerprint(path))
    except Unreadable:
        if is_remote(path):
            return None
        raise
    except InputError:  # a directory or a pipe has taken its place
        return NO_FILE

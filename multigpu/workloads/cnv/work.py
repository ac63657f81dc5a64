"""Copy numbers as a workload: a chromosome's counts in, its calls out.

A span is a chromosome, which passes through a list of stages. Its counts go to the device once, and
the first stages (normalize, model, segment) run there; segments come back and, where they are
wanted, matrices. A chromosome that is too large comes in pieces: spans of regions for the model,
samples for the segmentation. The last stage, the calls, runs on the host, while the device is at
other chromosomes.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.events import step
from multigpu.cluster.engine.workload import Place, Session
from multigpu.errors import UsageError
from multigpu.kernels.cnmops.types import ModelError
from multigpu.kernels.segmentation.types import TrackError
from multigpu.run.fitness import Expected, require
from multigpu.workloads.cnv.options import CnvOptions, KeptResults
from multigpu.workloads.cnv.plan import CnvSpan
from multigpu.workloads.cnv.records import CnvPart
from multigpu.workloads.cnv.stages.backends import KernelBackend, open_backend
from multigpu.workloads.cnv.stages.call import Call
from multigpu.workloads.cnv.stages.chromosome import Chromosome, Columns, NotComparable, Stage
from multigpu.workloads.cnv.stages.cnmops import RunModel, Segment
from multigpu.workloads.cnv.stages.counts_source import CountsSource
from multigpu.workloads.cnv.stages.hmm import ExpectCounts, FindPaths, with_common_regions
from multigpu.workloads.cnv.stages.normalize import Normalize, zero_fractions


@dataclass(eq=False, kw_only=True)
class CnvWorkload:
    """Everything a worker needs to know of a copy-number job."""

    key: str
    options: CnvOptions
    counts: CountsSource  # of the cases and then the controls
    columns: Columns  # what is known of these
    regions: int  # number of all regions
    is_segmented: bool  # whether these are enough for a segmentation
    kept: KeptResults  # results to hand back besides the calls
    threads: int  # of the CPU, for the kernels of a worker
    chunk_bytes: int  # of counts that come to a device at a time, at most
    memory_fraction: float  # share of a device's free memory to use
    expected: Expected | None  # what a worker in another process must have

    def open(self, place: Place) -> "CnvSession":
        """Set up on a device. Raises Unfit where the worker lacks something."""
        require(self.expected, place)
        budget = int(place.free_bytes * self.memory_fraction)
        return CnvSession(self, open_backend(place, self.threads), budget)

    def name(self, span: CnvSpan) -> str:
        return span.name

    def correct(self, span: CnvSpan | None, part: CnvPart) -> None:
        """Return None: spans are exact."""


class CnvSession(Session[CnvSpan, CnvPart]):
    """The stages on a device of a worker; a few chromosomes at a time are on the device."""

    def __init__(self, workload: CnvWorkload, backend: KernelBackend, budget: int) -> None:
        self.workload, self.options, self.backend = workload, workload.options, backend
        self.budget, kept = budget, workload.kept
        drawn = ("sini",) if kept.track_step else ()
        self.fetched = tuple(dict.fromkeys((*kept.matrices, *drawn)))
        self.on_device: tuple[Stage, ...] = (Normalize(self.options, backend), *self._method())
        self.on_host: tuple[Stage, ...] = (Call(self.options, kept, workload.threads),)
        self._device = threading.Semaphore(backend.at_once)
        self._thread = threading.local()

    def _method(self) -> tuple[Stage, Stage]:
        """Return the stages that tell how samples differ from usual, and where."""
        options, backend = self.options, self.backend
        if options.is_hmm:
            regions = self.workload.regions
            return ExpectCounts(options, backend), FindPaths(options, backend, regions)
        segment = Segment(options, backend, self.workload.threads, self.workload.is_segmented)
        return RunModel(options, backend, self.fetched), segment

    def load(self, span: CnvSpan) -> Chromosome:
        """Return the chromosome's counts; no copy where they lie in this process."""
        counts, start, end = self.workload.counts.rows(span.first, span.stop, self._room)
        every, usual = self.workload.columns, self.options.usual_copies
        chromosome = Chromosome.load(span, counts, start, end, every, usual)
        if chromosome.counts.size and self.options.norm == 1 and self.options.model != "single":
            counts = zero_fractions(chromosome.counts, self.options, span.ploidy)
            chromosome = replace(chromosome, counts=counts)
        return with_common_regions(chromosome) if self.options.is_hmm else chromosome

    def _room(self, size: int) -> NDArray[np.uint8]:
        """Return memory for the counts of this thread's chromosome, reused for its next one."""
        thread = self._thread
        if not hasattr(thread, "room") or len(thread.room) < size:
            thread.room = self.backend.allocate(size)
        return np.asarray(thread.room[:size])

    def compute(self, loaded: Chromosome) -> Chromosome:
        """Run the stages on the device. Raises UsageError for data at which R stops, too."""
        if not loaded.counts.size:
            return loaded
        name = loaded.span.name
        try:
            with self._device, self.backend.active():
                found = _run(self.on_device, self._put(loaded))
                results = found.modelled
                fetches = {n: self.backend.fetch(results[n]) for n in self.fetched if n in results}
                level = None if found.level is None else self.backend.get(found.level)
        except NotComparable as error:
            if self.options.compat_r:
                raise
            return loaded.without_samples(f"{error}")
        except TrackError as error:
            raise UsageError(f"{name}: {error.problem}") from error
        except ModelError as error:
            raise UsageError(f"{name}: {error}") from error
        # Another chromosome has the device meanwhile.
        matrices = {name: fetch() for name, fetch in fetches.items()}
        notes = found.notes[-1 if len(loaded.counts) == 1 else 0 :]
        found = replace(found, level=level, matrices=matrices, notes=notes)
        return replace(found, on_device=None, modelled={}, expected=None)

    def _put(self, loaded: Chromosome) -> Chromosome:
        """Return the chromosome with its counts on the device, where they fit in one piece."""
        counts, rows = loaded.counts, self._piece_rows(loaded)
        if len(counts) <= rows:
            counts = self.backend.put(counts)  # and it stays there for all stages
        return replace(loaded, on_device=counts, piece_rows=rows)

    def _piece_rows(self, loaded: Chromosome) -> int:
        """Return the number of regions that are on the device at a time."""
        return loaded.shape.piece_rows(
            self.options,
            budget=self.budget,
            at_once=self.backend.at_once,
            chunk_bytes=self.workload.chunk_bytes,
            divisor=loaded.divisor,
        )

    def need(self, loaded: Chromosome) -> int:
        """Return bytes of device memory that a chromosome takes at most."""
        if not loaded.counts.size:
            return 0
        return self._piece_rows(loaded) * loaded.shape.row_bytes(self.options)

    def halves(self, loaded: Chromosome) -> tuple[Chromosome, ...]:
        """Return the chromosome with pieces half as large; nothing where they cannot be."""
        smaller = replace(loaded, divisor=2 * loaded.divisor)
        return (smaller,) if self.need(smaller) < self.need(loaded) else ()

    def finish(self, loaded: Chromosome, computed: Chromosome) -> CnvPart:
        """Run the stages on the host, which write the matrices where they are wanted."""
        part = _run(self.on_host, computed).part
        assert part is not None
        return part

    def close(self) -> None:
        """Give back the memory that is kept between chromosomes."""
        self._thread = threading.local()
        self.backend.close()


def _run(stages: Sequence[Stage], chromosome: Chromosome) -> Chromosome:
    """Return the chromosome after these stages, each of which is timed."""
    for stage in stages:
        with step(stage.name):
            chromosome = stage.run(chromosome)
    return chromosome

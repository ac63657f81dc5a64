"""Chromosomes as spans, and what they take on a device: known before anything is computed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from multigpu.cluster.engine.plan import Capacity, Cost, chunk_units
from multigpu.run.options import RunOptions
from multigpu.run.plan import memory_budget
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Mask, Rows
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.genomes import X_NAMES, Intervals, are_inside
from multigpu.workloads.cnv.samples.sex import copies_on, ploidy_for

CHROMOSOMES_ON_GPU = 3  # many kernels have a block a sample, and leave room for others
BYTES_PER_VALUE = 64  # on a device, of a region and sample: results, and room for segmentation
EXPECTED_BYTES = 8  # of a control: the count it should have, and the ratio to that
PROGRAM_BYTES = 448 << 20  # Python, NumPy, Numba while it compiles, PyArrow
DEVICE_PROGRAM_BYTES = 1 << 30  # CUDA and CuPy, with a compiler of their own
PLACE_BYTES = 20  # of a region: chromosome, start and end


@dataclass(frozen=True, eq=False, kw_only=True)
class CnvSpan:
    """A chromosome: its place among the blocks of the regions, and its rows of the counts."""

    block: int
    chrom: int  # index of its name
    name: str
    first: int
    stop: int
    # Samples that are compared here, cases then controls: columns of what follows; None: all
    columns: tuple[int, ...] | None = None
    ploidy: tuple[int, ...] | None = None  # of each column, for normalization; None: alike
    copies: tuple[int, ...] | None = None  # usual ones of each column, by sex; None: two
    shares: tuple[float, ...] | None = None  # expected reads by those of an autosome; None: 1
    par: Intervals = ()  # pseudoautosomal regions: two copies there, whatever `copies` says

    @property
    def rows(self) -> slice:
        return slice(self.first, self.stop)

    def is_in_par(self, start: Rows, end: Rows) -> Mask:
        """Return bool[n]: whether each interval lies in a pseudoautosomal region."""
        return are_inside(self.par, start, end)


def plan_spans(cohort: Cohort, options: CnvOptions) -> list[CnvSpan]:
    """Return the chromosomes in the order of the regions, with the samples compared on each."""
    regions = cohort.regions
    spans = [
        CnvSpan(
            block=k,
            chrom=int(regions.chrom[rows.start]),
            name=regions.names[regions.chrom[rows.start]],
            first=rows.start,
            stop=rows.stop,
            ploidy=cohort.ploidy,
        )
        for k, rows in enumerate(regions.blocks)
    ]
    if cohort.ploidy is not None:
        return spans
    return [_span_by_sex(span, cohort, options) for span in spans]


def _span_by_sex(span: CnvSpan, cohort: Cohort, options: CnvOptions) -> CnvSpan:
    """Return the span of a chromosome, with the copies that are usual where they go by sex.

    Counts that are normalized already, haploid genomes, and an X of pseudoautosomal regions alone
    are taken as they are.
    """
    regions, cases = cohort.regions, len(cohort.cases)
    copies = copies_on(span.name, cohort.sexes)
    if copies is None or not options.compares_by_sex:
        return span
    par = cohort.par if span.name in X_NAMES else ()
    if are_inside(par, regions.start[span.rows], regions.end[span.rows]).all():
        return span
    columns = tuple(k for k, each in enumerate(copies) if each)
    if not _can_compare(columns, cases, options.model):
        columns = ()
    copies = tuple(copies[k] for k in columns)
    ploidy = ploidy_for(copies) if options.model != "single" else None
    has_same_level = options.norm == 1 and not options.genome_wide and ploidy is None
    return replace(
        span,
        columns=columns if len(columns) < len(cohort.names) else None,
        ploidy=ploidy,
        copies=copies,
        shares=None if has_same_level else tuple(each / 2 for each in copies),
        par=par,
    )


def _can_compare(columns: Sequence[int], all_cases: int, model: str) -> bool:
    """Return whether there are enough samples with copies of a chromosome to compare them."""
    cases = sum(k < all_cases for k in columns)
    if model == "reference":
        return 0 < cases < len(columns)
    return cases >= (1 if model == "single" else 2)


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a table of counts: regions × columns, of which the first are cases."""

    regions: int
    columns: int
    cases: int
    count_bytes: int = 4

    @property
    def bytes(self) -> int:
        """Size of the table."""
        return self.regions * self.columns * self.count_bytes

    def row_bytes(self, options: CnvOptions) -> int:
        """Return bytes of a region on a device: counts, results, and room for segmentation."""
        samples, classes = self.cases, len(options.classes)
        results = BYTES_PER_VALUE * samples + 8 * classes * (1 + samples * options.posterior)
        if options.is_hmm:
            results += EXPECTED_BYTES * (self.columns - samples)
        return self.columns * self.count_bytes + results

    def piece_rows(
        self, options: CnvOptions, *, budget: int, at_once: int, chunk_bytes: int, divisor: int = 1
    ) -> int:
        """Return the number of regions that are on a device at a time.

        at_once      chromosomes that share the budget
        chunk_bytes  of counts, at most
        divisor      factor by which the piece is to be smaller

        Raises TooLittleMemory where not one region fits.
        """
        largest = max(1, chunk_bytes // (self.columns * self.count_bytes))
        cost = Cost(self.row_bytes(options), 0)
        rows = max(1, chunk_units(cost, budget, at_once, largest)[0] // divisor)
        return min(rows, self.regions)

    def of_span(self, span: CnvSpan) -> "Shape":
        """Return the shape of a chromosome's counts in the columns that are compared there."""
        columns = range(self.columns) if span.columns is None else span.columns
        cases = sum(column < self.cases for column in columns)
        return Shape(span.stop - span.first, len(columns), cases, self.count_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChromosome:
    """A chromosome in the plan."""

    name: str
    regions: int
    columns: int  # of its counts that are compared; 0 where it is left out
    pieces: int  # in which it comes to a device
    device_bytes: int  # of a piece on the device
    host_bytes: int  # more on the host, where the results of pieces are joined
    copy_bytes: int  # of the copy of its counts, where a worker makes one


@dataclass(frozen=True, slots=True, kw_only=True)
class CnvPlan:
    """Plan of how chromosomes, which are the chunks, come to the devices."""

    shape: Shape
    chromosomes: tuple[PlannedChromosome, ...]
    chunk_bytes: int  # of counts that come to a device at a time, at most
    budget: int  # memory that chromosomes may take, on the device that has least
    lanes: int  # chromosomes in progress on each worker
    at_once: int  # chromosomes of these that are on its device
    chunks_in_process: int  # chromosomes in progress in the process that has most
    gpu: bool  # whether devices are GPUs
    copied: bool  # whether there may be a copy of the counts for worker processes

    @property
    def largest(self) -> PlannedChromosome:
        """The chromosome that takes most on a device; of several the first."""
        return max(self.chromosomes, key=lambda each: (each.device_bytes, each.regions))

    @property
    def device_bytes(self) -> int:
        """Memory of the chromosomes that are on a device at a time."""
        return sum(nlargest(self.at_once, (each.device_bytes for each in self.chromosomes)))

    @property
    def host_bytes(self) -> int:
        """Memory of a process at most, without matrices, report and results.

        That is the program, the counts and the places of regions, and the chromosomes in progress:
        on a CPU these take on the host what they take on a device. Controls and cases are joined
        before any chromosome is in progress; worker processes may need a copy of the counts.
        """
        chromosomes, counts = self.chromosomes, self.shape.bytes
        computing = self.device_bytes * (not self.gpu)
        computing += sum(nlargest(self.at_once, (each.host_bytes for each in chromosomes)))
        copies = sum(nlargest(self.chunks_in_process, (each.copy_bytes for each in chromosomes)))
        program = PROGRAM_BYTES + DEVICE_PROGRAM_BYTES * self.gpu
        places = 2 * PLACE_BYTES * self.shape.regions
        return program + places + counts + max(counts, counts * self.copied + computing + copies)


def plan_memory(
    spans: Sequence[CnvSpan],
    shape: Shape,
    options: CnvOptions,
    run: RunOptions,
    here: Capacity,
    *,
    in_process: bool,
) -> CnvPlan:
    """Return the plan of a run on workers with this capacity.

    in_process  whether all workers are threads of this process, which share the counts

    Raises TooLittleMemory where a chromosome does not fit in the smallest pieces.
    """
    budget = memory_budget(here, run)
    at_once = CHROMOSOMES_ON_GPU if here.gpu else 1
    copied = not in_process or (shape.count_bytes > 4 and options.norm == 1)
    chromosomes = []
    for span in spans:
        part, rows, pieces = shape.of_span(span), 0, 0
        if part.columns:
            rows = part.piece_rows(
                options, budget=budget, at_once=at_once, chunk_bytes=run.chunk_bytes()
            )
            pieces = -(-part.regions // rows)
        planned = PlannedChromosome(
            name=span.name,
            regions=part.regions,
            columns=part.columns,
            pieces=pieces,
            device_bytes=rows * part.row_bytes(options),
            # Signed I/NI and I/NI of all pieces.
            host_bytes=8 * (part.cases + 1) * part.regions if pieces > 1 else 0,
            copy_bytes=part.bytes if copied or span.columns is not None else 0,
        )
        chromosomes.append(planned)
    return CnvPlan(
        shape=shape,
        chromosomes=tuple(chromosomes),
        chunk_bytes=run.chunk_bytes(),
        budget=budget,
        lanes=here.lanes,
        at_once=at_once,
        chunks_in_process=here.chunks_in_process,
        gpu=here.gpu,
        copied=not in_process,
    )

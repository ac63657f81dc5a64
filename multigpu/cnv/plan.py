"""How chromosomes come to a device, and what that takes: known before anything is computed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from multigpu.cluster.engine.plan import Capacity, Cost, chunk_units
from multigpu.cnv.backends import AT_ONCE
from multigpu.cnv.chromosome import CnvSpan
from multigpu.cnv.options import CnvOptions
from multigpu.run.options import RunOptions

BYTES_PER_VALUE = 64  # on a device, of a region and sample: results, and room for segmentation
PROGRAM_BYTES = 448 << 20  # Python, NumPy, Numba while it compiles, PyArrow
DEVICE_PROGRAM_BYTES = 1 << 30  # CUDA and CuPy besides, with a compiler of their own
PLACE_BYTES = 20  # of a region: chromosome, start and end


@dataclass(frozen=True)
class Shape:
    """Of a table of counts: `columns` are cases and then controls; bytes of a count."""

    regions: int
    columns: int
    cases: int
    count_bytes: int = 4

    @property
    def bytes(self) -> int:
        return self.regions * self.columns * self.count_bytes

    def row_bytes(self, options: CnvOptions) -> int:
        """Bytes on a device of a region: its counts, results, and room for segmentation."""
        samples, classes = self.cases, len(options.classes)
        found = BYTES_PER_VALUE * samples + 8 * classes * (1 + samples * options.posterior)
        return self.columns * self.count_bytes + found

    def piece_rows(
        self, options: CnvOptions, budget: int, at_once: int, chunk_bytes: int, pieces: int = 1
    ) -> int:
        """Regions that are on a device at a time.

        at_once      chromosomes that share the budget
        chunk_bytes  of counts, at most
        pieces       how many times smaller it is to be
        """
        largest = max(1, chunk_bytes // (self.columns * self.count_bytes))
        cost = Cost(self.row_bytes(options), 0)
        return max(1, chunk_units(cost, budget, at_once, largest) // pieces)


@dataclass(frozen=True)
class Chromosome:
    """One as it is planned.

    columns       of its counts that are looked at; none where it is left out
    pieces        in which it comes to a device
    device_bytes  that a piece takes there
    host_bytes    that it takes besides where these come together
    copy_bytes    of a copy of its counts, where a worker makes one
    """

    name: str
    regions: int
    columns: int
    pieces: int
    device_bytes: int
    host_bytes: int
    copy_bytes: int


@dataclass(frozen=True)
class CnvPlan:
    """How chromosomes, which are the chunks, are going to come to the devices.

    chunk_bytes  of counts that come to a device at a time, at most
    budget       memory that chromosomes may take where there is least of it
    lanes        in hand at a time on each worker, and
    at_once      those of them that are on its device
    in_hand      by the process that has most
    gpu          whether devices are GPUs
    copied       whether there may be a copy of the counts, for worker processes
    """

    shape: Shape
    chromosomes: tuple[Chromosome, ...]
    chunk_bytes: int
    budget: int
    lanes: int
    at_once: int
    in_hand: int
    gpu: bool
    copied: bool

    @property
    def largest(self) -> Chromosome:
        """That which takes most on a device; of several the first."""
        return max(self.chromosomes, key=lambda each: (each.device_bytes, each.regions))

    @property
    def device_bytes(self) -> int:
        """What the chromosomes take that are on a device at a time."""
        return _most((each.device_bytes for each in self.chromosomes), self.at_once)

    @property
    def host_bytes(self) -> int:
        """What a process takes at most without matrices and report, and but for what is found.

        That is the program, the counts and where their regions lie, and what the chromosomes in
        hand take: on a CPU what they take on a device. Controls and cases are joined before there
        are any; for worker processes that come later there is a copy of the counts.
        """
        each = self.chromosomes
        computing = self.device_bytes * (not self.gpu)
        computing += _most((chromosome.host_bytes for chromosome in each), self.at_once)
        copies = _most((chromosome.copy_bytes for chromosome in each), self.in_hand)
        program = PROGRAM_BYTES + DEVICE_PROGRAM_BYTES * self.gpu
        places, counts = 2 * PLACE_BYTES * self.shape.regions, self.shape.bytes
        return program + places + counts + max(counts, counts * self.copied + computing + copies)


def _most(sizes: Iterable[int], count: int) -> int:
    """The largest together."""
    return sum(sorted(sizes, reverse=True)[:count])


def plan_cnv(
    spans: Sequence[CnvSpan],
    shape: Shape,
    options: CnvOptions,
    run: RunOptions,
    here: Capacity,
    in_process: bool,
) -> CnvPlan:
    """Raises BudgetError where a chromosome does not fit in the smallest pieces.

    in_process  whether all workers look at the counts themselves
    """
    budget = int(here.free * run.memory_fraction)
    at_once = AT_ONCE if here.gpu else 1
    copied = not in_process or (shape.count_bytes > 4 and options.norm == 1)
    planned = []
    for span in spans:
        own = shape_of(span, shape)
        rows = own.regions
        if own.columns:
            rows = own.piece_rows(options, budget, at_once, run.chunk_bytes())
        planned.append(_chromosome(span, own, min(rows, own.regions), options, copied))
    return CnvPlan(
        shape, tuple(planned), run.chunk_bytes(), budget, here.lanes, at_once,
        here.chunks_in_process, here.gpu, not in_process,
    )  # fmt: skip


def normalized_by(options: CnvOptions) -> str:
    """chromosome, genome or none: what size factors are found for at a time."""
    if not options.norm or options.model == "single":
        return "none"
    return "genome" if options.genome_wide else "chromosome"


def shape_of(span: CnvSpan, whole: Shape) -> Shape:
    """Of those columns of a chromosome that are looked at."""
    columns = range(whole.columns) if span.columns is None else span.columns
    cases = sum(column < whole.cases for column in columns)
    return Shape(span.stop - span.first, len(columns), cases, whole.count_bytes)


def _chromosome(
    span: CnvSpan, shape: Shape, rows: int, options: CnvOptions, copied: bool
) -> Chromosome:
    """rows: on a device at a time."""
    if not shape.columns:
        return Chromosome(span.name, shape.regions, 0, 0, 0, 0, 0)
    pieces = -(-shape.regions // rows)
    # Signed I/NI and I/NI of all pieces, once each and once as a whole.
    joined = 16 * (shape.cases + 1) * shape.regions if pieces > 1 else 0
    copy = shape.bytes if copied or span.columns is not None else 0
    device = rows * shape.row_bytes(options)
    return Chromosome(span.name, shape.regions, shape.columns, pieces, device, joined, copy)

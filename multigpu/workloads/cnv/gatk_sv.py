"""A batch of GATK-SV, called as its workflow CNMOPS.wdl does: `--preset gatk-sv`.

Each chromosome is called in bins of several sizes: autosomes in all samples, X in males and in
females by themselves, Y in males, each as if two copies were usual. Calls of the small sizes are
joined, and so are those of the large ones, of which neighbours are stitched and long ones reported.
All is one job, in which a chromosome in bins of one size is a chromosome.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, option, several
from multigpu.formats.alignments.regions import read_bed
from multigpu.formats.storage.sources import is_repeatable
from multigpu.formats.tables.bin_sums import TIMES, read_bin_sums, read_samples
from multigpu.formats.tables.counts import Counts, sample_of_file
from multigpu.formats.tables.tabix import write_indexed
from multigpu.kernels.compiled.parallel import cores
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.notes import (
    FEWEST_SEGMENTED,
    contradicted_sex_notes,
    notes_by_chromosome,
)
from multigpu.workloads.cnv.options import CnvOptions, KeptResults
from multigpu.workloads.cnv.plan import CnvSpan
from multigpu.workloads.cnv.records import Columnar, Floats, Indices, Mask, Rows, Spans
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.results.copy_numbers import direction
from multigpu.workloads.cnv.results.intervals import subtract, touch, union
from multigpu.workloads.cnv.results.result import join_segments
from multigpu.workloads.cnv.samples.annotations import read_sexes
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.genomes import X_NAMES
from multigpu.workloads.cnv.samples.sex import (
    FEMALE,
    MALE,
    Coverage,
    cohort_coverage,
    is_sex_chromosome,
)

TYPES = {"DEL": -1, "DUP": 1}  # by direction
STITCHED_SHARE, STITCHED_BASES = 0.2, 200_000  # by which a call reaches out at each end, at most
NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)
SEX_SIZE = 100  # of the bins by which sexes are inferred
GPU_CHUNK_BYTES = 1 << 30  # of counts: a GPU is faster with many samples at a time
ROWS = 1 << 13  # that a thread looks at together
UNUSED = (
    "controls", "ploidy", "model", "norm", "genome_wide", "robust", "fractional", "posterior",
    "segmentation", "rebin", "gc", "mappability", "cohort", "max_gap",
    "whole_chromosomes", "regions", "read_length",
)  # fmt: skip
COLUMNS = ("#chr", "start", "end", "name", "sample", "svtype", "sources")


@dataclass(frozen=True)
class CallSet:
    """Calls that are joined, and get files of their own."""

    name: str  # in the names of the files
    sizes: tuple[int, ...]  # of bins, in bins of the matrix
    source: str  # what the files say of where calls are from
    above: int = 0  # calls are longer, in bases
    stitched: bool = False  # whether neighbouring calls of a sample become one


CALL_SETS = (
    CallSet("header", (3, 10), "cnmops"),
    CallSet("large", (100, 1000), "cnmops_large", above=1_000_000, stitched=True),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchCalls(Columnar):
    """Losses or gains, by sample and place."""

    sample: Indices  # int32[n]: rank of the sample's name
    chrom: Indices  # int32[n]: number of the chromosome
    start: Rows  # int64[n]: bases, from 0, half open
    end: Rows  # int64[n]: bases, from 0, half open
    number: Rows  # int64[n]: from 1, for the names of the calls


class BatchJob(CnvJob):
    """The calls of a batch: bins of all sizes as one table.

    counts    as `read_bin_sums` gives them, without excluded bins
    options   R's defaults, or others
    run       where and how it runs
    sexes     of each sample; empty: not known, so that X and Y are not called
    excluded  ascending regions of each chromosome, by its name, which no call has
    settings  see `CnvJob`
    """

    def __init__(
        self,
        counts: Counts,
        options: CnvOptions,
        run: RunOptions,
        *,
        sexes: tuple[str, ...],
        excluded: dict[str, Spans],
        **settings: Any,
    ) -> None:
        regions, self.excluded = counts.regions, excluded
        parts = [name.rpartition(TIMES) for name in regions.names]
        self.sizes = np.array([int(size) for *_, size in parts])
        self.chromosomes = tuple(dict.fromkeys(name for name, *_ in parts))
        numbers = {name: number for number, name in enumerate(self.chromosomes)}
        self._chrom = np.array([numbers[name] for name, *_ in parts], np.int32)
        # Their script takes starts from 0 for starts from 1.
        self._shift = int(options.compat_r)
        counts = replace(counts, regions=replace(regions, start=regions.start - self._shift))
        cohort = replace(Cohort.of(counts), sexes=sexes)
        spans, notes = plan_batch(counts, sexes)
        if not spans:
            left = f": {option('exclude')} leaves {len(regions):,} sums of bins" if excluded else ""
            raise UsageError(f"there are too few samples or bins to call anything{left}")
        settings |= {"spans": spans, "cohort": cohort}
        super().__init__(counts, options, run, **settings)
        self.notes += notes

    def calls(self, scratch: Path | None = None) -> dict[tuple[CallSet, str], BatchCalls]:
        """Run the job; return the calls of each set and type."""
        parts = self._run(KeptResults(copies=False), scratch)
        del self.values
        self.notes += notes_by_chromosome(parts)
        segments = join_segments(parts)
        cnvs = segments.take(segments.cnv)
        sign = direction(cnvs.copy_number, self.options)
        rank = np.argsort(np.argsort(self.cohort.cases)).astype(np.int32)
        found = BatchCalls(
            sample=rank[cnvs.sample],
            chrom=self._chrom[cnvs.chrom],
            start=cnvs.start + self._shift,
            end=cnvs.end,
            number=np.zeros(len(cnvs), np.int64),
        )
        size = self.sizes[cnvs.chrom]
        return {
            (each, kind): self._finish(
                found.take(np.isin(size, each.sizes) & (sign == change)), each
            )
            for each in CALL_SETS
            for kind, change in TYPES.items()
        }

    def _finish(self, calls: BatchCalls, of: CallSet) -> BatchCalls:
        """Return the calls of a set and a type: joined, without what is excluded, with numbers."""
        calls = _joined(calls, len(self.chromosomes))
        pieces = [calls.take(slice(0))]
        for number, name in enumerate(self.chromosomes):
            here = calls.take(calls.chrom == number)
            which, start, end = subtract(here.start, here.end, self.excluded.get(name, NOTHING))
            pieces.append(replace(here.take(which), start=start, end=end))
        calls = BatchCalls.joined(pieces)
        calls = calls.take(np.lexsort((calls.start, calls.chrom, calls.sample)))
        calls = replace(calls, number=np.arange(1, len(calls) + 1))
        if of.stitched:
            padding = np.minimum(STITCHED_SHARE * (calls.end - calls.start), STITCHED_BASES)
            calls = _joined(calls, len(self.chromosomes), padding)
        return calls.take(calls.end - calls.start > of.above)


def _joined(calls: BatchCalls, chromosomes: int, padding: Floats | None = None) -> BatchCalls:
    """Return calls of which those of a sample that overlap or touch are one, by sample and place.

    padding  float64[n]: bases by which each reaches out at both ends; those that then only touch
             stay apart
    """
    first, stop = calls.start, calls.end
    if padding is not None:
        first = np.maximum(np.rint(first - padding), 1).astype(np.int64)
        stop = np.rint(stop + padding).astype(np.int64) - 1
    # Samples and chromosomes one after the other, with room between them.
    row = calls.sample.astype(np.int64) * chromosomes + calls.chrom
    origin = row * (int(stop.max(initial=0)) + 2)
    order = np.argsort(origin + calls.start, kind="stable")
    begin, _ = union(origin + first, origin + stop)
    group = np.searchsorted(begin, (origin + first)[order], "right") - 1
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    if not len(heads):
        return calls
    end = np.maximum.reduceat(calls.end[order], heads)
    return replace(calls.take(order[heads]), end=end)


def open_batch(request: CnvRequest, **settings: Any) -> BatchJob:
    """Return the job of a request, whose table is read; see `Job` for the settings.

    Raises UsageError and InputError.
    """
    preset = f"{option('preset')} gatk-sv"
    if unused := [name for name in UNUSED if name in request.given]:
        raise UsageError(f"{option(unused[0])} has no effect with {preset}: leave it out")
    if request.has_alignments or len(request.paths) != 1 or not is_repeatable(request.paths[0]):
        raise UsageError(f"{preset} takes one file: the bincov matrix of a batch")
    path, excluded = request.paths[0], dict[str, Spans]()
    sexes = read_sexes(request.sex, read_samples(path))
    if request.exclude:
        regions, _ = read_bed(request.exclude)
        for name, rows in regions.by_name().items():
            excluded[name] = union(regions.start[rows], regions.end[rows])

    def keep(name: str, start: Rows, end: Rows) -> Mask:
        return ~touch(start, end, excluded.get(name, NOTHING))

    sizes = [size for each in CALL_SETS for size in each.sizes]
    counts = read_bin_sums(path, sizes, request.chromosomes, keep)
    coverage = _sex_coverage(counts, request.genome)
    coming, run = settings.get("coming"), request.run
    if run.max_chunk_bytes is None and (coming.devices if coming else settings.get("devices")):
        run = replace(run, max_chunk_bytes=GPU_CHUNK_BYTES)
    settings |= {
        "sexes": coverage.sexes() if sexes is None and coverage else sexes or (),
        "excluded": excluded,
        "inputs": [each for each in (path, request.exclude) if each],
    }
    job = BatchJob(counts, request.options, run, **settings)
    job.notes += _sex_notes(job, coverage, is_given=sexes is not None)
    if excluded and not excluded.keys() & {*job.chromosomes}:
        problem = "is it of another genome, or do names differ by `chr`?"
        job.notes.append(f"{request.exclude} has none of the chromosomes of the counts: {problem}")
    return job


def _sex_coverage(counts: Counts, genome: str | None) -> Coverage | None:
    """Return the coverage of X and Y; None where it tells no sexes."""
    regions, suffix = counts.regions, f"{TIMES}{SEX_SIZE}"
    is_used = np.array([name.endswith(suffix) for name in regions.names])[regions.chrom]
    # The last sum of a chromosome has fewer bins, by which a short X would look like a single one.
    width = regions.end - regions.start
    rows = np.flatnonzero(is_used & (width == width[is_used].max(initial=0)))
    names = tuple(name.removesuffix(suffix) for name in regions.names)
    used = counts.take(rows)
    return cohort_coverage(replace(used, regions=replace(used.regions, names=names)), None, genome)


def _sex_notes(job: BatchJob, coverage: Coverage | None, is_given: bool) -> Iterator[str]:
    """Yield notes on sexes where there is an X or a Y."""
    if not any(map(is_sex_chromosome, job.chromosomes)):
        return
    names, sexes = job.cohort.names, job.cohort.sexes
    if is_given:
        yield from contradicted_sex_notes(job.cohort, coverage)
    elif sexes:
        found = (
            f"{sexes.count(MALE)} male and {sexes.count(FEMALE)} female samples by their X and Y"
        )
        yield f"{found}: {option('sex')} FILE corrects it"
    if unknown := [name for k, name in enumerate(names) if not sexes or not sexes[k]]:
        yield f"{several(unknown)}: not called on X and Y: {option('sex')} FILE tells no sex"


def plan_batch(counts: Counts, sexes: Sequence[str]) -> tuple[list[CnvSpan], list[str]]:
    """Return each chromosome in bins of each size, with the samples compared there, and notes."""
    spans, left_out, unread = [], list[str](), dict[str, list[str]]()
    regions, samples = counts.regions, np.array(counts.samples)
    for block, (name, rows) in enumerate(regions.by_name().items()):
        has_reads = _have_reads(counts.values[rows])
        for members in _cohorts(name.rpartition(TIMES)[0], sexes, len(samples)):
            for sample in samples[members & ~has_reads].tolist():
                unread.setdefault(sample, []).append(name)
            columns = np.flatnonzero(members & has_reads)
            if len(columns) < 2 or rows.stop - rows.start < FEWEST_SEGMENTED:
                left_out += [name] if members.any() else []
                continue
            span = CnvSpan(
                block=block,
                chrom=int(regions.chrom[rows.start]),
                name=name,
                first=rows.start,
                stop=rows.stop,
                columns=None if len(columns) == len(samples) else tuple(columns.tolist()),
            )
            spans.append(span)
    notes = [f"{name}: most bins of {several(x)} have no reads" for name, x in unread.items()]
    if left_out:
        left_out = list(dict.fromkeys(left_out))
        notes.append(f"{several(left_out)}: not called, with too few samples or bins")
    return spans, notes


def _cohorts(chromosome: str, sexes: Sequence[str], samples: int) -> list[Mask]:
    """Return the samples, bool[samples], that are compared with each other."""
    if not is_sex_chromosome(chromosome):
        return [np.ones(samples, np.bool_)]
    sex = np.array(sexes or [""] * samples)
    return [sex == each for each in (MALE, FEMALE) if chromosome in X_NAMES or each == MALE]


def _have_reads(values: NDArray[Any]) -> Mask:
    """Return bool[samples]: whether the median of each column is not 0."""
    with ThreadPoolExecutor(cores()) as pool:
        blocks = (values[at : at + ROWS] for at in range(0, len(values), ROWS))
        zeros = sum(pool.map(lambda block: (block == 0).sum(axis=0), blocks))
    return np.asarray(2 * np.asarray(zeros) <= len(values))


def write_batch(
    calls: Mapping[tuple[CallSet, str], BatchCalls], job: BatchJob, folder: Path, matrix: str
) -> None:
    """Write the calls of each set and type, and their index: `BATCH.DEL.header.bed.gz`.

    matrix  path of the counts, whose name begins with that of the batch
    """
    batch = sample_of_file(matrix)
    for (of, kind), table in calls.items():
        path = folder / f"{batch}.{kind}.{of.name}.bed.gz"
        end = int(table.end.max(initial=0))
        write_indexed(path, _bed(table, job, f"{batch}_{kind}_", kind, of.source), end, "bed")


def _bed(calls: BatchCalls, job: BatchJob, prefix: str, kind: str, source: str) -> Iterator[bytes]:
    """Yield the header, and the calls by place; those that begin together by their text."""
    yield "\t".join(COLUMNS).encode() + b"\n"
    samples = sorted(job.cohort.cases)
    columns = (calls.sample, calls.chrom, calls.start, calls.end, calls.number)
    lines = []
    for sample, chrom, start, end, number in zip(*(x.tolist() for x in columns), strict=True):
        place = f"{job.chromosomes[chrom]}\t{start}\t{end}"
        line = f"{place}\t{prefix}{number}\t{samples[sample]}\t{kind}\t{source}\n"
        lines.append((chrom, start, line.encode()))
    yield b"".join(line for *_, line in sorted(lines))

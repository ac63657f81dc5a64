"""A copy-number run: planned, opened on counts, and run once."""

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.journal import Codec
from multigpu.cluster.workers.worker import Outcome
from multigpu.errors import UsageError, option, spelled
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage import shareable
from multigpu.formats.storage.fingerprints import digest
from multigpu.formats.tables.counts import Counts
from multigpu.kernels.compiled.parallel import cores, over_spans
from multigpu.kernels.normalization import cpu as normalization
from multigpu.run import fitness
from multigpu.run.fitness import Expected
from multigpu.run.job import NO_FILE, Crew, Job, JobStats, check_unchanged, describe_inputs
from multigpu.run.options import GpuLanes, RunOptions
from multigpu.workloads.cnv.notes import (
    FEWEST_SEGMENTED,
    advice,
    count_notes,
    notes_by_chromosome,
    sex_notes,
)
from multigpu.workloads.cnv.options import CnvOptions, KeptResults, copy_number_lanes
from multigpu.workloads.cnv.plan import CnvPlan, CnvSpan, Shape, plan_memory, plan_spans
from multigpu.workloads.cnv.records import JOURNAL_CLASSES, CnvPart, Floats, Genotypes, SampleFacts
from multigpu.workloads.cnv.results import matrices
from multigpu.workloads.cnv.results.result import CnvResult, join_regions, join_segments
from multigpu.workloads.cnv.samples.cohort import Cohort, check_counts
from multigpu.workloads.cnv.samples.genomes import chromosome_lengths
from multigpu.workloads.cnv.samples.noise import neighbour_noise, power_notes
from multigpu.workloads.cnv.samples.reference_samples import ReferenceSamples, sampled_rows
from multigpu.workloads.cnv.stages.chromosome import Columns
from multigpu.workloads.cnv.stages.counts_source import CountsSource, copy_to_file, share_memory
from multigpu.workloads.cnv.stages.normalize import (
    coverages_of_genome,
    size_factors_of_genome,
)
from multigpu.workloads.cnv.stages.whole_chromosomes import WholeChange, whole_changes
from multigpu.workloads.cnv.work import CnvWorkload

LEAST_COPIED = 1 << 14  # regions, for a thread
TRACK_POINTS = 2800  # of a sample along the genome, in its plot; each chromosome may have one more


@dataclass
class CnvStats(JobStats):
    """Facts about the progress of a run; a chunk is a chromosome."""

    cnvs: int = 0

    def add(self, outcome: Outcome[CnvPart]) -> None:
        """Count a finished chromosome and its CNVs."""
        super().add(outcome)
        self.cnvs += int(outcome.part.segments.cnv.sum())

    def progress(self) -> str:
        """Return what a run has found so far."""
        return f"{self.cnvs:,} CNVs"


class PlannedCnvJob(Job):
    """A run whose chromosomes are planned; its reads need not be counted yet.

    uncounted  alignments that are still to be counted
    """

    uncounted: Sequence[str] = ()
    count_bytes = 4

    def __init__(
        self,
        cohort: Cohort,
        options: CnvOptions,
        run: RunOptions,
        lanes: GpuLanes,
        spans: list[CnvSpan] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(run, lanes, **settings)
        self.cohort, self.options = cohort, options
        self.spans = plan_spans(cohort, options) if spans is None else spans
        self.notes: list[str] = []

    @property
    def chunks(self) -> int | None:
        """Number of chromosomes."""
        return len(self.spans)

    def plan(self, crew: Crew | None = None) -> CnvPlan:
        """Return how chromosomes come to the devices of a crew, or of this machine."""
        regions, columns, cases = self.cohort.regions, self.cohort.names, self.cohort.cases
        shape = Shape(len(regions), len(columns), len(cases), self.count_bytes)
        about = (self.spans, shape, self.options, self.run)
        return self.fit(crew, lambda here: plan_memory(*about, here, in_process=self.in_process))


class CnvJob(PlannedCnvJob):
    """Stages 2 to 5 on a table of counts: opened (all is checked), and run once.

    controls  counts of the same regions, for the model "reference" and no other
    cohort    what is known of their samples; None: nothing else
    inputs    files of the counts, which must not change until a run is resumed
    lanes     with which workers were started; None: by the size of the counts
    settings  see `Job`
    """

    def __init__(
        self,
        counts: Counts,
        options: CnvOptions,
        run: RunOptions,
        *,
        controls: Counts | None = None,
        cohort: Cohort | None = None,
        inputs: Sequence[str] = (),
        lanes: GpuLanes | None = None,
        **settings: Any,
    ) -> None:
        check_counts(counts, controls, options)
        cohort = cohort or Cohort.of(counts, controls)
        lanes = lanes or copy_number_lanes(counts.values.nbytes)
        super().__init__(cohort, options, run, lanes, **settings)
        self.values: NDArray[Any] = counts.values
        if controls is not None:
            self.values = _joined(counts.values, controls.values, is_shared=not self.in_process)
        self.count_bytes = self.values.itemsize
        self.stats: CnvStats = CnvStats()
        self.inputs = inputs
        self.sums = _sums(self.values, self.spans)
        self.totals = self.sums.sum(axis=0)
        self._check_reads()
        self.references: ReferenceSamples | None = None
        if options.is_hmm:  # which tells with whom samples are compared
            sampled = self.values[sampled_rows(self.spans)]
            self.references = ReferenceSamples.of(sampled, len(cohort.cases), options)
            self.spans = [self.references.ordered(span) for span in self.spans]
        self.noise = neighbour_noise(self.values, cohort.regions.chrom)
        self.notes += count_notes(counts, controls, options, self.totals)
        self.notes += sex_notes(cohort, self.spans)
        if (known := self.references) is not None:
            about = (cohort, self.totals, known.dispersion, known.noise, options.min_width)
            self.notes += power_notes(*about)

    def _check_reads(self) -> None:
        """Raise UsageError for a sample without reads that is compared on any chromosome."""
        if not self.options.is_normalized:
            return
        compared = np.zeros(len(self.cohort.names), np.bool_)
        for span in self.spans:
            compared[slice(None) if span.columns is None else list(span.columns)] = True
        if (without := np.flatnonzero(compared & (self.totals == 0))).size:
            name = self.cohort.names[without[0]]
            raise UsageError(f"sample {name} has no reads: leave it out")

    @property
    def facts(self) -> SampleFacts:
        """Facts about samples and controls, for quality control."""
        facts, known = SampleFacts.uncompared(self.totals, self.noise), self.references
        if known is None:
            return facts
        count = np.full(len(facts), known.count, np.int32)
        return replace(facts, references=count, correlation=known.correlation)

    @property
    def lengths(self) -> Mapping[str, int]:
        """Lengths of chromosomes in bases, by name, where they are known."""
        cohort = self.cohort
        if cohort.lengths is not None:
            return cohort.lengths
        return chromosome_lengths(cohort.genome, cohort.regions, cohort.references)

    # ---- running ------------------------------------------------------------------------------

    def result(
        self,
        keep: tuple[str, ...] = (),
        store: Path | None = None,
        tracks: bool = False,
        scratch: Path | None = None,
    ) -> CnvResult:
        """Run the job and return its result; see `KeptResults` for `keep` and `store`.

        tracks   whether to keep values of all samples along the genome, for the report
        scratch  a folder that workers on other machines see; None: that for temporary files

        Raises UsageError for counts that cannot be normalized, modelled or segmented.
        """
        step = -(-len(self.values) // TRACK_POINTS) if tracks else 0
        kept = KeptResults(matrices=keep, store=store, track_step=step)
        parts = self._run(kept, scratch)
        del self.values  # the tables need memory, too
        return self._assemble(parts, kept)

    def _run(self, kept: KeptResults, scratch: Path | None) -> list[CnvPart]:
        """Return the parts of all chromosomes, in their order."""
        with ExitStack() as stack:
            source = self._source(stack, scratch)
            crew = self.crew(stack, source.paths, [str(kept.store.parent)] if kept.store else [])
            inputs = describe_inputs(self.inputs)
            if self.keeps_journal:
                # Of what is no file, the counts tell what it was.
                files = {name: state for name, state in inputs.items() if state != NO_FILE}
                self.open_journal({**self.description(kept), **files}, {}, Codec(JOURNAL_CLASSES))
            if kept.store is not None and not self.resuming:
                place = self.cohort.regions, self.cohort.cases, self.options.classes
                matrices.create(kept.store, *place, kept.matrices)
            elif kept.store is not None and not kept.store.is_dir():
                raise UsageError(
                    f"{kept.store.name} is missing: start over, without {option('resume')}"
                )
            workload = self.workload(source, kept, crew.expected)
            outcomes = self.run_spans(crew, workload, self.skip_finished(iter(self.spans)))
            parts = [outcome.part for outcome in outcomes]
            check_unchanged(inputs, self.inputs)
        return parts

    def _source(self, stack: ExitStack, scratch: Path | None) -> CountsSource:
        """Return where workers find the counts."""
        regions = self.cohort.regions
        arrays = {"values": self.values, "start": regions.start, "end": regions.end}
        if self.in_process:
            return CountsSource(**arrays)
        kept = copy_to_file(scratch, **arrays) if self.remote else share_memory(**arrays)
        return stack.enter_context(kept)

    def workload(
        self, source: CountsSource, kept: KeptResults, expected: Expected | None
    ) -> CnvWorkload:
        """Return what workers need to know of the job."""
        if self.references is None:
            factors, notes = size_factors_of_genome(
                self.values, self.cohort, self.spans, self.options
            )
            self.notes += notes
        else:
            factors = np.tile(self.references.factors, (len(self.spans), 1))
        whole: dict[int, list[WholeChange]] = {}
        # A hidden Markov model, which compares genomes, does without.
        if self.options.whole_chromosomes and not self.options.is_hmm:
            whole = whole_changes(self.cohort, self.spans, self.sums, self.values)
        # On a CPU chromosomes take turns, and each has all threads of its worker.
        threads = (self.run.threads or cores()) // max(1, self.run.workers)
        return CnvWorkload(
            key=uuid.uuid4().hex,
            options=self.options,
            counts=source,
            columns=Columns(
                names=self.cohort.names,
                cases=len(self.cohort.cases),
                totals=self.totals,
                factors=factors,
                coverages=coverages_of_genome(self.values, self.spans, self.options),
                references=self.references,
                whole=whole,
            ),
            regions=len(self.values),
            is_segmented=len(self.values) >= FEWEST_SEGMENTED,
            kept=kept,
            threads=max(1, threads),
            chunk_bytes=self.run.chunk_bytes(),
            memory_fraction=self.run.memory_fraction,
            expected=expected,
        )

    # ---- what a journal is about --------------------------------------------------------------

    def description(self, kept: KeptResults) -> dict[str, str]:
        """Return what must be the same, as the inputs, for a run to continue this one's journal."""
        cohort, stored = self.cohort, "stored" if kept.store else "kept"
        return {
            "program": fitness.program(),
            "job": "cnv",
            "matrices": f"{', '.join(kept.matrices) or 'none'}, {stored}",
            "figures": f"{kept.track_step}",
            **{f"option {name}": str(value) for name, value in asdict(self.options).items()},
            "samples": (
                f"{len(cohort.names)}, content {digest(replace(cohort, regions=Regions.of([])))}"
            ),
            "regions": f"{len(cohort.regions):,} in {len(self.spans)} chromosomes",
            "counts": f"content {digest((cohort.regions, self.values))}",
        }

    # ---- the result ---------------------------------------------------------------------------

    def _assemble(self, parts: list[CnvPart], kept: KeptResults) -> CnvResult:
        cohort, options, regions = self.cohort, self.options, self.cohort.regions
        left_out = [part.left_out for part in parts if part.left_out]
        if left_out and len(left_out) == sum(span.columns != () for span in self.spans):
            raise UsageError(left_out[0])
        segments = join_segments(parts)
        cnvs = segments.take(segments.cnv)
        # R pairs ranges in the order of the rows with chromosomes in the order of their names, but
        # not for a single sample, whose regions are its CNVs.
        mispaired = options.compat_r and options.model != "single"
        robust = [part.robust for part in parts if part.robust is not None]
        genotypes = [part.genotypes for part in parts if part.genotypes is not None]
        pieces = [piece for part in parts for piece in part.pieces]
        if kept.store is not None:
            matrices.write_rest(kept.store, pieces)
            pieces = []
        notes = [*self.notes, *notes_by_chromosome(parts)]
        notes += advice(segments, cohort, self.spans, self.sums, options)
        return CnvResult(
            options=options,
            regions=regions,
            samples=cohort.cases,
            controls=cohort.controls,
            segments=segments,
            called_regions=join_regions(
                [part.regions for part in parts], cnvs, regions.names if mispaired else None
            ),
            classes=np.concatenate([part.classes for part in parts]),
            usual=np.concatenate([part.usual for part in parts]),
            robust_regions=join_regions(robust, cnvs) if robust else None,
            sex=cohort.sexes,
            ploidy=cohort.ploidy,
            kept=tuple(pieces),
            tracks=tuple(part.tracks for part in parts if part.tracks is not None),
            notes=tuple(map(spelled, notes)),
            lengths=self.lengths,
            sex_coverage=cohort.sex_coverage,
            genotypes=Genotypes.joined(genotypes) if genotypes else None,
            facts=self.facts,
        )


def _sums(values: NDArray[Any], spans: Sequence[CnvSpan]) -> Floats:
    """Return float64[chromosomes, columns], with several threads for large chromosomes."""

    def of(span: CnvSpan) -> Floats:
        threads = max(1, cores() * (span.stop - span.first) // len(values))
        return normalization.CohortCounts(values[span.rows], threads).totals()

    with ThreadPoolExecutor(cores(), "sums") as pool:
        return np.array([*pool.map(of, spans)]).reshape(-1, values.shape[1])


def _joined(*tables: NDArray[Any], is_shared: bool) -> NDArray[Any]:
    """Return the columns of tables side by side; is_shared: where worker processes find them."""
    columns = sum(table.shape[1] for table in tables)
    values = shareable.empty((len(tables[0]), columns), np.result_type(*tables), is_shared)

    def copy(begin: int, stop: int) -> None:
        np.concatenate([table[begin:stop] for table in tables], axis=1, out=values[begin:stop])

    over_spans(copy, len(values), cores(), LEAST_COPIED)
    return values

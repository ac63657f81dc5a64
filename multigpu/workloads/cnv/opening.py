"""Opening of a job: a request is checked, and alignments are counted."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multigpu.cluster.deploy.start import PendingWorkers
from multigpu.cluster.devices import memory
from multigpu.errors import UsageError, option
from multigpu.formats.alignments.files import RG, renamed_as
from multigpu.formats.storage.sources import read_beginning
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_zarr import CountsStore
from multigpu.kernels.compiled.parallel import cores
from multigpu.kernels.normalization import cpu as normalization
from multigpu.run.options import GpuLanes
from multigpu.workloads.cnv.job import CnvJob, PlannedCnvJob
from multigpu.workloads.cnv.notes import (
    contradicted_sex_notes,
    doubtful_sex_notes,
    genome_notes,
    unused_sex_notes,
)
from multigpu.workloads.cnv.options import (
    FIELDS,
    GATK_SV,
    copy_number_lanes,
    unused_parameter_notes,
)
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.samples.annotations import read_ploidies, read_sexes
from multigpu.workloads.cnv.samples.cohort import Cohort, check_counts, check_samples
from multigpu.workloads.cnv.samples.filters import (
    FilteredRegions,
    correct,
    filter_regions,
    with_gc_column,
    with_gc_of_bed,
)
from multigpu.workloads.cnv.samples.genomes import chromosome_lengths, find_genome
from multigpu.workloads.cnv.samples.inputs import check_counting, counting_of_cohort
from multigpu.workloads.cnv.samples.noise import preset_notes
from multigpu.workloads.cnv.samples.reference_samples import nearest_controls
from multigpu.workloads.cnv.samples.sex import cohort_coverage
from multigpu.workloads.count.job import CountJob

TARGETED = ("panel", "exome")  # presets for reads of targets


@dataclass(frozen=True, kw_only=True)
class OpenedInputs:
    """Cases and controls, looked at and checked; alignments are jobs that count them.

    controls      a kept cohort, where it depends on the cases which of its samples are needed
    cohort        what is known of the samples before they are counted
    filtered      the regions that are called in
    infers_sexes  whether sexes are to be inferred from the counts
    """

    cases: Counts | CountJob
    controls: Counts | CountJob | CountsStore | None
    cohort: Cohort
    filtered: FilteredRegions
    infers_sexes: bool

    @property
    def both(self) -> list[Counts | CountJob | CountsStore]:
        """Cases, and controls if there are any."""
        return [self.cases] if self.controls is None else [self.cases, self.controls]


def open_inputs(request: CnvRequest) -> OpenedInputs:
    """Return what a request is about. Raises UsageError and InputError for what cannot be a run."""
    where, counting = (request.run, request.client), request.count_options
    check_counting(request.given, request.cases, request.control_samples)
    _check_files(request)
    of_cases = counting
    store = None if request.cohort is None else CountsStore(str(request.cohort))
    if store is not None and request.cases.is_alignments:
        of_cases = counting_of_cohort(store, counting, request.given)
    cases = request.cases.open(of_cases, *where)
    if store is not None and isinstance(cases, CountJob):
        store.check_lengths(request.cases.paths[0], cases.lengths)
    controls: Counts | CountJob | CountsStore | None = None
    if store is not None and request.options.is_hmm and not request.chromosomes:
        controls = store
    elif request.control_samples is not None:
        if counting.sample_names != (RG,):  # names that are given are those of the cases
            counting = replace(counting, sample_names=())
        controls = request.control_samples.open(counting, *where)
    if column := request.gc_column:
        if isinstance(cases, Counts):
            cases = with_gc_column(cases, column, is_required=True)
        if isinstance(controls, Counts):
            controls = with_gc_column(controls, column, is_required=False)
    references = cases.lengths if isinstance(cases, CountJob) else {}
    cohort = Cohort.of(cases, controls)
    cohort = replace(cohort, genome_name=request.genome, references=references)
    genome, regions = find_genome(request.genome, cohort.regions), cohort.regions
    if column and regions.gc is None:
        regions = with_gc_of_bed(regions, request)
    filtered = filter_regions(regions, request)
    if len(filtered.regions) < len(regions):
        # The last regions, by which a genome and lengths are recognized, may be left out.
        name = genome.name if genome and not request.genome else request.genome
        lengths = chromosome_lengths(genome, regions, references)
        cohort = replace(cohort, genome_name=name, lengths=lengths)
    cohort = replace(cohort, regions=filtered.regions)
    others = None if controls is None else cohort.controls
    check_samples(cohort.cases, others, request.options, request.cohort)
    ploidy = read_ploidies(request.ploidy, cohort.names)
    sexes = read_sexes(_sex_of(request, cohort), cohort.names)
    return OpenedInputs(
        cases=cases,
        controls=controls,
        cohort=replace(cohort, ploidy=ploidy, sexes=sexes or ()),
        filtered=filtered,
        infers_sexes=request.sex == "infer" and not request.compat_r,
    )


def _check_files(request: CnvRequest) -> None:
    """Raise UsageError and InputError for files that would be missed after hours of counting."""
    for path in request.filter_files:
        read_beginning(path)
    needs_targets = request.preset in TARGETED and request.cases.is_alignments
    if needs_targets and request.cohort is None and not {"regions", "window"} & {*request.given}:
        raise UsageError(
            f"{option('preset')} {request.preset} needs {option('regions')} BED, the targets:"
            " reads would be counted in windows of the genome"
        )


def _sex_of(request: CnvRequest, cohort: Cohort) -> Any:
    """Return what is given of sexes: in the sample sheet, unless elsewhere, too."""
    listed = [sex for each in request.inputs for sex in each.sexes or [""] * len(each.paths)]
    if request.sex != "infer" or not any(listed):
        return request.sex
    if len(listed) != len(cohort.names):
        raise UsageError("the sample sheet gives sexes of files that have several samples")
    return dict(zip(cohort.names, listed, strict=True))


def open_job(
    request: CnvRequest,
    *,
    keep_in: str | None = None,
    count: Callable[[CountJob], Counts] = CountJob.counts,
    keep_counts: Callable[[Counts], None] | None = None,
    lanes: GpuLanes | None = None,
    **settings: Any,
) -> CnvJob:
    """Return the job of a request, whose alignments are counted, the cases' first.

    keep_in      folder for the counts of each alignment file
    count        runs a job that counts alignments
    keep_counts  called with the counts of the cases, where these were counted
    lanes        with which workers were started; None: by the size of the counts
    settings     see `CnvJob` and `Job`

    Raises UsageError and InputError.
    """
    # Importing Numba and CuPy takes long, and the threads that read counts seldom hold the
    # interpreter. For a command only, which leaves whatever threads do: other programs may fork.
    if coming := settings.get("coming"):
        threading.Thread(target=_load, args=(coming,), daemon=True).start()
    opened, options = open_inputs(request), request.options
    for each in opened.both:
        if isinstance(each, CountJob):
            each.keep_in = keep_in
    cases, controls, cohort = opened.cases, opened.controls, opened.cohort
    if isinstance(cases, CountJob):
        cases = count(cases)
        if keep_counts:
            keep_counts(cases)
    if isinstance(controls, CountJob):
        controls = count(controls)
    elif isinstance(controls, CountsStore):
        wanted = options.reference_samples
        controls, cohort = nearest_controls(cases, controls, cohort, wanted)
    if controls is not None and request.rename == "auto":
        controls = replace(controls, regions=renamed_as(controls.regions, cases.regions))
    cases, controls, notes = _filtered(request, opened.filtered, cohort, cases, controls)
    coverage, given = None, any(cohort.sexes) and cohort.ploidy is None
    if opened.infers_sexes or given:
        coverage = cohort_coverage(cases, controls, cohort.genome_name)
    if opened.infers_sexes and coverage:
        # A sample sheet may tell some.
        told = cohort.sexes or [""] * len(cohort.names)
        sexes = tuple(a or b for a, b in zip(told, coverage.sexes(), strict=True))
        cohort = replace(cohort, sexes=sexes, sex_coverage=coverage)
    job = CnvJob(
        cases,
        options,
        request.run,
        controls=controls,
        cohort=cohort,
        inputs=request.paths,
        client=request.client,
        lanes=lanes or copy_number_lanes(request.count_bytes),
        **settings,
    )
    job.notes += [*notes, *genome_notes(cohort)]
    job.notes += doubtful_sex_notes(cohort)
    job.notes += contradicted_sex_notes(cohort, coverage)
    job.notes += unused_sex_notes(request.sex, cohort, options)
    job.notes += unused_parameter_notes(options, request.given)
    if options.is_hmm and any(each != options.usual_copies for each in cohort.ploidy or ()):
        hmm = f"{option('segmentation')} hmm"
        job.notes.append(
            f"{option('ploidy')} stands in for sexes and does nothing else with {hmm}: copies are"
            f" counted as if {options.usual_copies} were usual in every sample"
        )
    if len(cohort.cases) > 1 and not {"preset", *FIELDS} & {*request.given}:
        job.notes += preset_notes(cohort)
    return job


def _load(workers: PendingWorkers) -> None:
    """Import what the first kernels need. What fails here fails again where they are called."""
    with suppress(Exception):
        normalization.CohortCounts(np.zeros((1, 1), np.int32), 1).totals()
    if workers.devices:
        memory.cupy_problem()  # imports it


def _filtered(
    request: CnvRequest,
    filtered: FilteredRegions,
    cohort: Cohort,
    cases: Counts,
    controls: Counts | None,
) -> tuple[Counts, Counts | None, tuple[str, ...]]:
    """Return cases and controls in the regions that are left, corrected, and notes on both."""
    if not request.has_filters:
        return cases, controls, ()
    check_counts(cases, controls, request.options)
    tables = [filtered.counts(each) for each in (cases, controls) if each is not None]
    notes = list(filtered.notes)
    if request.gc is not None or filtered.mappability is not None:
        for k, source in enumerate(request.inputs):
            if not source.paths:  # what a user has given does not change
                tables[k] = replace(tables[k], values=tables[k].values.copy())
        notes += correct(tables, request, filtered.mappability, cohort.told_lengths, cores())
    return tables[0], tables[1] if controls is not None else None, tuple(notes)


def open_plan(request: CnvRequest) -> PlannedCnvJob:
    """Return the job of a request for its plan: tables are read, alignments are not counted."""
    run, options = request.run, request.options
    lanes = copy_number_lanes(request.count_bytes)
    if request.preset == GATK_SV:
        from multigpu.workloads.cnv.gatk_sv import open_batch

        return open_batch(request, lanes=lanes, devices=run.devices())
    if not request.has_alignments:
        return open_job(request, lanes=lanes, devices=run.devices())
    opened = open_inputs(request)
    cohort = opened.cohort
    job = PlannedCnvJob(cohort, options, run, lanes)
    job.notes += [note for each in opened.both for note in each.notes]
    job.notes += opened.filtered.notes
    to_count = [each for each in opened.both if isinstance(each, CountJob)]
    job.uncounted = [file.path for each in to_count for file in each.files]
    return job

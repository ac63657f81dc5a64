"""Opening of a job: a request is checked, and alignments are counted."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from multigpu.formats.alignments.files import RG
from multigpu.formats.tables.counts import Counts
from multigpu.run.options import GpuLanes
from multigpu.workloads.cnv.job import CnvJob, PlannedCnvJob
from multigpu.workloads.cnv.notes import (
    doubtful_sex_notes,
    genome_notes,
    unread_notes,
    unused_sex_notes,
)
from multigpu.workloads.cnv.options import copy_number_lanes, unused_parameter_notes
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.samples.checks import check_samples
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.facts import read_ploidies, read_sexes
from multigpu.workloads.cnv.samples.genomes import X_NAMES, find_genome
from multigpu.workloads.cnv.samples.inputs import check_counting, rename_as_cases
from multigpu.workloads.cnv.samples.sex import cohort_coverage
from multigpu.workloads.count.job import CountJob

CountsOrJob = Counts | CountJob  # of alignments


def open_inputs(
    request: CnvRequest, client: Any = None
) -> tuple[CountsOrJob, CountsOrJob | None, tuple[int, ...] | None, tuple[str, ...] | None]:
    """Return cases and controls, opened and checked, and the ploidy and the sex of each.

    Alignments are not counted yet: they are a job that counts them. For ploidies and sexes see
    `samples.facts`.

    Raises UsageError and InputError for what cannot be a run.
    """
    run, counting = request.run, request.count_options
    check_counting(request.given, request.cases, request.control_samples)
    cases, controls = request.cases.open(counting, run, client), None
    if request.control_samples is not None:
        if counting.sample_names != (RG,):  # names that are given are those of the cases
            counting = replace(counting, sample_names=())
        controls = request.control_samples.open(counting, run, client)
    find_genome(request.genome, cases.regions)
    control_names = None if controls is None else controls.samples
    check_samples(cases.samples, control_names, request.options)
    names = [*cases.samples, *(control_names or ())]
    return cases, controls, read_ploidies(request.ploidy, names), read_sexes(request.sex, names)


def open_job(
    request: CnvRequest,
    *,
    client: Any = None,
    count_cache: str | None = None,
    count: Callable[[CountJob], Counts] | None = None,
    keep_counts: Callable[[Counts], None] | None = None,
    lanes: GpuLanes | None = None,
    **settings: Any,
) -> CnvJob:
    """Return the job of a request, whose alignments are counted, the cases' first.

    client       a `dask.distributed.Client` to use instead of what the request says
    count_cache  folder for the counts of each alignment file, where the request names none
    count        runs a job that counts alignments; None: without progress
    keep_counts  called with the counts of the cases, where these were counted
    lanes        with which workers were started; None: by the size of the counts
    settings     see `CnvJob` and `Job`

    Raises UsageError and InputError.
    """
    if request.cache is None:
        request = request.changed(cache=count_cache)
    options, count = request.options, count or CountJob.counts
    cases, controls, ploidy, sexes = open_inputs(request, client)
    references = coverage = None
    if isinstance(cases, CountJob):
        references = cases.lengths
        cases = count(cases)
        if keep_counts:
            keep_counts(cases)
    if isinstance(controls, CountJob):
        controls = count(controls)
    if controls is not None and request.rename == "auto":
        controls = rename_as_cases(controls, cases)
    if sexes is None and not options.compat_r:
        coverage = cohort_coverage(cases, controls, request.genome)
        sexes = coverage.sexes() if coverage else ()
    job = CnvJob(
        cases,
        options,
        request.run,
        controls=controls,
        ploidy=ploidy,
        sexes=sexes or (),
        sex_coverage=coverage,
        genome=request.genome,
        references=references,
        inputs=request.paths,
        client=client,
        lanes=lanes or copy_number_lanes(request.count_bytes),
        **settings,
    )
    job.notes += genome_notes(job.cohort)
    job.notes += doubtful_sex_notes(job.cohort)
    job.notes += unused_sex_notes(request.sex, job.cohort, options)
    job.notes += unused_parameter_notes(options, request.given)
    return job


def open_plan(request: CnvRequest) -> PlannedCnvJob:
    """Return the job of a request for its plan: tables are read, alignments are not counted."""
    run, options = request.run, request.options
    lanes = copy_number_lanes(request.count_bytes)
    if not request.has_alignments:
        planned = open_job(request, lanes=lanes, devices=run.devices())
        planned.notes += unread_notes(planned.spans, planned.sums, options)
        return planned
    cases, controls, ploidy, sexes = open_inputs(request)
    both = [each for each in (cases, controls) if each is not None]
    cohort = Cohort(
        regions=cases.regions,
        cases=cases.samples,
        controls=() if controls is None else controls.samples,
        ploidy=ploidy,
        sexes=sexes or (),
        genome_name=request.genome,
    )
    infers = sexes is None and options.compares_by_sex and not options.compat_r
    has_x = any(name in X_NAMES for name in cohort.regions.names)
    job = PlannedCnvJob(cohort, options, run, lanes)
    job.notes += [note for each in both for note in each.notes]
    to_count = [each for each in both if isinstance(each, CountJob)]
    job.uncounted = [file.path for each in to_count for file in each.files]
    job.infers_sexes = infers and has_x and ploidy is None
    return job

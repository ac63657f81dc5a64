"""From what a copy-number run is given to a job: all is checked, before alignments are counted."""

from collections.abc import Callable, Iterable
from typing import Any

from multigpu.cnv.job import CnvJob, check_samples
from multigpu.cnv.options import CnvOptions, idle
from multigpu.cnv.samples import cohort, genomes, inputs
from multigpu.count.job import CountJob
from multigpu.count.options import CountOptions
from multigpu.formats.tables.counts import Counts
from multigpu.run.options import RunOptions

Source = Counts | CountJob  # counts, or the job that makes them


def opened(
    cases: Source,
    controls: Source | None,
    options: CnvOptions,
    run: RunOptions,
    *,
    counting: CountOptions,
    ploidy: Any,
    sex: Any,
    genome: str | None,
    given: Iterable[str],
    count: Callable[[CountJob], Counts] = lambda job: job.counts(),
    **more: Any,
) -> CnvJob:
    """The job, whose alignments are counted by `count`, the cases' first.

    ploidy, sex  see `cohort.ploidies` and `cohort.sexes`
    given        the parameters that were given, for notes on those without effect
    more         see `CnvJob`

    Raises UsageError and InputError.
    """
    facts = checked(cases, controls, options, ploidy, sex, genome)
    counts, others = (_counts(each, count) for each in (cases, controls))
    assert counts is not None
    if others is not None:
        others = cohort.as_controls(others, counts, counting)
    infer, coverage = not options.compat_r, None
    if facts.sexes is None and infer:
        coverage = inputs.sex_coverage(counts, others, genome)
    sexes = facts.sexes or (coverage.sexes() if coverage else ())
    job = CnvJob(
        counts, options, run, controls=others, ploidy=facts.ploidy, sexes=sexes, genome=genome,
        coverage=coverage,
        lengths=cases.lengths if isinstance(cases, CountJob) else None, **more,
    )  # fmt: skip
    if coverage is not None and facts.ploidy is None:
        job.notes += cohort.sexes_in_doubt(coverage, job.names)
    job.notes += cohort.sexes_unused(sex, job, infer)
    job.notes += idle(options, given)
    return job


def checked(
    cases: Source,
    controls: Source | None,
    options: CnvOptions,
    ploidy: Any,
    sex: Any,
    genome: str | None,
) -> cohort.Facts:
    """What is known of samples without counts. Raises UsageError for what cannot be a run."""
    genomes.known(genome, cases.regions)
    check_samples(cases.samples, None if controls is None else controls.samples, options)
    names = [*cases.samples, *(controls.samples if controls else ())]
    return cohort.Facts(cohort.ploidies(ploidy, names), cohort.sexes(sex, names))


def _counts(source: Source | None, count: Callable[[CountJob], Counts]) -> Counts | None:
    return count(source) if isinstance(source, CountJob) else source

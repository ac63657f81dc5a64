"""The Python function `multigpu.cnv`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from multigpu.config import RunOptions
from multigpu.copynumber import inputs, matrices
from multigpu.copynumber.job import FIGURES, CnvJob
from multigpu.copynumber.options import CnvOptions
from multigpu.copynumber.result import CnvResult
from multigpu.counting import CountOptions
from multigpu.io.counts import Counts


def cnv(
    counts_or_bams: Any,
    *,
    model: str = "cn.mops",
    preset: str | None = None,
    controls: Any = None,
    ploidy: Mapping[str, int] | None = None,
    sex: Mapping[str, str] | str | None = "infer",
    count: CountOptions | None = None,
    keep_matrices: bool = True,
    client: Any = None,
    **options: Any,
) -> CnvResult:
    """Copy-number variants of a cohort, by cn.MOPS.

    counts_or_bams  a `Counts` object, a counts table, or BAM and CRAM files
    model           cn.mops, haplo, exome, single, reference
    preset          "gcnmops": the parameters of that program
    controls        the same of controls, for the model reference
    ploidy          of samples on all chromosomes; 2 where a sample is not named
    sex             "male" or "female" of samples; "infer": by their coverage of X; None: not used
    count           how alignments are counted
    keep_matrices   whether the result has the matrices
    client          a `dask.distributed.Client` to use instead of this machine
    options         fields of `CnvOptions` (None: the model's default) and of `RunOptions`

    Raises UsageError and InputError for what is wrong with options and files.
    """
    for_run = {field.name for field in fields(RunOptions)} & set(options)
    run = RunOptions(**{name: options.pop(name) for name in for_run})
    chosen = CnvOptions.of(model, preset, **options)
    counting = CountOptions(compat_r=chosen.compat_r) if count is None else count
    counts = _counts(counts_or_bams, counting, run, client)
    of_controls = None if controls is None else _counts(controls, counting, run, client)
    names = [*counts.samples, *(of_controls.samples if of_controls else ())]
    if isinstance(sex, str) and not chosen.compat_r:
        sexes = inputs.inferred_sexes(counts, of_controls)
    else:
        sexes = inputs.sexes(sex, names) if isinstance(sex, Mapping) else ()
    job = CnvJob(
        counts, chosen, run, controls=of_controls, sexes=sexes, client=client,
        ploidy=None if ploidy is None else inputs.ploidies(ploidy, names),
    )  # fmt: skip
    keep = matrices.names(chosen.posterior) if keep_matrices else ()
    return job.result(keep, shown=FIGURES)


def _counts(given: Any, counting: CountOptions, run: RunOptions, client: Any) -> Counts:
    if isinstance(given, Counts):
        return given
    return inputs.read_cohort(inputs.paths_of(given), counting, run, client)

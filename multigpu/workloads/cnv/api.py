"""The Python function `multigpu.cnv`."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from multigpu.errors import UsageError
from multigpu.run.keywords import ALIASES, check_keywords, in_python, parameters_named, run_keywords
from multigpu.run.options import RunOptions
from multigpu.run.values import text_of
from multigpu.workloads.cnv.opening import open_job
from multigpu.workloads.cnv.options import FIELDS, SHOWN_REGIONS, CnvOptions
from multigpu.workloads.cnv.output import matrices
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.result import CnvResult
from multigpu.workloads.cnv.samples.inputs import COUNTING, SampleInput
from multigpu.workloads.count.options import CountOptions

COMMAND_NAMES = {**ALIASES, "counts_cache": "cache"}  # names on the command line, and ours


@parameters_named()
def cnv(
    counts_or_bams: Any,
    *,
    model: str = "cn.mops",
    preset: str | None = None,
    controls: Any = None,
    ploidy: Any = None,
    sex: Any = "infer",
    genome: str | None = None,
    count: CountOptions | None = None,
    keep_matrices: bool = True,
    client: Any = None,
    **options: Any,
) -> CnvResult:
    """Return the copy-number variants of a cohort, by cn.MOPS.

    counts_or_bams  a `Counts` object, a counts table (a file, or one of pyarrow or pandas), or BAM
                    and CRAM files
    model           cn.mops, haplo, exome, single or reference
    preset          "gcnmops": the parameters of that program
    controls        counts or files of controls, for the model reference
    ploidy          of samples on all chromosomes: a file, a mapping (2 where a sample is not
                    named), a number for all, or one for each sample and then control
    sex             "infer": by their coverage of X and Y; "none" or None: not used; "male",
                    "female": for all; a file, or a mapping of samples to "male" or "female"
    genome          hg38, hg19, hs1, mm39 or mm10: where its pseudoautosomal regions are, in which
                    everybody has two copies; None: recognized by the lengths of its chromosomes
    count           how alignments are counted, instead of the parameters of `multigpu.count`
    keep_matrices   whether the result has the matrices
    client          a `dask.distributed.Client` to use instead of this machine
    options         fields of `CnvOptions` (None: the model's default) and of `RunOptions`, and the
                    parameters of `multigpu.count`; names of the command line work, too: `compat`,
                    `counts_cache`, `workers`

    Raises UsageError and InputError for wrong options and files.
    """
    known = [*COMMAND_NAMES, "compat", *FIELDS, *run_keywords(), *COUNTING]
    check_keywords(cnv, options, known)
    options = {COMMAND_NAMES.get(name, name): value for name, value in options.items()}
    run = RunOptions(**_pop(options, [field.name for field in fields(RunOptions)]))
    counting_options = _pop(options, COUNTING)
    chosen = CnvOptions.of(model, preset, **options)
    counting, counting_given = _counting(count, counting_options, chosen.compat_r)
    request = CnvRequest(
        cases=SampleInput.from_python(counts_or_bams),
        controls=None if controls is None else SampleInput.from_python(controls),
        options=chosen,
        run=run,
        counting=counting,
        counting_given=counting_given,
        ploidy=ploidy,
        sex=sex,
        genome=None if genome is None else text_of("genome", genome),
        given=tuple(name for name, value in options.items() if value is not None),
    )
    keep = matrices.names(chosen.posterior) if keep_matrices else ()
    result = open_job(request, client=client).result(keep, shown=SHOWN_REGIONS)
    return replace(result, notes=tuple(map(in_python, result.notes)))


def _pop(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the options with these names, and remove them from `options`."""
    return {name: options.pop(name) for name in names if name in options}


def _counting(
    count: CountOptions | None, parameters: dict[str, Any], compat_r: bool
) -> tuple[CountOptions, tuple[str, ...]]:
    """Return how alignments are counted, and the parameters of that which were given."""
    given = {name: value for name, value in parameters.items() if value is not None}
    if count is None:
        return CountOptions.of(compat_r=compat_r, **given), tuple(given)
    if not isinstance(count, CountOptions):
        raise UsageError(f"count is of type {type(count).__name__}, not CountOptions")
    if given:
        raise UsageError(f"give {next(iter(given))} or count, not both")
    defaults = CountOptions().parameters()
    changed = [name for name, value in count.parameters().items() if value != defaults[name]]
    return count, tuple(changed)

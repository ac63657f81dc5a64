"""The Python function `multigpu.cnv`."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from multigpu.cnv.job import SHOWN_REGIONS
from multigpu.cnv.opening import opened
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.output import matrices
from multigpu.cnv.result import CnvResult
from multigpu.cnv.samples import cohort, inputs
from multigpu.cnv.samples.frames import counts_of, is_frame
from multigpu.count.job import CountJob
from multigpu.count.options import CountOptions
from multigpu.errors import UsageError
from multigpu.formats.tables.counts import Counts, read_counts
from multigpu.run.keywords import ALIASES, check_keywords, run_keywords
from multigpu.run.options import RunOptions
from multigpu.run.values import text_of

COMMAND = {**ALIASES, "counts_cache": "cache"}  # its names of parameters, and ours


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
    model           cn.mops, haplo, exome, single, reference
    preset          "gcnmops": the parameters of that program
    controls        the same of controls, for the model reference
    ploidy          of samples on all chromosomes: a file, a mapping (2 where a sample is not
                    named), a number for all, or one for each sample and then control
    sex             "infer": by their coverage of X and Y; "none", None: not used; "male", "female":
                    that of all; a file, or a mapping of samples to "male" or "female"
    genome          hg38, hg19, hs1, mm39, mm10: where its pseudoautosomal regions are, in which
                    everybody has two copies; None: by the lengths of its chromosomes
    count           how alignments are counted, instead of the parameters of `multigpu.count`
    keep_matrices   whether the result has the matrices
    client          a `dask.distributed.Client` to use instead of this machine
    options         fields of `CnvOptions` (None: the model's default) and of `RunOptions`, and the
                    parameters of `multigpu.count`; or as the command calls them: `compat`,
                    `counts_cache`, `workers`

    Raises UsageError and InputError for what is wrong with options and files.
    """
    known = [*COMMAND, "compat", *(field.name for field in fields(CnvOptions))]
    check_keywords(cnv, options, [*known, *run_keywords(), *cohort.COUNTING])
    options = {COMMAND.get(name, name): value for name, value in options.items()}
    run = RunOptions(**_taken(options, [field.name for field in fields(RunOptions)]))
    counted = _taken(options, cohort.COUNTING)
    chosen = CnvOptions.of(model, preset, **options)
    if genome is not None:
        genome = text_of("genome", genome)
    counting, given = _counting(count, counted, chosen.compat_r)
    cases, others = _source(counts_or_bams), None if controls is None else _source(controls)
    cohort.check_counting(given, _table(cases), None if others is None else _table(others))
    alike = cohort.of_controls(counting)
    job = opened(
        _opened(cases, counting, run, client),
        None if others is None else _opened(others, alike, run, client),
        chosen, run, counting=counting, ploidy=ploidy, sex=sex, genome=genome,
        given=[name for name, value in options.items() if value is not None], client=client,
    )  # fmt: skip
    keep = matrices.names(chosen.posterior) if keep_matrices else ()
    return job.result(keep, shown=SHOWN_REGIONS)


def _taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those of these names, which `options` then has no more."""
    return {name: options.pop(name) for name in names if name in options}


def _counting(
    count: CountOptions | None, counted: dict[str, Any], compat_r: bool
) -> tuple[CountOptions, list[str]]:
    """How alignments are counted, and which parameters of that were given."""
    given = {name: value for name, value in counted.items() if value is not None}
    if count is None:
        return CountOptions.of(compat_r=compat_r, **given), list(given)
    if not isinstance(count, CountOptions):
        raise UsageError(f"count is of type {type(count).__name__}, not CountOptions")
    if given:
        raise UsageError(f"give {next(iter(given))} or count, not both")
    usual = CountOptions().parameters()
    return count, [name for name, value in count.parameters().items() if value != usual[name]]


def _source(given: Any) -> Counts | list[str]:
    """Counts, or paths. Raises UsageError for what is neither."""
    if isinstance(given, Counts):
        return given
    if is_frame(given):
        return counts_of(given)
    if isinstance(given, str | os.PathLike):
        return inputs.paths_of(given)
    paths = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [0]
    if not paths:
        raise UsageError("no input given: a counts table, or BAM and CRAM files")
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise UsageError(
            f"an input of type {type(given).__name__} has no regions: give Counts, a table with"
            " the columns chrom, start, end and samples, or files"
        )
    return inputs.paths_of(paths)


def _table(source: Counts | list[str]) -> str:
    """What a table is called in messages; empty for alignments."""
    if isinstance(source, Counts):
        return "what was given"
    return "" if inputs.are_alignments(source) else source[0]


def _opened(
    source: Counts | list[str], counting: CountOptions, run: RunOptions, client: Any
) -> Counts | CountJob:
    table = _table(source)
    if isinstance(source, list) and not table:
        return CountJob(source, counting, run, client)
    counts = source if isinstance(source, Counts) else read_counts(source[0])
    return cohort.selected(counts, counting.chromosomes, counting.rename == "auto", table)

"""`multigpu cnv`."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from multigpu.cluster.engine.events import now
from multigpu.cnv.options import MODELS, PRESETS, CnvOptions, copy_number_lanes
from multigpu.cnv.output.colours import CHOICES, Palette
from multigpu.count.command import COUNT, count_options, reads_found
from multigpu.errors import UsageError, quoted
from multigpu.run.command import (
    FILE,
    RUN,
    SUMMARY,
    WATCH,
    Decorator,
    Reporting,
    options,
    options_from,
)
from multigpu.run.options import Lanes, RunOptions

if TYPE_CHECKING:
    from multigpu.cnv.job import CnvJob
    from multigpu.cnv.result import CnvResult
    from multigpu.cnv.samples.cohort import Given
    from multigpu.cnv.uncounted import Uncounted
    from multigpu.count.job import CountJob
    from multigpu.count.options import CountOptions
    from multigpu.formats.tables.counts import Counts, Empty

# Of input: to read them takes as long as kernels take to load, which is memory beside the counts.
SOME_BYTES = 300_000_000


def _real(name: str, metavar: str, text: str) -> Decorator:
    return click.option(name, type=float, metavar=metavar, help=text)


def _whole(name: str, metavar: str, text: str) -> Decorator:
    return click.option(name, type=int, metavar=metavar, help=text)


MODEL = (
    click.option(
        "--model", type=click.Choice(list(MODELS)), default="cn.mops", show_default=True,
        help="Cohort, haploid genomes, exomes, one sample, or cases against --controls. What"
        " follows has R's defaults for the model.",
    ),
    click.option("--preset", type=click.Choice(list(PRESETS)), help="gcnmops: as that program."),
    click.option(
        "--controls", type=FILE, multiple=True, metavar="FILE",
        help="As INPUT; once for each file: what follows without it is INPUT.  [R: controls]",
    ),
    click.option(
        "--fold-changes", metavar="I,…", help="Expected fold change of every class.  [R: I]"
    ),
    click.option(
        "--classes", metavar="CN0,…", help="Their labels; one is CN2 (haplo: CN1).  [R: classes]"
    ),
    _real(
        "--prior-impact", "G",
        "Weight of the assumption that nothing changes.  [R: priorImpact]",
    ),
    _whole("--cycles", "N", "Of expectation-maximisation.  [R: cyc]"),
    _real(
        "--min-read-count", "N",
        "Regions with no more reads in any sample are unchanged.  [R: minReadCount]",
    ),
    click.option(
        "--posterior", is_flag=True, default=None,
        help="Keep the posterior of every class in the matrices.  [R: returnPosterior]",
    ),
)  # fmt: skip

NORMALIZATION = (
    click.option(
        "--norm", type=click.Choice(["0", "1", "2"]),
        help="0: counts are normalized already; 1: normalize; 2: model coverages.  [R: norm]",
    ),
    click.option(
        "--norm-type", type=click.Choice(["poisson", "mean", "median", "quant", "mode"]),
        help="What is made equal between samples.  [R: normType]",
    ),
    click.option(
        "--size-factor", type=click.Choice(["mean", "median", "quant", "mode"]),
        help="What a sample's size factor is taken from.  [R: sizeFactor]",
    ),
    _real("--norm-quantile", "Q", "Of --norm-type quant.  [R: normQu]"),
    _real("--size-factor-quantile", "Q", "Of --size-factor quant.  [R: quSizeFactor]"),
    click.option(
        "--genome-wide", is_flag=True, default=None,
        help="Normalize the genome as a whole, not every chromosome.",
    ),
    click.option(
        "--ploidy", type=FILE, metavar="N|FILE",
        help="On all chromosomes: a number for all samples, or lines `sample TAB number`; 2 for"
        " samples left out.  [R: ploidy]",
    ),
    click.option(
        "--sex", type=FILE, default="infer", show_default=True, metavar="SEX|FILE",
        help="male or female for all samples, or lines `sample TAB male|female|unknown`: X and Y"
        " are normalized by it; samples left out are taken as female. infer: by the coverage of X"
        " and Y. none: all samples are alike.",
    ),
    click.option(
        "--genome", metavar="ID",
        help="IGV's name of the genome, which says where its pseudoautosomal regions are, too; else"
        " by the lengths of its chromosomes.",
    ),
)  # fmt: skip

CALLING = (
    _real("--upper", "X", "Segments with this signed I/NI or more are gains.  [R: upperThreshold]"),
    _real(
        "--lower", "X",
        "Segments with this signed I/NI or less are losses.  [R: lowerThreshold]",
    ),
    _whole("--min-width", "N", "Regions of the smallest CNV.  [R: minWidth]"),
    click.option(
        "--use-median", is_flag=True, default=None,
        help="Judge a segment by its median, not its mean.  [R: useMedian]",
    ),
    click.option(
        "--segmentation", type=click.Choice(["fast", "cbs"]),
        help="cbs: circular binary segmentation.  [R: segAlgorithm]",
    ),
    _real("--seg-alpha", "X", "Share (below 1) or number of first breakpoints.  [R: alpha]"),
    _real(
        "--seg-eps", "X",
        "Least difference of neighbours at a breakpoint; else a quantile.  [R: eps]",
    ),
    _whole("--seg-delta", "N", "Windows without gain after which the search stops.  [R: delta]"),
    _whole("--seg-max-window", "N", "Regions in the largest window.  [R: maxInt]"),
    _real("--seg-cyber-weight", "X", "Weight of the variance of all regions.  [R: cyberWeight]"),
    click.option(
        "--seg-median", metavar="X[,X]",
        help="Medians of gains and losses when segments are merged.  [R: segMedianT]",
    ),
    _whole("--seed", "N", "Of --segmentation cbs."),
    _real("--robust", "X", "Also robust CNV regions, I/NI above X.  [R: makeRobustCNVR robust]"),
    _whole("--robust-min-width", "N", "Regions of the smallest one.  [R: makeRobustCNVR minWidth]"),
    click.option(
        "--fractional", type=click.Choice(["mean", "median"]),
        help="Also fractional copy numbers.  [R: calcFractionalCopyNumbers segStat]",
    ),
)  # fmt: skip

OUTPUT = (
    click.option(
        "-o", "--output", type=FILE, required=True, metavar="DIR", help="Folder for the results."
    ),
    click.option("--vcf/--no-vcf", default=True, help="cnvs.vcf.gz and its index."),
    click.option("--matrices/--no-matrices", default=True, help="matrices.zarr."),
    click.option("--report/--no-report", default=True, help="report.html."),
    click.option("--plots", type=click.Choice(["png", "svg"]), help="Also figures as files."),
    click.option(
        "--colors", type=click.Choice(CHOICES), default=CHOICES[0], show_default=True,
        help="Of BED, IGV session, report and figures: gains red and losses blue, as in IGV, or"
        " the other way round.",
    ),
)  # fmt: skip


@click.command()
@click.argument("inputs", nargs=-1, type=FILE, metavar="INPUT...")
@options(OUTPUT, MODEL, NORMALIZATION, CALLING, COUNT, RUN, SUMMARY, WATCH)
def command(**values: Any) -> None:
    """Call copy-number variants by cn.MOPS.

    INPUT is one table of read counts (`multigpu count` makes it), or BAM and CRAM files, one a
    sample, or directories with them, which are counted first. DIR gets
    cnvs, CNV regions and segments as tables, VCF, BED and SEG, the matrices as a Zarr store, and a
    report.
    """
    started = now()
    values = _expanded(values)
    from multigpu.cnv.prepare import prepare
    from multigpu.run.command import number_of, print_outcome, start_workers, watch

    running, reporting = options_from(RunOptions, values), Reporting.of(values)
    with ExitStack() as stack:
        size = _bytes([*values["inputs"], *values["controls"]])
        lanes = copy_number_lanes(size)
        workers = stack.enter_context(
            start_workers(running, reporting, lanes, prepare=prepare, here_too=size >= SOME_BYTES)
        )
        from multigpu.cnv import summary
        from multigpu.cnv.output import folder as output
        from multigpu.cnv.output import vcf

        _check(values)
        output.check_packages(_wanted(values))
        output.load_packages(_wanted(values))
        check_given(values)
        with output.output_folder(values["output"], running.resume) as folder:
            job, given = _job(
                values, running, folder, lanes,
                devices=workers.devices, coming=workers.coming, journal=folder / output.JOURNAL,
            )  # fmt: skip
            if values["vcf"]:
                vcf.check_names(job.regions.names)
            called = partial(_called, job)
            with watch(job, reporting, name="cnv", results=called), job.keep_journal():
                result = _run(job, given, values, folder)
                job.published = True
                if values["summary"]:
                    summary.write(values["summary"], job, result, given, values["output"], started)
    if not values["quiet"]:
        for note in result.notes:
            click.echo(f"multigpu: note: {note}", err=True)
    carriers, regions = len(set(result.called.sample.tolist())), len(result.called_regions)
    found = f"{number_of(len(result.called), 'CNV')} in {carriers:,} of"
    found += f" {number_of(len(result.samples), 'sample')}, {number_of(regions, 'CNV region')}"
    print_outcome(reporting, found, _place(values))


def _place(values: dict[str, Any]) -> str:
    """Return where the results are, and what to open first."""
    output: str = values["output"]
    if not values["report"]:
        return output
    return f"{output}: open {PurePath(output) / 'report.html'} in a browser"


def _expanded(values: dict[str, Any]) -> dict[str, Any]:
    """With the files that directories and patterns stand for."""
    if not any(map(_stands_for_others, (*values["inputs"], *values["controls"]))):
        return values  # what is needed for it takes a while to load
    from multigpu.cnv.samples.inputs import expanded

    return {**values, **{name: tuple(expanded(values[name])) for name in ("inputs", "controls")}}


def _stands_for_others(path: str) -> bool:
    """Without loading what knows it better."""
    with suppress(OSError, ValueError):
        return any(sign in path for sign in "*?[") or Path(path).is_dir()
    return False


def check_given(values: dict[str, Any]) -> None:
    """Raises UsageError where there is no input."""
    if not values["inputs"]:
        raise UsageError("no INPUT given: a counts table, or BAM and CRAM files")


def _bytes(paths: Sequence[str]) -> int:
    """Of the files among them."""
    size = 0
    for path in paths:
        with suppress(OSError, ValueError):
            size += Path(path).stat().st_size
    return size


def _check(values: dict[str, Any]) -> None:
    """Raises UsageError for outputs that cannot be written, or would replace an input."""
    from multigpu.cnv.output.folder import COUNTS, OURS
    from multigpu.cnv.samples.inputs import are_alignments
    from multigpu.run.command import check_outputs, keep_inputs

    others = [values["regions"], values["ploidy"], values["sex"]]
    inputs = [path for path in (*values["inputs"], *values["controls"], *others) if path]
    aligned = bool(values["inputs"]) and are_alignments(list(values["inputs"]))
    made = [*OURS, COUNTS] if aligned else OURS
    folder = [str(Path(values["output"]) / name) for name in made]
    keep_inputs(inputs, *check_outputs(Reporting.of(values)), *folder)


def _run(job: "CnvJob", given: "Given", values: dict[str, Any], folder: Path) -> "CnvResult":
    """Stages 2 to 5 and all files of `folder`."""
    from multigpu.cluster.engine.output import failures_named
    from multigpu.cnv.job import SHOWN_REGIONS
    from multigpu.cnv.output import folder as output
    from multigpu.cnv.output import matrices

    store = output.store_path(folder) if values["matrices"] else None
    keep = matrices.names(job.options.posterior) if store else ()
    palette = Palette.of(values["colors"])
    shown = SHOWN_REGIONS if values["report"] or values["plots"] else 0
    result = job.result(keep, store, shown, folder)
    with failures_named(values["output"]):
        output.write_tables(result, folder, values["genome"], values["vcf"], palette)
        if values["report"]:
            output.write_report(result, folder, given, palette)
        if values["plots"]:
            output.write_figures(result, folder, values["plots"], palette)
        gone = output.not_made_again(folder)
        output.publish(folder)
    if gone:
        note = f"removed from {values['output']}, left by an earlier run: {', '.join(gone)}"
        result = replace(result, notes=(*result.notes, note))
    return result


def _called(job: Any) -> str:
    """What the progress says of results, and where the time went so far."""
    from multigpu.cnv.work import STAGES

    found, spent = f"{job.facts.cnvs:,} CNVs", job.facts.seconds
    total = sum(spent.get(stage, 0.0) for stage in STAGES)
    if not total:
        return found
    shares = [f"{stage} {100 * spent.get(stage, 0.0) / total:.0f} %" for stage in STAGES]
    return f"{found}; {', '.join(shares)}"


def _wanted(values: dict[str, Any]) -> tuple[str, ...]:
    """The outputs that need packages of their own."""
    from multigpu.cnv.output import folder as output

    chosen = {
        output.MATRICES: values["matrices"], output.REPORT: values["report"],
        output.FIGURES: values["plots"],
    }  # fmt: skip
    return tuple(name for name, wanted in chosen.items() if wanted)


def _job(
    values: dict[str, Any], running: RunOptions, folder: Path | None, lanes: Lanes, **more: Any
) -> "tuple[CnvJob, Given]":
    """All input read, all options checked. Alignments are counted, and the counts written.

    folder  None: there is none, and nothing to count
    """
    import numpy as np

    from multigpu.cnv.opening import opened
    from multigpu.cnv.output import folder as output
    from multigpu.cnv.samples import cohort, inputs
    from multigpu.formats.storage import shareable
    from multigpu.formats.tables.counts import write_counts
    from multigpu.run.job import deployment

    chosen, asked = cnv_options(values), count_options(values)
    counting = asked
    if asked.cache is None and folder is not None:
        counting = replace(counting, cache=str(folder / output.KEPT_COUNTS))

    cases, others = list(values["inputs"]), list(values["controls"])
    aligned = inputs.are_alignments(cases)
    others_aligned = bool(others) and inputs.are_alignments(others)
    told = _check_counting(values, aligned, others_aligned)
    here = deployment(running, more["devices"], lanes)
    # Worker processes find the counts where they were read.
    empty = shareable.empty if here.local_cluster else np.empty
    opened_cases = _opened(cases, aligned, counting, running, empty)

    def count(job: "CountJob") -> "Counts":
        found = _counts(job, values)
        if job is opened_cases and folder is not None:
            write_counts(str(folder / output.COUNTS), found)
        return found

    job = opened(
        opened_cases, _opened_controls(others, others_aligned, counting, running, empty),
        chosen, running, counting=counting, ploidy=values["ploidy"] or None, sex=values["sex"],
        genome=values["genome"], given=[n for n, value in values.items() if value is not None],
        count=count, inputs=[*cases, *others], lanes=lanes, **more,
    )  # fmt: skip
    every = asked.parameters()
    counted = every if aligned or others_aligned else {name: every[name] for name in told}
    return job, cohort.Given(tuple(cases), tuple(others), counted, job.names, aligned)


def _check_counting(values: dict[str, Any], aligned: bool, others_aligned: bool) -> list[str]:
    """The parameters of counting that were given. Raises UsageError for those without effect."""
    from multigpu.cnv.samples import cohort

    source = click.get_current_context().get_parameter_source
    given = [name for name in cohort.COUNTING if source(name) == ParameterSource.COMMANDLINE]
    others = values["controls"][0] if values["controls"] else None
    table = "" if aligned else values["inputs"][0]
    cohort.check_counting(given, table, "" if others_aligned else others)
    return given


def _counts(job: "CountJob", values: dict[str, Any]) -> "Counts":
    """Those of alignments; the log is of the run behind it."""
    from multigpu.run.command import watch

    reporting = replace(Reporting.of(values), log_json=None, trace=None)
    with watch(job, reporting, name="count", results=partial(reads_found, job)):
        return job.counts()


def planned(values: dict[str, Any], running: RunOptions) -> "CnvJob | Uncounted":
    """The job without a run: tables are read, alignments are looked at and not counted."""
    from multigpu.cnv.opening import checked
    from multigpu.cnv.samples import inputs
    from multigpu.cnv.uncounted import Uncounted

    values = _expanded(values)
    check_given(values)
    cases, others = list(values["inputs"]), list(values["controls"])
    lanes = copy_number_lanes(_bytes([*cases, *others]))
    aligned = inputs.are_alignments(cases)
    others_aligned = bool(others) and inputs.are_alignments(others)
    if not aligned and not others_aligned:
        return _job(values, running, None, lanes, devices=running.devices())[0]
    _check_counting(values, aligned, others_aligned)
    chosen, counting = cnv_options(values), count_options(values)
    first = _opened(cases, aligned, counting, running)
    second = _opened_controls(others, others_aligned, counting, running)
    facts = checked(
        first, second, chosen, values["ploidy"] or None, values["sex"], values["genome"]
    )
    infers = facts.sexes is None and facts.ploidy is None
    return Uncounted(first, second, chosen, running, lanes, infers)


def _opened(
    paths: list[str],
    aligned: bool,
    counting: "CountOptions",
    running: RunOptions,
    empty: "Empty | None" = None,
) -> "Counts | CountJob":
    """The counts of a table, or what counts alignments."""
    import numpy as np

    from multigpu.cnv.samples import cohort
    from multigpu.count.job import CountJob
    from multigpu.formats.tables.counts import read_counts

    if aligned:
        return CountJob(paths, counting, running)
    rename, table = counting.rename == "auto", read_counts(paths[0], empty or np.empty)
    return cohort.selected(table, counting.chromosomes, rename, paths[0])


def _opened_controls(
    paths: list[str],
    aligned: bool,
    counting: "CountOptions",
    running: RunOptions,
    empty: "Empty | None" = None,
) -> "Counts | CountJob | None":
    from multigpu.cnv.samples import cohort

    alike = cohort.of_controls(counting)
    return _opened(paths, aligned, alike, running, empty) if paths else None


def cnv_options(values: dict[str, Any]) -> CnvOptions:
    """From the values of the options above; what was not given has the model's default."""
    given = {field.name: values[field.name] for field in fields(CnvOptions) if field.name in values}
    given["fold_changes"] = _numbers(values["fold_changes"], "--fold-changes")
    given["classes"] = tuple(values["classes"].split(",")) if values["classes"] else None
    given["norm"] = None if values["norm"] is None else int(values["norm"])
    given["seg_median"] = _numbers(values["seg_median"], "--seg-median")
    model = given.pop("model")
    return CnvOptions.of(model, values["preset"], compat_r=values["compat"] == "r", **given)


def _numbers(text: str | None, name: str) -> tuple[float, ...] | None:
    """Numbers with commas between."""
    if text is None:
        return None
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise UsageError(f"{name}: {quoted(text)} is no list of numbers") from error


def say_defaults(command: click.Command) -> None:
    """Adds what a parameter is, where it is not given, to its help."""
    usual = CnvOptions()
    for option in command.params:
        value = getattr(usual, option.name or "", None)
        if not isinstance(option, click.Option) or option.show_default:
            continue
        if value is None or value is False:
            continue
        others = [
            f"; {model}: {_shown(changes[option.name])}"
            for model, changes in MODELS.items()
            if option.name in changes
        ]
        option.help = f"{option.help}  [default: {_shown(value)}{''.join(others)}]"


def _shown(value: Any) -> str:
    """A list by its ends."""
    if isinstance(value, tuple):
        return f"{value[0]},{value[1]},…,{value[-1]}"
    return f"{value:g}" if isinstance(value, float) else str(value)


say_defaults(command)

"""Options of `multigpu cnv` on the command line, in the groups of its help."""

from typing import Any

import click

from multigpu.cnv.options import MODELS, PRESETS, CnvOptions
from multigpu.cnv.output.colours import CHOICES
from multigpu.run.command import FILE, Decorator


def _real(name: str, metavar: str, text: str) -> Decorator:
    """Return an option that takes a real number."""
    return click.option(name, type=float, metavar=metavar, help=text)


def _whole(name: str, metavar: str, text: str) -> Decorator:
    """Return an option that takes a whole number."""
    return click.option(name, type=int, metavar=metavar, help=text)


MODEL = (
    click.option(
        "--model",
        type=click.Choice(list(MODELS)),
        default="cn.mops",
        show_default=True,
        help="What the samples are: a cohort (cn.mops), haploid genomes, exomes, a single sample,"
        " or cases against --controls (reference). The options below have R's defaults for the"
        " model.",
    ),
    click.option(
        "--preset",
        type=click.Choice(list(PRESETS)),
        help="gcnmops: the parameters of that program.",
    ),
    click.option(
        "--controls",
        type=FILE,
        multiple=True,
        metavar="FILE",
        help="Controls, as INPUT; give the option once for each file.  [R: controls]",
    ),
    click.option(
        "--fold-changes", metavar="I,…", help="Expected fold change of each class.  [R: I]"
    ),
    click.option(
        "--classes",
        metavar="CN0,…",
        help="Labels of the classes; one is CN2 (haplo: CN1).  [R: classes]",
    ),
    _real("--prior-impact", "G", "Weight of the prior that nothing changes.  [R: priorImpact]"),
    _whole("--cycles", "N", "Cycles of expectation maximisation.  [R: cyc]"),
    _real(
        "--min-read-count",
        "N",
        "Regions in which no sample has more reads are unchanged.  [R: minReadCount]",
    ),
    click.option(
        "--posterior",
        is_flag=True,
        default=None,
        help="Keep the posterior of every class in the matrices.  [R: returnPosterior]",
    ),
)

NORMALIZATION = (
    click.option(
        "--norm",
        type=click.Choice(["0", "1", "2"]),
        help="0: take counts as normalized; 1: normalize them; 2: model coverages.  [R: norm]",
    ),
    click.option(
        "--norm-type",
        type=click.Choice(["poisson", "mean", "median", "quant", "mode"]),
        help="Statistic that is made equal in all samples.  [R: normType]",
    ),
    click.option(
        "--size-factor",
        type=click.Choice(["mean", "median", "quant", "mode"]),
        help="Statistic of a sample that is its size factor.  [R: sizeFactor]",
    ),
    _real("--norm-quantile", "Q", "Quantile for --norm-type quant.  [R: normQu]"),
    _real("--size-factor-quantile", "Q", "Quantile for --size-factor quant.  [R: quSizeFactor]"),
    click.option(
        "--genome-wide",
        is_flag=True,
        default=None,
        help="Normalize the genome as a whole, not each chromosome by itself.",
    ),
    click.option(
        "--ploidy",
        type=FILE,
        metavar="N|FILE",
        help="Ploidy on all chromosomes: a number for all samples, or a file with lines `sample TAB"
        " number`; 2 for samples left out.  [R: ploidy]",
    ),
    click.option(
        "--sex",
        type=FILE,
        default="infer",
        show_default=True,
        metavar="SEX|FILE",
        help="Sex of the samples, by which X and Y are normalized. infer: by their coverage of X"
        " and Y; none: do not use sexes; male or female: for all samples; a file: lines `sample TAB"
        " male|female|unknown`, where samples left out are taken as female.",
    ),
    click.option(
        "--genome",
        metavar="ID",
        help="IGV's name of the genome, for its pseudoautosomal regions and the IGV session."
        "  [default: recognized by the lengths of its chromosomes]",
    ),
)

CALLING = (
    _real("--upper", "X", "Segments with this signed I/NI or more are gains.  [R: upperThreshold]"),
    _real(
        "--lower", "X", "Segments with this signed I/NI or less are losses.  [R: lowerThreshold]"
    ),
    _whole("--min-width", "N", "Minimum number of regions in a CNV.  [R: minWidth]"),
    click.option(
        "--use-median",
        is_flag=True,
        default=None,
        help="Judge segments by their median, not their mean.  [R: useMedian]",
    ),
    click.option(
        "--segmentation",
        type=click.Choice(["fast", "cbs"]),
        help="fast: R's own; cbs: circular binary segmentation.  [R: segAlgorithm]",
    ),
    _real("--seg-alpha", "X", "Share (below 1) or number of initial breakpoints.  [R: alpha]"),
    _real(
        "--seg-eps",
        "X",
        "Minimum difference of neighbours at a breakpoint.  [default: a quantile]  [R: eps]",
    ),
    _whole(
        "--seg-delta", "N", "Windows without improvement after which the search stops.  [R: delta]"
    ),
    _whole("--seg-max-window", "N", "Maximum number of regions in a window.  [R: maxInt]"),
    _real("--seg-cyber-weight", "X", "Weight of the variance of all regions.  [R: cyberWeight]"),
    click.option(
        "--seg-median",
        metavar="X[,X]",
        help="Medians of gains and losses when segments are merged.  [R: segMedianT]",
    ),
    _whole("--seed", "N", "Seed for --segmentation cbs."),
    _real(
        "--robust", "X", "Write robust CNV regions, too: I/NI above X.  [R: makeRobustCNVR robust]"
    ),
    _whole(
        "--robust-min-width", "N", "Minimum regions in a robust one.  [R: makeRobustCNVR minWidth]"
    ),
    click.option(
        "--fractional",
        type=click.Choice(["mean", "median"]),
        help="Write fractional copy numbers, too.  [R: calcFractionalCopyNumbers segStat]",
    ),
)

OUTPUT = (
    click.option(
        "-o", "--output", type=FILE, required=True, metavar="DIR", help="Folder for the results."
    ),
    click.option("--vcf/--no-vcf", default=True, help="Write cnvs.vcf.gz and its index."),
    click.option("--matrices/--no-matrices", default=True, help="Write matrices.zarr."),
    click.option("--report/--no-report", default=True, help="Write report.html."),
    click.option(
        "--plots", type=click.Choice(["png", "svg"]), help="Write the figures as files, too."
    ),
    click.option(
        "--colors",
        type=click.Choice(CHOICES),
        default=CHOICES[0],
        show_default=True,
        help="Colours in BED, IGV session, report and figures. gain-red: gains are red and losses"
        " blue, as in IGV; gain-blue: the other way round.",
    ),
)


def add_defaults_to_help(command: click.Command) -> None:
    """Add the default of each parameter of `CnvOptions`, and those of other models, to its help."""
    defaults = CnvOptions()
    for option in command.params:
        value = getattr(defaults, option.name or "", None)
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
    """Return a value for the help; a list by its ends."""
    if isinstance(value, tuple):
        return f"{value[0]},{value[1]},…,{value[-1]}"
    return f"{value:g}" if isinstance(value, float) else str(value)

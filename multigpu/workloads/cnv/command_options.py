"""Options of `multigpu cnv` on the command line, in the groups of its help."""

from typing import Any, get_args

import click

from multigpu.run.command import FILE, Decorator
from multigpu.workloads.cnv.options import CHOICES, FIELDS, MODELS, PRESETS, flag
from multigpu.workloads.cnv.output.colours import CHOICES as COLOURS

# Parameters of `CnvOptions`, and what each does.
MODEL_PARAMETERS = {
    "fold_changes": "Expected fold change of each class.  [R: I]",
    "classes": "Labels of the classes; one is CN2 (haplo: CN1).  [R: classes]",
    "prior_impact": "Weight of the prior for the normal copy number.  [R: priorImpact]",
    "cycles": "Cycles of expectation maximisation.  [R: cyc]",
    "min_read_count": "Regions with at most N reads in every sample count as unchanged."
    "  [R: minReadCount]",
    "posterior": "Keep the posterior of every class in the matrices.  [R: returnPosterior]",
}
NORMALIZATION_PARAMETERS = {
    "norm": "0: take counts as normalized; 1: normalize them; 2: model coverages.  [R: norm]",
    "norm_type": "Statistic that is made equal in all samples.  [R: normType]",
    "size_factor": "Statistic of a sample that is its size factor.  [R: sizeFactor]",
    "norm_quantile": "Quantile for --norm-type quant.  [R: normQu]",
    "size_factor_quantile": "Quantile for --size-factor quant.  [R: quSizeFactor]",
    "genome_wide": "Normalize the genome as a whole, not each chromosome by itself.",
}
CALLING_PARAMETERS = {
    "upper": "Segments with this signed I/NI or more are gains.  [R: upperThreshold]",
    "lower": "Segments with this signed I/NI or less are losses.  [R: lowerThreshold]",
    "min_width": "Minimum number of regions in a CNV.  [R: minWidth]",
    "use_median": "Judge segments by their median, not their mean.  [R: useMedian]",
    "segmentation": "fast: R's own; cbs: circular binary segmentation.  [R: segAlgorithm]",
    "seg_alpha": "Share (below 1) or number of initial breakpoints.  [R: alpha]",
    "seg_eps": "Minimum difference of neighbours at a breakpoint.  [default: a quantile]  [R: eps]",
    "seg_delta": "Windows without improvement after which the search stops.  [R: delta]",
    "seg_max_window": "Maximum number of regions in a window.  [R: maxInt]",
    "seg_cyber_weight": "Weight of the variance of all regions.  [R: cyberWeight]",
    "seg_median": "Medians of gains and losses when segments are merged.  [R: segMedianT]",
    "seed": "Seed for --segmentation cbs.",
    "robust": "Write robust CNV regions, too: I/NI above X.  [R: makeRobustCNVR robust]",
    "robust_min_width": "Minimum number of regions in a robust CNV region."
    "  [R: makeRobustCNVR minWidth]",
    "fractional": "Write fractional copy numbers, too.  [R: calcFractionalCopyNumbers segStat]",
}
METAVARS = {  # names of values; X for other real numbers, N for whole ones
    "fold_changes": "I,…",
    "classes": "CN0,…",
    "prior_impact": "G",
    "norm_quantile": "Q",
    "size_factor_quantile": "Q",
    "min_read_count": "N",
    "seg_median": "X[,X]",
}


def parameters(helps: dict[str, str]) -> tuple[Decorator, ...]:
    """Return the options for parameters of `CnvOptions`; those not given are None."""
    return tuple(_parameter(name, text) for name, text in helps.items())


def _parameter(name: str, text: str) -> Decorator:
    kind = FIELDS[name].type
    settings: dict[str, Any] = {"metavar": METAVARS.get(name)}
    if name in CHOICES:
        settings = {"type": click.Choice(get_args(CHOICES[name]))}
    elif kind is bool:
        settings = {"is_flag": True, "default": None}
    elif kind is int:
        settings = {"type": int, "metavar": "N"}
    elif kind in (float, float | None):
        settings = {"type": float, "metavar": METAVARS.get(name, "X")}
    return click.option(flag(name), help=text + _defaults(name), **settings)


def _defaults(name: str) -> str:
    """Return the end of a parameter's help: its default, and those of other models."""
    default = FIELDS[name].default
    if default is None or default is False:
        return ""
    changes = {model: changed[name] for model, changed in MODELS.items() if name in changed}
    others = [f"; {model}: {_shown(value)}" for model, value in changes.items()]
    return f"  [default: {_shown(default)}{''.join(others)}]"


def _shown(value: Any) -> str:
    """Return a value for the help; a list by its ends."""
    if isinstance(value, tuple):
        return f"{value[0]},{value[1]},…,{value[-1]}"
    return f"{value:g}" if isinstance(value, float) else str(value)


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
    *parameters(MODEL_PARAMETERS),
)

NORMALIZATION = (
    *parameters(NORMALIZATION_PARAMETERS),
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

CALLING = parameters(CALLING_PARAMETERS)

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
        type=click.Choice(COLOURS),
        default=COLOURS[0],
        show_default=True,
        help="Colours in BED, IGV session, report and figures. gain-red: gains are red and losses"
        " blue, as in IGV; gain-blue: the other way round.",
    ),
)

"""Parameters of a copy-number run, with R's defaults for every model; outputs of a run."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_args

from multigpu.cluster.deploy.deployment import WorkEstimate
from multigpu.errors import UsageError, option
from multigpu.run.declarations import Options, declare, declared
from multigpu.run.options import GpuLanes
from multigpu.run.values import NAMES, Bases, Kind, StrPath, TextPath, numbers
from multigpu.workloads.count.options import COMPAT_R, CompatR, CountOptions

Model = Literal["cn.mops", "haplo", "exome", "single", "reference"]
NormType = Literal["poisson", "mean", "median", "quant", "mode"]
SizeFactor = Literal["mean", "median", "quant", "mode"]
Segmentation = Literal["fast", "cbs", "hmm"]
Fractional = Literal["mean", "median"]

DIPLOID = (0.025, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
HAPLOID = (0.025, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
CLASSES = tuple(f"CN{n}" for n in range(9))
TUMOR_CLASSES = (*CLASSES, "CN16", "CN32", "CN64", "CN128")

FASTA_NAME = re.compile(r"\.(fa|fasta|fna)(\.b?gz|\.zst)?$", re.IGNORECASE)
LARGEST = 1e300  # of real numbers
MOST = 2**31 - 1  # of whole numbers: regions, cycles

# Chromosomes: three compute. Others are read, called and sent meanwhile.
COPY_NUMBER_LANES = GpuLanes(5, alone=6)
LARGE_BYTES, LANES_OF_LARGE = 1 << 30, 3  # of tables whose chromosomes take much memory
BYTES_PER_SECOND = 1e9  # of counts, on one GPU; to read them takes as long
GPUS_KEPT_BUSY = 2  # by threads of one process
GENOME, BED_LINE = 3_100_000_000, 24  # bases of a human genome; bytes of a line, about
DRAWN_GAP = 1_000_000  # bases without regions at which figures break lines, without --max-gap


def copy_number_lanes(size: int) -> GpuLanes:
    """Return the lanes of calling copy numbers in `size` bytes of counts."""
    seconds = size / BYTES_PER_SECOND
    estimate = WorkEstimate(seconds=seconds, gpus_kept_busy=GPUS_KEPT_BUSY, reading=seconds)
    lanes = replace(COPY_NUMBER_LANES, estimate=estimate)
    return replace(lanes, alone=LANES_OF_LARGE) if size > LARGE_BYTES else lanes


def estimate_count_bytes(paths: Sequence[str], counting: CountOptions) -> int:
    """Return about the bytes of counts in a table, or of alignments in windows or a BED file.

    paths  as `list_files` takes them; errors are left to the reader
    """
    # The command asks before it loads what reads alignments.
    from multigpu.formats.storage.sources import read_beginning
    from multigpu.formats.storage.stored_streams import is_regular
    from multigpu.formats.tables.file_lists import COUNTS, list_files

    found = list(paths)
    with suppress(UsageError):
        found = [file.path for file in list_files(paths, COUNTS)]
        start = read_beginning(found[0])[:4] if found and is_regular(found[0]) else b""
        if start in (b"BAM\x01", b"CRAM"):
            regions = counting.regions
            rows = _file_bytes(regions) // BED_LINE if regions else GENOME // counting.window
            return 4 * rows * len(found)
    return sum(map(_file_bytes, found))


def _file_bytes(path: StrPath) -> int:
    """Return the size of a file; 0 where it cannot be found."""
    with suppress(OSError, ValueError):
        return Path(path).stat().st_size
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResults:
    """Results that workers keep besides the calls."""

    matrices: tuple[str, ...] = ()  # names of the matrices
    store: Path | None = None  # Zarr store to which workers write them; None: memory
    track_step: int = 0  # regions a point in the plots of samples; 0: no tracks are kept
    copies: bool = True  # whether copies of all samples in each CNV are kept


def _thresholds(value: Any) -> tuple[float, ...]:
    """Return thresholds of gains and losses; one number stands for both signs."""
    given: tuple[float, ...] = numbers().convert([value] if isinstance(value, Real) else value)
    if len(given) > 2:
        raise ValueError
    return given if len(given) == 2 else (abs(given[0]), -abs(given[0]))


def _reference_samples(value: Any) -> Any:
    """Return "auto", "all", or a number of reference samples."""
    if value in ("auto", "all") or (type(value) is int and value > 0):
        return value
    raise ValueError


HowMany = Annotated[
    str | int,
    Kind(
        "auto, all, or a number",
        "auto|all|K",
        _reference_samples,
        lambda text: int(text) if text.isdecimal() else text,
    ),
]
Thresholds = Annotated[
    float | tuple[float, float], numbers("one number or two", convert=_thresholds)
]


@dataclass(frozen=True, kw_only=True)
class CnvOutput(Options, group="Output"):
    """Files that a run writes, on the command line."""

    output: TextPath = declare("", "Folder for the results.", "DIR", short="o", required=True)
    vcf: bool = declare(True, "Write cnvs.vcf.gz and its index.")
    reference: TextPath | None = declare(
        None, "FASTA of the genome, for the bases before CNVs and the lengths of contigs in VCF.",
        "FASTA",
    )  # fmt: skip
    per_sample: bool = declare(
        False, "Write a VCF and BED files of losses and gains, with qualities, for each sample,"
        " into cnvs_by_sample/.",
    )  # fmt: skip
    matrices: bool = declare(True, "Write matrices.zarr.")
    report: bool = declare(True, "Write report.html.")

    def check(self) -> None:
        super().check()
        if self.reference is not None and not self.vcf:
            raise UsageError(f"{option('reference')} is for the VCF, which is not wanted")


@dataclass(frozen=True, kw_only=True)
class FilterOptions(Options, group="Regions"):
    """Regions that are used, and by what their counts are corrected."""

    rebin: int = declare(
        1, "Sum the counts of N neighbours, from the first region of each chromosome on and never"
        " over a gap, before everything else.", "N", at_least=1, at_most=MOST,
    )  # fmt: skip
    exclude: TextPath | None = declare(
        None, "Leave out regions that share a base with this BED file.", "BED"
    )
    gc: TextPath | None = declare(
        None, "Correct each sample for GC content: a FASTA file of the genome, or the name of a"
        " column of the counts table or of the BED with the share of G and C.", "FASTA|COLUMN",
    )  # fmt: skip
    mappability: TextPath | None = declare(
        None, "Correct each sample for mappability, 0 to 1, in a BED file, bedGraph or bigWig;"
        " regions below 0.5 in the mean are left out.", "BED|BIGWIG",
    )  # fmt: skip

    @property
    def has_filters(self) -> bool:
        """Whether any of these options is given."""
        files = self.exclude, self.gc, self.mappability
        return self.rebin > 1 or any(each is not None for each in files)

    def check(self) -> None:
        super().check()
        for name in ("exclude", "gc", "mappability"):
            if getattr(self, name) == "":
                raise UsageError(f"{option(name)} is empty: it must name a file")

    @property
    def gc_column(self) -> str:
        """Name of the column with the share of G and C; empty where it is not in a column."""
        name = self.gc or ""
        is_file = "/" in name or FASTA_NAME.search(name) or Path(name).exists()
        return "" if is_file else name

    @property
    def filter_files(self) -> list[str]:
        """Files that these options name."""
        named = [self.exclude, self.mappability, None if self.gc_column else self.gc]
        return [path for path in named if path is not None]


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Options, group="Model"):
    """The mixture of Poissons."""

    model: Model = declare(
        "cn.mops", f"What the samples are: a cohort (cn.mops), haploid genomes, exomes, a single"
        f" sample, or cases against {option('controls')} (reference). The options below have R's"
        f" defaults for the model.",
    )  # fmt: skip
    fold_changes: Annotated[tuple[float, ...], numbers()] = declare(
        DIPLOID, "Expected fold change of each class.", "I,…", r="I",
        of_model={"haplo": HAPLOID, "reference": (*DIPLOID, 8.0, 16.0, 32.0, 64.0)},
    )  # fmt: skip
    classes: Annotated[tuple[str, ...], replace(NAMES, must="a list of labels")] = declare(
        CLASSES, "Labels of the classes; one is CN2 (haplo: CN1).", "CN0,…", r="classes",
        of_model={"reference": TUMOR_CLASSES},
    )  # fmt: skip
    prior_impact: float = declare(
        1.0, "Weight of the prior for the normal copy number.", "G", at_least=0, at_most=LARGEST,
        r="priorImpact", of_model={"exome": 10.0},
    )  # fmt: skip
    cycles: int = declare(
        20, "Cycles of expectation maximisation.", at_least=1, at_most=MOST, r="cyc"
    )


@dataclass(frozen=True, kw_only=True)
class NormalizationOptions(Options, group="Normalization"):
    """Counts of samples made comparable."""

    norm: Literal[0, 1, 2] = declare(
        1, "0: take counts as normalized; 1: normalize them; 2: model coverages.", r="norm"
    )
    norm_type: NormType = declare(
        "poisson", "Statistic that is made equal in all samples.", r="normType"
    )
    size_factor: SizeFactor = declare(
        "mean", "Statistic of a sample that is its size factor.", r="sizeFactor"
    )
    norm_quantile: float = declare(
        0.25, f"Quantile for {option('norm_type')} quant.", "Q", at_least=0, at_most=1, r="normQu"
    )
    size_factor_quantile: float = declare(
        0.75, f"Quantile for {option('size_factor')} quant.", "Q", at_least=0, at_most=1,
        r="quSizeFactor",
    )  # fmt: skip
    genome_wide: bool = declare(
        False, "Normalize the genome as a whole, not each chromosome by itself."
    )


@dataclass(frozen=True, kw_only=True)
class CallOptions(Options, group="Calling"):
    """Segments, and which of them are CNVs."""

    min_read_count: float = declare(
        5.0, "Regions with at most N reads in every sample count as unchanged.", "N", at_least=0,
        at_most=LARGEST, r="minReadCount",
        of_model=dict.fromkeys(("haplo", "exome", "single", "reference"), 1.0),
    )  # fmt: skip
    upper: float = declare(
        0.5, "Segments with this signed I/NI or more are gains.", at_least=-LARGEST,
        at_most=LARGEST, r="upperThreshold", of_model={"haplo": 0.6},
    )  # fmt: skip
    lower: float = declare(
        -0.9, "Segments with this signed I/NI or less are losses.", at_least=-LARGEST,
        at_most=LARGEST, r="lowerThreshold", of_model={"exome": -0.8},
    )  # fmt: skip
    min_width: int = declare(
        3, "Minimum number of regions in a CNV.", at_least=1, at_most=MOST, r="minWidth",
        of_model={"exome": 5, "reference": 4},
    )  # fmt: skip
    min_length: Bases = declare(
        0, "Minimum length of a CNV, in bases, or as 25kb.", "BASES", at_least=0
    )
    min_quality: float = declare(
        0.0, f"Least quality of a CNV, with {option('segmentation')} hmm; the VCF marks those below"
        " 20 as LowQual.", "PHRED", at_least=0, at_most=LARGEST,
    )  # fmt: skip
    max_gap: Bases | None = declare(
        None, "Cut CNVs where more bases than these have no regions.", "BASES", at_least=0,
        default="no limit",
    )  # fmt: skip
    whole_chromosomes: bool = declare(
        False, "Call chromosomes and arms that are changed as a whole, e.g. trisomies."
    )
    segmentation: Segmentation = declare(
        "fast", "fast: R's own; cbs: circular binary segmentation; hmm: hidden Markov model of copy"
        " numbers.", r="segAlgorithm", of_model={"reference": "cbs"},
    )  # fmt: skip
    reference_samples: HowMany = declare(
        "auto", f"How many samples, those that vary most as it does, a sample is compared with"
        f" ({option('segmentation')} hmm); auto: up to 10; all: up to 64.",
    )  # fmt: skip
    use_median: bool = declare(
        False, "Judge segments by their median, not their mean.", r="useMedian"
    )
    posterior: bool = declare(
        False, "Keep the posterior of every class in the matrices.", r="returnPosterior"
    )
    seg_alpha: float = declare(
        0.05, "Share (below 1) or number of initial breakpoints.", r="alpha", above=0, at_most=MOST,
        must="a share between 0 and 1, or a number of breakpoints",
    )  # fmt: skip
    seg_eps: float | None = declare(
        None, "Minimum difference of neighbours at a breakpoint.", at_least=0, at_most=LARGEST,
        default="a quantile", r="eps",
    )  # fmt: skip
    seg_delta: int = declare(
        20, "Windows without improvement after which the search stops.", at_least=0, at_most=MOST,
        r="delta",
    )  # fmt: skip
    seg_max_window: int = declare(
        40, "Maximum number of regions in a window.", at_least=1, at_most=MOST, r="maxInt"
    )
    seg_cyber_weight: float = declare(
        50.0, "Weight of the variance of all regions.", at_least=0, at_most=LARGEST, r="cyberWeight"
    )
    seg_median: Thresholds | None = declare(
        None, "Medians of gains and losses when segments are merged.", "X[,X]", r="segMedianT"
    )
    seed: int = declare(0, f"Seed for {option('segmentation')} cbs.", at_least=0, at_most=2**63 - 1)
    robust: float | None = declare(
        None, "Write robust CNV regions, too: I/NI above X.", at_least=0, at_most=LARGEST,
        r="makeRobustCNVR robust",
    )  # fmt: skip
    robust_min_width: int = declare(
        4, "Minimum number of regions in a robust CNV region.", at_least=1, at_most=MOST,
        r="makeRobustCNVR minWidth",
    )  # fmt: skip
    fractional: Fractional | None = declare(
        None, "Write fractional copy numbers, too.", r="calcFractionalCopyNumbers segStat"
    )
    compat_r: CompatR = declare(False, COMPAT_R, flag="compat", also=("compat",), default="none")

    @property
    def seg_limits(self) -> tuple[float, float] | None:
        """Medians from which on a segment is a gain, and to which it is a loss; None: found."""
        return cast(tuple[float, float] | None, self.seg_median)

    def check(self) -> None:
        super().check()
        limits = self.seg_limits
        if not all(map(isfinite, limits or ())):
            raise UsageError(f"{option('seg_median')} must be finite numbers")
        # Where thresholds are crossed every segment would be a gain and a loss.
        thresholds = f"{option('upper')} is {self.upper:g} and {option('lower')} {self.lower:g}"
        medians = "{} is {:g},{:g}".format(option("seg_median"), *limits or (0, 0))
        pairs = {thresholds: (self.upper, self.lower), medians: limits}
        if self.segmentation == "hmm":
            self._check_hmm()
        elif self.min_quality:
            needs = f"{option('min_quality')} needs {option('segmentation')} hmm"
            raise UsageError(f"{needs}: {self.segmentation} gives CNVs no quality")
        for description, pair in pairs.items():
            if pair and pair[0] < pair[1]:
                raise UsageError(f"{description}: the threshold of gains lies below that of losses")

    def _check_hmm(self) -> None:
        """Raise UsageError for results that only the mixture of Poissons has."""
        hmm = f"{option('segmentation')} hmm"
        for name in ("robust", "fractional", "posterior", "compat_r"):
            if getattr(self, name) not in (None, False):
                raise UsageError(f"{option(name)} is for other segmentations than {hmm}")


@dataclass(frozen=True, kw_only=True)
class CnvOptions(CallOptions, NormalizationOptions, ModelOptions):
    """Parameters of the method: what decides the calls in a table of counts.

    The defaults are those of R's `cn.mops`; `CnvOptions.of` has those of other models.
    """

    @classmethod
    def of(cls, model: str, preset: str | None = None, **given: Any) -> Self:
        """Return a model's defaults, changed by a preset, then by the parameters given."""
        return cls(**completed({"model": model, **given}, preset))

    @property
    def main_label(self) -> str:
        """Label of the main class, which means "no change"."""
        return "CN1" if self.model == "haplo" else "CN2"

    @property
    def main(self) -> int:
        """Index of the main class."""
        return self.classes.index(self.main_label)

    @property
    def usual_copies(self) -> int:
        """Usual copies of a chromosome where they do not go by sex."""
        return 1 if self.model == "haplo" else 2

    @property
    def drawn_gap(self) -> int:
        """Bases: where more than these have no regions, the lines of figures break."""
        return DRAWN_GAP if self.max_gap is None else self.max_gap

    @property
    def is_hmm(self) -> bool:
        """Whether copy numbers are states of a hidden Markov model."""
        return self.segmentation == "hmm"

    @property
    def is_normalized(self) -> bool:
        """Whether counts are normalized here."""
        return self.norm != 0 and self.model != "single"

    @property
    def compares_by_sex(self) -> bool:
        """Whether samples are compared with what is usual for their sex."""
        return self.norm != 0 and self.model != "haplo"

    def check(self) -> None:
        super().check()
        if self.is_hmm and self.model == "single":
            hmm = f"{option('segmentation')} hmm"
            problem = f"{hmm} compares samples, and {option('model')} single has one"
            raise UsageError(f"{problem}: give {option('segmentation')} fast")
        if self.is_hmm and self.classes[: len(CLASSES)] != CLASSES:
            hmm = f"{option('segmentation')} hmm"
            raise UsageError(f"{hmm} has the classes CN0, CN1, …: leave out {option('classes')}")
        if len(self.fold_changes) != len(self.classes):
            raise UsageError(
                f"{len(self.fold_changes)} {option('fold_changes')} and {len(self.classes)}"
                f" {option('classes')}: there must be as many of both"
            )
        if self.main_label not in self.classes:
            raise UsageError(f"one of {option('classes')} must be {self.main_label}")
        if len(set(self.classes)) != len(self.classes) or not all(self.classes):
            raise UsageError(f"{option('classes')}: a label is empty or occurs twice")
        if not all(isfinite(fold) and fold > 0 for fold in self.fold_changes):
            raise UsageError(f"{option('fold_changes')} must be positive numbers")


MIXTURE_ONLY = (
    "prior_impact", "cycles", "min_read_count", "upper", "lower", "use_median",
)  # fmt: skip
FIELDS = tuple(each.name for each in fields(CnvOptions))
MODELS = {  # what differs from the defaults of `CnvOptions`
    model: {
        each.name: each.of_model[model] for each in declared(CnvOptions) if model in each.of_model
    }
    for model in get_args(Model)
}
GATK_SV = "gatk-sv"  # preset of another way through the counts: see `gatk_sv.py`
HMM = {"segmentation": "hmm", "whole_chromosomes": True, "max_gap": 500_000, "min_width": 1}
PRESETS: dict[str, dict[str, Any]] = {
    "r": {},
    "panel": {**HMM, "max_gap": 1_000_000},
    "exome": {**HMM, "max_gap": 1_000_000},
    "genome": {**HMM, "min_width": 3},
    "gcnmops": {**MODELS["exome"], "cycles": 20},
    GATK_SV: {},
}


def completed(given: Mapping[str, Any], preset: str | None) -> dict[str, Any]:
    """Return what was given with what differs from the defaults for its model and preset.

    None stands for a parameter of the method that is not given.
    """
    chosen = {name: x for name, x in given.items() if x is not None or name not in FIELDS}
    defaults = MODELS.get(str(chosen.get("model")), {}), PRESETS.get(str(preset), {})
    return {**defaults[0], **defaults[1], **chosen}


def unused_parameter_notes(options: CnvOptions, given: Collection[str]) -> Iterator[str]:
    """Yield a note for parameters that were given and change nothing."""
    choices = (
        ("segmentation", "fast", [name for name in FIELDS if name.startswith("seg_")]),
        ("segmentation", "cbs", ["seed"]),
        ("segmentation", "hmm", ["reference_samples"]),
        ("norm_type", "quant", ["norm_quantile"]),
        ("size_factor", "quant", ["size_factor_quantile"]),
    )
    normalization = ["norm_type", "size_factor", "genome_wide"]
    purposes = [
        *((f"{option(of)} {x}", getattr(options, of) == x, names) for of, x, names in choices),
        ("counts that are normalized here", options.is_normalized, normalization),
        (option("robust"), options.robust is not None, ["robust_min_width"]),
        (f"other {option('segmentation')} than hmm", not options.is_hmm, MIXTURE_ONLY),
    ]
    for purpose, is_wanted, names in purposes:
        unused = [option(name) for name in names if name in given]
        if unused and not is_wanted:
            has = "has" if len(unused) == 1 else "have"
            yield f"{', '.join(unused)} {has} no effect: used only with {purpose}"

"""Parameters of a copy-number run, with R's defaults for every model; outputs of a run."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self, get_args

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.errors import InputError, UsageError, quoted
from multigpu.run.options import GpuLanes
from multigpu.run.values import abbreviate, check_choice, number, whole
from multigpu.workloads.cnv.output.colours import Colours

Model = Literal["cn.mops", "haplo", "exome", "single", "reference"]
NormType = Literal["poisson", "mean", "median", "quant", "mode"]
SizeFactor = Literal["mean", "median", "quant", "mode"]
Segmentation = Literal["fast", "cbs"]
Fractional = Literal["mean", "median"]

DIPLOID = (0.025, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
HAPLOID = (0.025, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
CLASSES = tuple(f"CN{n}" for n in range(9))
TUMOR_CLASSES = (*CLASSES, "CN16", "CN32", "CN64", "CN128")

MODELS: dict[str, dict[str, Any]] = {  # what differs from the defaults of `CnvOptions`
    "cn.mops": {},
    "haplo": {"fold_changes": HAPLOID, "upper": 0.6, "min_read_count": 1.0},
    "exome": {"prior_impact": 10.0, "lower": -0.8, "min_width": 5, "min_read_count": 1.0},
    "single": {"min_read_count": 1.0},
    "reference": {
        "fold_changes": (*DIPLOID, 8.0, 16.0, 32.0, 64.0), "classes": TUMOR_CLASSES,
        "min_width": 4, "segmentation": "cbs", "min_read_count": 1.0,
    },
}  # fmt: skip

PRESETS: dict[str, dict[str, Any]] = {"gcnmops": {**MODELS["exome"], "cycles": 20}}

LARGEST = 1e300  # of real numbers
MOST = 2**31 - 1  # of whole numbers: regions, cycles
CHOICES = {
    "model": Model,
    "norm": Literal[0, 1, 2],
    "norm_type": NormType,
    "size_factor": SizeFactor,
    "segmentation": Segmentation,
    "fractional": Fractional,
}
NOT_NEGATIVE = ("prior_impact", "min_read_count", "seg_eps", "seg_cyber_weight", "robust")
RANGES = {
    **dict.fromkeys(NOT_NEGATIVE, (0.0, LARGEST)),
    **dict.fromkeys(("upper", "lower"), (-LARGEST, LARGEST)),
    **dict.fromkeys(("norm_quantile", "size_factor_quantile"), (0.0, 1.0)),
    **dict.fromkeys(("cycles", "min_width", "seg_max_window", "robust_min_width"), (1, MOST)),
    "seg_delta": (0, MOST),
    "seed": (0, 2**63 - 1),
}

# Chromosomes: three compute. Worker processes read others meanwhile, call and send them.
COPY_NUMBER_LANES = GpuLanes(5, alone=3)
BYTES_PER_SECOND = 1e9  # of counts, on one GPU; to read them takes as long
GPUS_KEPT_BUSY = 2  # by threads of one process
GENOME, BED_LINE = 3_100_000_000, 24  # bases of a human genome; bytes of a line, about
SHOWN_REGIONS = 10  # CNV regions with figures of their own


def copy_number_lanes(size: int) -> GpuLanes:
    """Return the lanes of calling copy numbers in `size` bytes of counts."""
    seconds = size / BYTES_PER_SECOND
    estimate = WorkEstimate(seconds=seconds, gpus_kept_busy=GPUS_KEPT_BUSY, reading=seconds)
    return replace(COPY_NUMBER_LANES, estimate=estimate)


def estimate_count_bytes(paths: Sequence[str], window: int, regions: str | None) -> int:
    """Return about the bytes of counts in a table, or of alignments in windows or a BED file.

    paths  directories and patterns stand for alignments; errors are left to the reader
    """
    # The command asks before it loads what reads alignments.
    from multigpu.formats.storage.sources import ALIGNMENTS, expand, is_regular, read_beginning

    found = list(paths)
    with suppress(InputError):
        found = expand(paths, ALIGNMENTS)
        start = read_beginning(found[0])[:4] if found and is_regular(found[0]) else b""
        if start in (b"BAM\x01", b"CRAM"):
            rows = _file_bytes(regions) // BED_LINE if regions else GENOME // max(1, window)
            return 4 * rows * len(found)
    return sum(map(_file_bytes, found))


def _file_bytes(path: str) -> int:
    """Return the size of a file; 0 where it cannot be found."""
    with suppress(OSError, ValueError):
        return Path(path).stat().st_size
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResults:
    """Results that workers keep besides the calls.

    matrices  names of the matrices
    store     Zarr store to which workers write them; None: they are kept in memory
    shown     CNV regions of each chromosome that are kept for figures
    """

    matrices: tuple[str, ...] = ()
    store: Path | None = None
    shown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Files that a run writes.

    output    folder of the files
    vcf, matrices, report  whether cnvs.vcf.gz, matrices.zarr and report.html are written
    plots     format of the figures as files; None: none are written
    colors    which of gains and losses is red
    genome    IGV's name of the genome; None: recognized by the lengths of chromosomes
    """

    output: str
    vcf: bool = True
    matrices: bool = True
    report: bool = True
    plots: Literal["png", "svg"] | None = None
    colors: Colours = "gain-red"
    genome: str | None = None


@dataclass(frozen=True, kw_only=True)
class CnvOptions:
    """Parameters of the method; docs/cnv.md has the meaning of each and its name in R.

    The defaults are those of R's `cn.mops`; `CnvOptions.of` has those of other models.
    Raises UsageError for values that cannot be.
    """

    model: Model = "cn.mops"
    fold_changes: tuple[float, ...] = DIPLOID
    classes: tuple[str, ...] = CLASSES
    prior_impact: float = 1.0
    cycles: int = 20
    norm: Literal[0, 1, 2] = 1
    norm_type: NormType = "poisson"
    size_factor: SizeFactor = "mean"
    norm_quantile: float = 0.25
    size_factor_quantile: float = 0.75
    genome_wide: bool = False
    min_read_count: float = 5.0
    upper: float = 0.5
    lower: float = -0.9
    min_width: int = 3
    segmentation: Segmentation = "fast"
    use_median: bool = False
    posterior: bool = False
    seg_alpha: float = 0.05
    seg_eps: float | None = None
    seg_delta: int = 20
    seg_max_window: int = 40
    seg_cyber_weight: float = 50.0
    seg_median: tuple[float, float] | None = None
    seed: int = 0
    robust: float | None = None
    robust_min_width: int = 4
    fractional: Fractional | None = None
    compat_r: bool = False

    @classmethod
    def of(cls, model: str, preset: str | None = None, **given: Any) -> Self:
        """Return a model's defaults, changed by a preset, then by the parameters given.

        None stands for a parameter that is not given. `seg_median` may be one number, which stands
        for both signs; `compat` is "none" or "r".
        """
        check_choice("--model", model, tuple(MODELS))
        if preset is not None:
            check_choice("--preset", preset, tuple(PRESETS))
        chosen = {name: value for name, value in given.items() if value is not None}
        if (compat := chosen.pop("compat", None)) is not None:
            check_choice("--compat", compat, ("none", "r"))
            chosen["compat_r"] = compat == "r"
        if unknown := sorted(set(chosen) - set(FIELDS)):
            raise UsageError(f"there is no parameter {unknown[0]!r}")
        lists = {"fold_changes": _numbers, "classes": _labels, "seg_median": _limits}
        for name, read in lists.items():
            if name in chosen:
                chosen[name] = read(name, chosen[name])
        return cls(**{"model": model, **MODELS[model], **PRESETS.get(preset or "", {}), **chosen})

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
    def is_normalized(self) -> bool:
        """Whether counts are normalized here."""
        return self.norm != 0 and self.model != "single"

    @property
    def compares_by_sex(self) -> bool:
        """Whether samples are compared with what is usual for their sex."""
        return self.norm != 0 and self.model != "haplo"

    def __post_init__(self) -> None:
        for name, kind in CHOICES.items():
            value = getattr(self, name)
            if value is not None or name != "fractional":
                check_choice(flag(name), value, get_args(kind))
        self._check_classes()
        self._check_numbers()

    def _check_classes(self) -> None:
        if len(self.fold_changes) != len(self.classes):
            raise UsageError(
                f"{len(self.fold_changes)} --fold-changes and {len(self.classes)} --classes:"
                " there must be as many of both"
            )
        if self.main_label not in self.classes:
            raise UsageError(f"one of --classes must be {self.main_label}")
        if len(set(self.classes)) != len(self.classes) or not all(self.classes):
            raise UsageError("--classes: a label is empty or occurs twice")
        if not all(isfinite(fold) and fold > 0 for fold in self.fold_changes):
            raise UsageError("--fold-changes must be positive numbers")

    def _check_numbers(self) -> None:
        for name, (lowest, highest) in RANGES.items():
            value = getattr(self, name)
            if value is None:
                continue
            check_kind = whole if FIELDS[name].type is int else number
            check_kind(flag(name), value)
            if not lowest <= value <= highest:
                problem = f"is {_digits(value)}; it must be {_range(name, value)}"
                raise UsageError(f"{flag(name)} {problem}")
        number("--seg-alpha", self.seg_alpha)
        if not 0 < self.seg_alpha <= MOST:
            raise UsageError(
                f"--seg-alpha is {self.seg_alpha:g}; it is a share between 0 and 1, or a number"
                " of breakpoints"
            )
        if not all(map(isfinite, self.seg_median or ())):
            raise UsageError("--seg-median must be finite numbers")
        # Where thresholds are crossed every segment would be a gain and a loss.
        pairs = {
            f"--upper is {self.upper:g} and --lower {self.lower:g}": (self.upper, self.lower),
            "--seg-median is {:g},{:g}".format(*self.seg_median or (0, 0)): self.seg_median,
        }
        for description, pair in pairs.items():
            if pair and pair[0] < pair[1]:
                raise UsageError(f"{description}: the threshold of gains lies below that of losses")


FIELDS = {each.name: each for each in fields(CnvOptions)}


def flag(name: str) -> str:
    """Return the option of the command line for a parameter."""
    return "--" + name.replace("_", "-")


def unused_parameter_notes(options: CnvOptions, given: Collection[str]) -> Iterator[str]:
    """Yield a note for parameters that were given and change nothing."""
    fast = [name for name in FIELDS if name.startswith("seg_")]
    normalization = ("norm_type", "size_factor", "genome_wide")
    purposes = (
        ("--segmentation fast", options.segmentation == "fast", fast),
        ("--segmentation cbs", options.segmentation == "cbs", ("seed",)),
        ("--norm-type quant", options.norm_type == "quant", ("norm_quantile",)),
        ("--size-factor quant", options.size_factor == "quant", ("size_factor_quantile",)),
        ("counts that are normalized here", options.is_normalized, normalization),
        ("--robust", options.robust is not None, ("robust_min_width",)),
    )
    for purpose, is_wanted, names in purposes:
        unused = [flag(name) for name in names if name in given]
        if unused and not is_wanted:
            has = "has" if len(unused) == 1 else "have"
            yield f"{', '.join(unused)} {has} no effect: used only with {purpose}"


def _range(name: str, value: Any) -> str:
    """Return in words what a number outside its range must be."""
    lowest, highest = RANGES[name]
    if highest == LARGEST and not isfinite(value):
        return "a finite number"
    if lowest >= 0 and (highest == LARGEST or (highest == MOST and value < lowest)):
        return f"at least {lowest:g}" if value < lowest else f"at most {highest:g}"
    return f"{lowest:g} to {_digits(highest)}"


def _digits(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else abbreviate(value)


def _limits(name: str, given: Any) -> tuple[float, ...]:
    """Return thresholds of gains and losses; one number stands for both signs."""
    numbers = _numbers(name, (given,) if isinstance(given, Real) else given)
    if len(numbers) == 1:
        return abs(numbers[0]), -abs(numbers[0])
    if len(numbers) != 2:
        given = ",".join(f"{each:g}" for each in numbers)
        raise UsageError(f"{flag(name)}: expected one number or two, not {quoted(given)}")
    return numbers


def _numbers(name: str, given: Any) -> tuple[float, ...]:
    try:
        if not isinstance(given, str | bytes):
            return tuple(map(float, given))
    except (TypeError, ValueError):
        pass
    raise UsageError(f"{flag(name)} is {abbreviate(given)}; it must be numbers")


def _labels(name: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{flag(name)} is {abbreviate(given)}; it must be a list of labels")
    labels = tuple(given)
    if not all(isinstance(label, str) for label in labels):
        raise UsageError(f"{flag(name)}: labels must be texts")
    return labels

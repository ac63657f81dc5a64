"""The parameters of a copy-number run, with R's defaults for every model."""

from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Literal, Self, get_args

from multigpu.errors import UsageError, quoted

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

PRESETS: dict[str, dict[str, Any]] = {
    "gcnmops": {
        "prior_impact": 10.0, "cycles": 20, "lower": -0.8, "min_width": 5, "min_read_count": 1.0,
    },
}  # fmt: skip


@dataclass(frozen=True)
class CnvOptions:
    """What a copy-number run answers; docs/cnv.md has the meaning of each and its name in R.

    The defaults are those of R's `cn.mops`; `CnvOptions.of` gives those of another model.
    Raises UsageError for values that mean nothing.
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
        """The defaults of a model, changed by a preset, changed by what is given (None: not)."""
        if model not in MODELS:
            raise UsageError(f"unknown model {model!r}: choose from {', '.join(MODELS)}")
        if preset is not None and preset not in PRESETS:
            raise UsageError(f"unknown preset {preset!r}: there is {', '.join(PRESETS)}")
        chosen = {name: value for name, value in given.items() if value is not None}
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(chosen) - known):
            raise UsageError(f"there is no parameter {unknown[0]!r}")
        return cls(**{"model": model, **MODELS[model], **PRESETS.get(preset or "", {}), **chosen})

    @property
    def main_label(self) -> str:
        """The label of the class that means "no change"."""
        return "CN1" if self.model == "haplo" else "CN2"

    @property
    def main(self) -> int:
        """Its place in `classes`."""
        return self.classes.index(self.main_label)

    def __post_init__(self) -> None:
        for name, kind in CHOICES.items():
            choices = get_args(kind)
            value = getattr(self, name)
            if value not in choices and not (name == "fractional" and value is None):
                allowed = ", ".join(str(choice) for choice in choices)
                raise UsageError(f"{flag(name)} is {value!r}; it can be {allowed}")
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
            if not lowest <= value <= highest:
                unbounded = highest == LARGEST or (highest == MOST and value < lowest)
                limits = f"{lowest:g} to {_shown(highest)}"
                if unbounded:
                    limits = f"at least {lowest:g}"
                raise UsageError(f"{flag(name)} is {_shown(value)}; it must be {limits}")
        if not 0 < self.seg_alpha <= MOST:
            raise UsageError(
                f"--seg-alpha is {self.seg_alpha:g}; it is a share between 0 and 1, or a number"
                " of breakpoints"
            )
        for value in (*(self.seg_median or ()),):
            if not isfinite(value):
                raise UsageError("--seg-median must be finite numbers")


LARGEST = 1e300  # what is beyond is no number of anything
MOST = 2**31 - 1  # of what is counted: regions, rounds
CHOICES = {
    "model": Model,
    "norm": Literal[0, 1, 2],
    "norm_type": NormType,
    "size_factor": SizeFactor,
    "segmentation": Segmentation,
    "fractional": Fractional,
}
RANGES = {
    "prior_impact": (0.0, LARGEST),
    "cycles": (1, MOST),
    "norm_quantile": (0.0, 1.0),
    "size_factor_quantile": (0.0, 1.0),
    "min_read_count": (0.0, LARGEST),
    "upper": (-LARGEST, LARGEST),
    "lower": (-LARGEST, LARGEST),
    "min_width": (1, MOST),
    "seg_eps": (0.0, LARGEST),
    "seg_delta": (0, MOST),
    "seg_max_window": (1, MOST),
    "seg_cyber_weight": (0.0, LARGEST),
    "seed": (0, 2**63 - 1),
    "robust": (0.0, LARGEST),
    "robust_min_width": (1, MOST),
}


def flag(name: str) -> str:
    """The option of the command line for a parameter."""
    return "--" + name.replace("_", "-")


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else quoted(str(value)).strip("'")

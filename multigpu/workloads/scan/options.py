"""Options of a scan, as one frozen object."""

from dataclasses import dataclass, replace
from math import isnan
from numbers import Integral
from typing import Any, Literal

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.errors import UsageError
from multigpu.run.options import GpuLanes
from multigpu.run.values import abbreviate, check_choice, convert_fields, number, whole

PHRED_OFFSETS = (33, 64)
HIGHEST_QUALITY = 126  # '~', the last quality character

# Twelve threads read as fast as the memory of a host can be read.
SCAN_LANES = GpuLanes(8, together=12, least=3)
SCAN_RATE = 2e10  # bytes a second on one GPU
GPUS_KEPT_BUSY = 4  # by one process


def scan_lanes(plain_bytes: int) -> GpuLanes:
    """Return the lanes of a scan of files with `plain_bytes` that are not compressed.

    Compressed ones do not count: to decompress them takes longer than to scan them.
    """
    estimate = WorkEstimate(seconds=plain_bytes / SCAN_RATE, gpus_kept_busy=GPUS_KEPT_BUSY)
    return replace(SCAN_LANES, estimate=estimate)


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """Rules for matches and rows, as `multigpu.scan` describes them.

    The most ambiguous bases, mismatches and edits are numbers, or, as floats below 1, shares.
    """

    hits: Literal["first", "best", "all"] = "first"
    strand: Literal["forward", "both"] = "forward"
    sample_n: Literal["match", "mismatch"] = "match"
    min_score: float | None = None
    phred_offset: int = 33
    max_ambiguous: int | float | None = None
    max_mismatches: int | float | None = None
    max_edits: int | float | None = None
    exact_prefix: int = 0
    exact_suffix: int = 0

    def __post_init__(self) -> None:
        for name, choices in (
            ("hits", ("first", "best", "all")),
            ("strand", ("forward", "both")),
            ("sample_n", ("match", "mismatch")),
            ("phred_offset", PHRED_OFFSETS),
        ):
            check_choice(name, getattr(self, name), choices)
        convert_fields(self, number, "min_score")
        if self.min_score is not None:
            self._check_min_score(self.min_score)
        for name in ("max_ambiguous", "max_mismatches", "max_edits"):
            self._check_bases(name, "match" if name == "max_ambiguous" else "signature")
        if self.max_mismatches is not None and self.max_edits is not None:
            raise UsageError("give max_mismatches or max_edits, not both")
        convert_fields(self, whole, "exact_prefix", "exact_suffix")
        for name in ("exact_prefix", "exact_suffix"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 0 or more bases")

    @property
    def most_errors(self) -> int | float:
        """Most errors of a match: a number, or, as a float, a share of the signature's length."""
        return self.max_mismatches or self.max_edits or 0

    @property
    def error_columns(self) -> tuple[str, ...]:
        """The columns that describe the errors of a match; none in an exact scan."""
        if not self.most_errors:
            return ()
        return ("edits", "cigar") if self.max_edits else ("mismatches",)

    def _check_min_score(self, score: float) -> None:
        """Raise UsageError for a score that no row can have."""
        if isnan(score):
            raise UsageError("min_score is nan; it must be a number")
        highest = HIGHEST_QUALITY - self.phred_offset
        if score > highest:
            raise UsageError(
                f"min_score is {score:g}; no score is above {highest}, the highest Phred"
                f" score of qualities from offset {self.phred_offset}"
            )

    def _check_bases(self, name: str, whole_of: str) -> None:
        """Raise UsageError for what is neither a number of bases nor a share of them."""
        value: Any = getattr(self, name)
        if value is None:
            return
        is_share = isinstance(value, float) and 0 <= value < 1
        is_count = isinstance(value, Integral) and not isinstance(value, bool)
        if is_count and int(value) >= 0:
            object.__setattr__(self, name, int(value))
        elif not is_share:
            raise UsageError(
                f"{name} is {abbreviate(value)}; it must be a whole number of bases, e.g. 2,"
                f" or a share of the {whole_of} from 0.0 to below 1, e.g. 0.05"
            )

"""Options of a scan, as one frozen object."""

from dataclasses import dataclass, replace
from math import isnan
from typing import Annotated, Literal

from multigpu.cluster.deploy.threads_or_processes import WorkEstimate
from multigpu.errors import UsageError, option
from multigpu.run.declarations import Options, declare
from multigpu.run.options import GpuLanes
from multigpu.run.values import TextPath, count_or_share

Format = Literal["tsv", "csv", "text", "bed", "jsonl", "parquet", "sam", "bam", "paf"]
PHRED_OFFSETS = (33, 64)
HIGHEST_QUALITY = 126  # '~', the last quality character

# Twelve threads read as fast as the memory of a host can be read.
SCAN_LANES = GpuLanes(8, together=12, least=3)
MOST_LANES = 32  # where files are compressed
SCAN_RATE = 2e10  # bytes a second on one GPU
GPUS_KEPT_BUSY = 4  # by one process


def scan_lanes(plain_bytes: int, compressed: int = 0) -> GpuLanes:
    """Return the lanes of a scan of files with `plain_bytes` that are not compressed.

    compressed  number of the others: to decompress one takes a thread longer than to scan it
    """
    estimate = WorkEstimate(seconds=plain_bytes / SCAN_RATE, gpus_kept_busy=GPUS_KEPT_BUSY)
    lanes = min(compressed, MOST_LANES)
    most, together = max(SCAN_LANES.most, lanes), max(SCAN_LANES.together, lanes)
    return replace(SCAN_LANES, most=most, together=together, estimate=estimate)


@dataclass(frozen=True, kw_only=True)
class ScanOptions(Options, group="Search"):
    """Rules for matches and rows: what decides the result of a scan."""

    hits: Literal["first", "best", "all"] = declare(
        "first", "Matches to report of each sample and signature: the first (lowest start, with"
        " edits the lowest end), the best (fewest errors, then as first), or all.",
    )  # fmt: skip
    strand: Literal["forward", "both"] = declare(
        "forward", "Search the signatures only, or their reverse complements too."
    )
    sample_n: Literal["match", "mismatch"] = declare(
        "match", "Whether ambiguous bases of samples may match others."
    )
    min_score: float | None = declare(
        None, "Drop rows with a lower score.", "S", default="keep all"
    )
    phred_offset: Literal[33, 64] = declare(
        33, "Phred offset of the quality characters: 33, or 64 for old Illumina files."
    )
    max_ambiguous: Annotated[int | float | None, count_or_share("match")] = declare(
        None, "Most ambiguous sample bases of a match, e.g. 2, or a share of its length, e.g. 0.1.",
        default="no limit",
    )  # fmt: skip
    max_mismatches: Annotated[int | float | None, count_or_share("signature")] = declare(
        None, "Allow up to K mismatches (substitutions), e.g. 2, or a share of the signature's"
        " length, e.g. 0.05.", default="0",
    )  # fmt: skip
    max_edits: Annotated[int | float | None, count_or_share("signature")] = declare(
        None, "Allow up to K substitutions, insertions and deletions, e.g. 2, or a share of the"
        " signature's length, e.g. 0.05.", default="0",
    )  # fmt: skip
    exact_prefix: int = declare(
        0, "Bases at the start of each signature that must match exactly.", at_least=0,
        must="0 or more bases",
    )  # fmt: skip
    exact_suffix: int = declare(
        0, "Bases at the end of each signature that must match exactly.", at_least=0,
        must="0 or more bases",
    )  # fmt: skip

    def check(self) -> None:
        super().check()
        if self.min_score is not None:
            self._check_min_score(self.min_score)
        if self.max_mismatches is not None and self.max_edits is not None:
            both = f"{option('max_mismatches')} or {option('max_edits')}"
            raise UsageError(f"give {both}, not both")

    @property
    def most_errors(self) -> int | float:
        """Most errors of a match: a number, or, as a float, a share of the signature's length."""
        return self.max_mismatches or self.max_edits or 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows that these options add; none in an exact scan."""
        if not self.most_errors:
            return ()
        return ("edits", "cigar") if self.max_edits else ("mismatches",)

    @property
    def needs_whole_records(self) -> bool:
        """Whether a search must see every record from its first base to its last."""
        return False

    def _check_min_score(self, score: float) -> None:
        """Raise UsageError for a score that no row can have."""
        if isnan(score):
            raise UsageError(f"{option('min_score')} is nan; it must be a number")
        highest = HIGHEST_QUALITY - self.phred_offset
        if score > highest:
            raise UsageError(
                f"{option('min_score')} is {score:g}; no score is above {highest}, the highest"
                f" Phred score of qualities from offset {self.phred_offset}"
            )


@dataclass(frozen=True, kw_only=True)
class ScanOutput(Options, group="Output"):
    """File of the rows, on the command line."""

    output: TextPath | None = declare(
        None, "File for the rows; -: standard output.", "OUT", short="o", default="standard output"
    )
    format: Format | None = declare(
        None, "Format of the rows; sam, bam and paf are alignments.",
        default="by the suffix of OUT, else tsv",
    )  # fmt: skip
    ambiguous: bool = declare(
        False, "Add a last column with the ambiguous sample bases of each match to TSV, CSV and"
        " BED, or a tag to SAM, BAM and PAF.",
    )  # fmt: skip

"""Options of a scan, as one frozen object."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from math import isnan
from pathlib import PurePath
from typing import Annotated, Literal

from multigpu.cluster.deploy.deployment import WorkEstimate
from multigpu.cluster.files import STDOUT
from multigpu.errors import UsageError, option
from multigpu.formats.storage.suffixes import check_page, check_table, uncompressed_suffix
from multigpu.run.declarations import Options, declare
from multigpu.run.options import GpuLanes
from multigpu.run.values import (
    RANGE,
    SLICE,
    Paths,
    TextPath,
    count_or_share,
    parse_slice,
    texts_of,
)

Format = Literal["tsv", "csv", "bed", "parquet", "sam", "bam", "paf", "cas-offinder"]
ALIGNMENTS = ("sam", "bam", "paf")
Trim = Literal["before", "after", "nearer"]
PairRule = Literal["any", "both"]
PHRED_OFFSETS = (33, 64)
MULTIQC_ENDING = "_mqc.json"
LEAST_OVERLAP = 3
PRODUCTS = ":5000"  # bases of the products of primers
FASTA = (".fa", ".fasta", ".fna")
MOST_BASES = 1 << 62  # more than any record has
MOST_BULGES = 20  # bases
MOST_LETTERS = 10**9  # of a signature, that count in an option
HIGHEST_QUALITY = 126  # '~', the last quality character

# Twelve threads read as fast as the memory of a host can be read.
SCAN_LANES = GpuLanes(8, together=12, least=3)
MOST_LANES = 32  # where files are compressed
SCAN_RATE = 2e10  # bytes a second on one GPU
GPUS_KEPT_BUSY = 4  # by one process

HEADERS = "headers"  # in place of index files
WITH_SHEET = (
    "sample_sheet", "index_reads", "hits", "min_delta", "within", "sample_n", "phred_offset",
    "max_mismatches",
)  # fmt: skip
NOT_WITH_BULGES = ("max_edits", "circular", "overhang", "min_delta")
CONFLICTS = {
    "circular": ("within", "overhang", "max_edits"),
    "overhang": ("min_delta", "max_edits"),
    "max_dna_bulges": NOT_WITH_BULGES,
    "max_rna_bulges": NOT_WITH_BULGES,
    "index_reads": ("within",),
}


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

    hits: Literal["first", "best", "sites", "all", "top"] = declare(
        "first", "Matches to report of each sample and signature: the first (lowest start, with"
        " edits the lowest end), the best (fewest bulges, fewest errors, then as first), the best"
        " of those that share their exact end (sites), or all; top: the best of the signatures that"
        " have the fewest errors in the sample.",
    )  # fmt: skip
    min_delta: int = declare(
        1, f"With {option('hits')} top: errors by which another signature must be worse than the"
        " best; else the sample is tied.", "D", at_least=1, at_most=MOST_LETTERS,
    )  # fmt: skip
    strand: Literal["forward", "both"] = declare(
        "forward", "Search the signatures only, or their reverse complements too."
    )
    within: Annotated[str | None, SLICE] = declare(
        None, "Slice of each sample that matches must lie in, as Python has it: 0:10 its first ten"
        " bases, -30: its last thirty.", default="all of it",
    )  # fmt: skip
    circular: bool = declare(
        False, "Samples are circles: matches may run over the end, and END is beyond it then."
    )
    overhang: Literal["start", "end", "both"] | None = declare(
        None, "Signatures may hang over this end of the sample; the bases that are seen count.",
        default="none",
    )  # fmt: skip
    min_overlap: int = declare(
        LEAST_OVERLAP, f"With {option('overhang')}: fewest bases of a signature to be seen.", "N",
        at_least=1, at_most=MOST_LETTERS, unit=" bases",
    )  # fmt: skip
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
    max_dna_bulges: int = declare(
        0, "Besides mismatches, allow up to B bases of the sample between those of the signature.",
        "B", at_least=0, at_most=MOST_BULGES,
    )  # fmt: skip
    max_rna_bulges: int = declare(
        0, "Besides mismatches, allow the sample to lack up to B bases of the signature.", "B",
        at_least=0, at_most=MOST_BULGES,
    )  # fmt: skip
    exact_prefix: int = declare(
        0, "Bases at the start of each signature that must match exactly.", at_least=0,
        must="0 or more bases",
    )  # fmt: skip
    exact_suffix: int = declare(
        0, "Bases at the end of each signature that must match exactly.", at_least=0,
        must="0 or more bases",
    )  # fmt: skip

    sample_sheet: TextPath | None = declare(
        None, "Demultiplex: the samples' names and barcodes, TSV or CSV with the columns sample,"
        " barcode1 and, for dual barcodes, barcode2. Barcodes stand at the start of reads, barcode2"
        f" in the second of a pair, or {option('within')} says where.",
        group="Input",
    )  # fmt: skip
    index_reads: Paths | None = declare(
        None, f"With {option('sample_sheet')}: FASTQ file with the index reads of the samples, in"
        " step; given again for those of barcode2. Or headers: the index is in the titles of the"
        " samples, as in 1:N:0:ACGT+TGCA.", group="Input", many=True,
    )  # fmt: skip

    def check(self) -> None:
        super().check()
        given = texts_of(self.index_reads or (), "index_reads") or None
        object.__setattr__(self, "index_reads", given)
        if self.sample_sheet is not None:
            self._check_with_sheet()
        elif self.index_reads:
            raise UsageError(f"{option('index_reads')} needs {option('sample_sheet')}")
        if self.min_score is not None:
            self._check_min_score(self.min_score)
        if self.max_mismatches is not None and self.max_edits is not None:
            both = f"{option('max_mismatches')} or {option('max_edits')}"
            raise UsageError(f"give {both}, not both")
        if self.min_delta > 1 and not self.are_top:
            raise UsageError(f"{option('min_delta')} needs {option('hits')} top")
        if self.min_overlap != LEAST_OVERLAP and not self.overhang:
            raise UsageError(f"{option('min_overlap')} needs {option('overhang')}")
        for name, others in CONFLICTS.items():
            if getattr(self, name):
                self._refuse_beside(option(name), others)
        if self.hits == "sites":
            self._refuse_beside(f"{option('hits')} sites", NOT_WITH_BULGES)
            if bool(self.exact_prefix) == bool(self.exact_suffix):
                one = f"{option('exact_prefix')} or {option('exact_suffix')}"
                cure = f"give {one}{', not both' if self.exact_prefix else ''}"
                raise UsageError(f"{option('hits')} sites needs the end that sites share: {cure}")

    def _refuse_beside(self, what: str, others: Iterable[str]) -> None:
        """Raise UsageError where one of others, which do not go with an option, is given."""
        for other in others:
            if getattr(self, other) != getattr(ScanOptions, other):
                cure = f": give {option('max_mismatches')} instead" if other == "max_edits" else ""
                raise UsageError(f"{what} does not go with {option(other)}{cure}")

    @property
    def index_files(self) -> list[str]:
        """The paths of the index files."""
        given = texts_of(self.index_reads or (), "index_reads")
        return [] if given == [HEADERS] else given

    @property
    def are_top(self) -> bool:
        """Whether rows are the best signatures, or barcodes, of each read."""
        return self.hits == "top" or self.sample_sheet is not None

    @property
    def wanted(self) -> Literal["first", "best", "sites", "all"]:
        """Choice of the matches of a sample and a signature that are searched for."""
        return "best" if self.hits == "top" else self.hits

    @property
    def most_errors(self) -> int | float:
        """Most errors of a match: a number, or, as a float, a share of the signature's length."""
        return self.max_mismatches or self.max_edits or 0

    @property
    def spare_errors(self) -> int:
        """Errors that are searched beyond the most of a match, to know what is tied."""
        return self.min_delta - 1

    @property
    def has_bulges(self) -> bool:
        """Whether places with bulges are searched, or compared with others at their site."""
        return bool(self.max_dna_bulges or self.max_rna_bulges or self.hits == "sites")

    @property
    def has_errors(self) -> bool:
        """Whether a search with errors is needed."""
        return bool(self.most_errors or self.spare_errors or self.has_bulges)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of rows that these options add; none in an exact scan."""
        tied = ("tied",) * self.are_top
        if self.has_bulges:
            return (*tied, "mismatches", "bulge", "bulge_size", "cigar")
        if not self.most_errors:
            return tied
        return (*tied, "edits", "cigar") if self.max_edits else (*tied, "mismatches")

    @property
    def needs_whole_records(self) -> bool:
        """Whether a search must see every record from its first base to its last."""
        at_ends = (self.within, self.overhang)
        return self.are_top or self.circular or at_ends != (None, None)

    def _check_with_sheet(self) -> None:
        """Raise UsageError for an option that barcodes do not go with."""
        if self.hits not in ("first", "top"):
            raise UsageError(f"{option('sample_sheet')}: {option('hits')} must be top")
        names = (each.name for each in fields(ScanOptions))
        self._refuse_beside(option("sample_sheet"), (n for n in names if n not in WITH_SHEET))

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


def is_fasta(path: str) -> bool:
    """Return whether products are written as FASTA."""
    return uncompressed_suffix(path) in FASTA


def multiqc_paths(path: str) -> tuple[str, str]:
    """Return the paths of heat map and columns: MultiQC takes one section from each file.

    Raises UsageError for a name by which MultiQC finds nothing.
    """
    begin = path.removesuffix(MULTIQC_ENDING)
    if begin == path or not PurePath(begin).name:
        cure = f"choose a name like scan{MULTIQC_ENDING}"
        raise UsageError(f"{path}: MultiQC finds files by their names: {cure}")
    return path, f"{begin}_general{MULTIQC_ENDING}"


def existing_name(template: str) -> str:
    """Return a path for all files of a template of paths: no folder in it has fields."""
    folder = os.path.dirname(template.partition("{")[0])  # noqa: PTH120  (light: no Path)
    return os.path.join(folder, template[len(folder) :].strip("/").replace("/", "_"))  # noqa: PTH118


@dataclass(frozen=True, kw_only=True)
class ScanOutput(Options, group="Output"):
    """Files of the rows and other outputs, on the command line."""

    output: TextPath | None = declare(
        None, "File for the rows; -: standard output.", "OUT", short="o",
        default="standard output, or no rows where another output is asked for",
    )  # fmt: skip
    format: Format | None = declare(
        None, "Format of the rows; sam, bam and paf are alignments.",
        default="by the suffix of OUT, else tsv",
    )  # fmt: skip
    ambiguous: bool = declare(
        False, "Add a last column with the ambiguous sample bases of each match to TSV, CSV and"
        " BED, or a tag to SAM, BAM and PAF.",
    )  # fmt: skip
    tags: Literal["MD"] | None = declare(
        None, "More tags of SAM, BAM and PAF: MD has the bases of the reference that do not match.",
        default="none",
    )  # fmt: skip
    cigar: Literal["=X", "M"] = declare(
        "=X", "Operations of SAM, BAM and PAF for bases that match or not: = and X, or M for both."
    )
    counts: TextPath | None = declare(
        None, "Write a table of files and signatures: reads with a match, matches, share of the"
        " reads, mean score; TSV, or Parquet by the suffix.",
    )  # fmt: skip
    multiqc: TextPath | None = declare(
        None, "Write a heat map of files and signatures for MultiQC, and beside it FILE_general_mqc"
        ".json with columns of the general statistics.", "FILE_mqc.json",
    )  # fmt: skip
    report: TextPath | None = declare(
        None, "Write a page for a browser: files and signatures, places of matches, errors,"
        " scores.", "FILE.html",
    )  # fmt: skip

    amplicons: Paths = declare(
        (), "Write the products of signatures that are pairs of primers (X_LEFT and X_RIGHT, X_F"
        " and X_R); BED, or FASTA by the suffix. May be given several times.", many=True,
        default="",
    )  # fmt: skip
    amplicon_length: Annotated[str, RANGE] = declare(
        PRODUCTS, f"Bases of the products of {option('amplicons')}, with their primers."
    )
    matched: TextPath | None = declare(
        None, "Write the records with a match, unchanged. {file}, {signature}, {sample} and {mate}"
        " in the path stand for names; .gz is written as BGZF, .bam as unaligned BAM.", "PATH",
    )  # fmt: skip
    unmatched: TextPath | None = declare(
        None, f"Write the records without a match; see {option('matched')}.", "PATH"
    )
    trim: Trim | None = declare(
        None, f"Cut off, in the records of {option('matched')}, the match and all bases before it,"
        " after it, or between it and the nearer end.", default="cut off nothing",
    )  # fmt: skip
    mask: bool = declare(False, f"Write N over the match in the records of {option('matched')}.")
    pair_rule: PairRule = declare(
        "any", f"Whether a pair of reads goes to the paths of {option('matched')} that any of both"
        " reads has, or that both have.",
    )  # fmt: skip

    @property
    def amplicon_paths(self) -> list[str]:
        """Paths of the products."""
        return texts_of(self.amplicons, "amplicons")

    @property
    def amplicon_limits(self) -> tuple[int, int]:
        """Fewest and most bases of a product."""
        first, last = parse_slice(self.amplicon_length)
        return first or 0, MOST_BASES if last is None else last

    @property
    def others(self) -> tuple[str, ...]:
        """Paths of the outputs besides the rows."""
        multiqc = multiqc_paths(self.multiqc) if self.multiqc else ()
        paths = (self.counts, *multiqc, self.report, *self.amplicon_paths)
        return tuple(path for path in paths if path)

    @property
    def templates(self) -> tuple[str, ...]:
        """Paths of files of records, with fields in braces."""
        return tuple(path for path in (self.matched, self.unmatched) if path)

    @property
    def has_rows(self) -> bool:
        """Whether rows are written."""
        return bool(self.output or self.format or not (self.others or self.templates))

    @property
    def main(self) -> str | None:
        """The path of the rows, or of the first of the other outputs; None: standard output."""
        if self.has_rows:
            return self.output
        return (*self.others, *map(existing_name, self.templates))[0]

    def check(self) -> None:
        super().check()
        if "" in (self.counts, self.multiqc, self.report, self.matched, self.unmatched):
            raise UsageError("the output has no name")
        rows = (self.output or "-",) if self.has_rows else ()
        if sum(path in STDOUT for path in (*rows, *self.others)) > 1:
            raise UsageError("standard output can have one output: give the others a name")
        check_table(self.counts)
        for path in self.amplicon_paths:
            if uncompressed_suffix(path) not in (".bed", *FASTA):
                raise UsageError(f"{path}: products are BED or FASTA: choose a name in .bed or .fa")
        check_page(self.report)
        if self.trim and self.mask:
            raise UsageError(f"give {option('trim')} or {option('mask')}, not both")
        if (self.trim or self.mask) and self.matched is None:
            name = option("trim" if self.trim else "mask")
            raise UsageError(f"{name} has no effect without {option('matched')}")
        if self.pair_rule != "any" and not self.templates:
            raise UsageError(f"{option('pair_rule')} has no effect without {option('matched')}")
        if self.amplicon_length != PRODUCTS and not self.amplicons:
            name = option("amplicon_length")
            raise UsageError(f"{name} has no effect without {option('amplicons')}")

"""CNVs as VCF 4.4, compressed in blocks and indexed.

A record is a place and a type, loss or gain: CNVs of several samples with the same borders and the
same type are one record. Merged regions are in the tables of CNV regions alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.cnv.calls.calls import Indices, Rows, direction, names_by_copies, overlaps
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.output.lines import Every, Text, blocks, joined, lines, texts
from multigpu.cnv.result import CnvResult, SegmentTable, names, on_one_line
from multigpu.errors import UsageError, quoted
from multigpu.formats.tables.arrow import numbers
from multigpu.formats.tables.tabix import write_indexed_vcf

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
FIELDS = "GT:CN:MD:MN"
ELSEWHERE = 3  # beyond all numbers of usual copies
ALLELES = ("<DEL>", "<CNV>", "<DUP>")  # by direction: -1, 0, 1
TYPES = ("DEL", "CNV", "DUP")
DECIMALS = 6  # of means and medians

# Genotypes of samples with a CNV, by what is known; a gain of two copies may lie on one or on both.
UNKNOWN, HAPLOID, ONE, BOTH, ANY = range(5)
GENOTYPES = (".", "1", "0/1", "1/1", "./1")

# What VCF and SAM take as the name of a contig; a line that begins with # would be a comment.
CONTIG = re.compile(r"[0-9A-Za-z!$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")

HEADER = f"""\
##fileformat=VCFv4.4
##source=multigpu-{__version__}
##ALT=<ID=DEL,Description="Fewer copies than usual">
##ALT=<ID=DUP,Description="More copies than usual">
##ALT=<ID=CNV,Description="Copy number variant">
##INFO=<ID=SVTYPE,Number=1,Type=String,Description="Type of structural variant">
##INFO=<ID=SVLEN,Number=A,Type=Integer,Description="Length of the structural variant">
##INFO=<ID=SVCLAIM,Number=A,Type=String,Description="Claim made by the call: D is read depth">
##INFO=<ID=END,Number=1,Type=Integer,Description="End position of the variant">
##INFO=<ID=IMPRECISE,Number=0,Type=Flag,Description="Borders are those of counting regions">
##INFO=<ID=REGIONS,Number=1,Type=Integer,Description="Counting regions in the variant">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype, as far as the copy number says it">
##FORMAT=<ID=CN,Number=1,Type=Float,Description="Copy number">
##FORMAT=<ID=MD,Number=1,Type=Float,Description="Median of the signed I/NI of the segment">
##FORMAT=<ID=MN,Number=1,Type=Float,Description="Mean of the signed I/NI of the segment">
##FILTER=<ID=PASS,Description="All filters passed">
"""


@dataclass(frozen=True, eq=False)
class Variants:
    """Records in the order of the file, and the CNVs in them by sample and record.

    chrom, start, end  [n]       as in `SegmentTable`
    sign               int32[n]  -1, 0 or 1: fewer, as many, more copies than usual
    rows               int64[n]  counting regions
    sample, record     [CNVs]    whose, and in which record
    cnv                [CNVs]    row of `CnvResult.called`
    """

    chrom: Indices
    start: Rows
    end: Rows
    sign: Indices
    rows: Rows
    sample: Indices
    record: NDArray[np.intp]
    cnv: NDArray[np.intp]

    @classmethod
    def of(cls, result: CnvResult) -> "Variants":
        """One for the CNVs of the same borders and type."""
        cnvs = result.called
        sign = direction(cnvs.copy_number, result.options)
        order = np.lexsort((cnvs.sample, sign, cnvs.end, cnvs.start, cnvs.chrom))
        keys = np.stack([each[order] for each in (cnvs.chrom, cnvs.start, cnvs.end, sign)])
        new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]
        first, number = order[new], np.cumsum(new) - 1
        # Regions that are given twice can make a sample's segment twice.
        pairs = cnvs.sample[order].astype(np.int64) * len(first) + number
        _, kept = np.unique(pairs, return_index=True)
        return cls(
            cnvs.chrom[first], cnvs.start[first], cnvs.end[first], sign[first], cnvs.rows[first],
            cnvs.sample[order][kept], number[kept], order[kept],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.chrom)

    @property
    def position(self) -> Rows:
        """The base before each, from 1; see `_record_lines`."""
        return np.maximum(1, self.start)


def check_names(contigs: Sequence[str]) -> None:
    """Raises UsageError for the name of a chromosome that VCF does not take."""
    for name in contigs:
        if not CONTIG.fullmatch(name):
            raise UsageError(
                f"VCF does not take the chromosome name {quoted(name)}: rename it, or give --no-vcf"
            )


def vcf_text(result: CnvResult, every: Every = map) -> bytes:
    """A record for every set of CNVs with the same borders and type."""
    return _text(result, Variants.of(result), every)


def write_vcf(result: CnvResult, path: Path, every: Every = map) -> None:
    """Its text to `path`, and the index beside it."""
    variants = Variants.of(result)
    text = _text(result, variants, every)
    write_indexed_vcf(path, [text], int(variants.end.max(initial=0)))


def _text(result: CnvResult, variants: Variants, every: Every) -> bytes:
    return b"".join([_header(result).encode(), *_records(result, variants, every)])


def _header(result: CnvResult) -> str:
    lengths = result.lengths
    contigs = "".join(
        f"##contig=<ID={name}{f',length={lengths[name]}' if name in lengths else ''}>\n"
        for name in result.regions.names
    )
    return f"{HEADER}{contigs}#{chr(9).join([*COLUMNS, *result.samples])}\n"


def _records(result: CnvResult, variants: Variants, every: Every) -> Iterator[Text]:
    """The lines of all records, many at a time."""
    cells = _Cells(result, variants)
    pieces = blocks(len(variants), len(COLUMNS) + len(result.samples))
    return every(lambda rows: _record_lines(result, variants, cells, rows), pieces)


def _record_lines(result: CnvResult, variants: Variants, cells: "_Cells", rows: slice) -> Text:
    """Symbolic alleles begin at the base before the first changed one.

    Before the first base of a chromosome there is none that programs can look up: there the record
    begins at 1 and is a base shorter.
    """
    position, end = variants.position[rows], variants.end[rows]
    kind, number = variants.sign[rows] + 1, np.arange(len(variants))[rows]
    info = joined(
        "SVTYPE=", names(kind, TYPES), ";SVLEN=", texts(end - position), ";SVCLAIM=D;END=", end,
        ";IMPRECISE;REGIONS=", variants.rows[rows],
    )  # fmt: skip
    return lines(
        names(variants.chrom[rows], result.regions.names), position, joined("cnv", number + 1), "N",
        names(kind, ALLELES), ".", "PASS", info, FIELDS,
        *(cells.column(sample, rows) for sample in range(len(result.samples))),
    )  # fmt: skip


class _Cells:
    """What the records say of every sample.

    A sample without a CNV there has the usual genotype and copy number. One with a CNV there of
    other borders has neither: that is another record. One that is not looked at has nothing.
    """

    def __init__(self, result: CnvResult, variants: Variants) -> None:
        self._result, self._variants = result, variants
        self._copies = _copies(result.options.classes)
        self._state, self._own = self._states(), self._carriers()
        self._begin = np.searchsorted(variants.sample, np.arange(len(result.samples) + 1))

    def column(self, sample: int, rows: slice) -> "pa.Array":
        """The cells of a sample in these records."""
        import pyarrow.compute as pc

        state = self._state[rows, sample]
        begin, stop = self._begin[sample : sample + 2]
        record = self._variants.record[begin:stop]
        first, behind = np.searchsorted(record, [rows.start, rows.start + len(state)])
        carried = np.zeros(len(state), np.bool_)
        carried[record[first:behind] - rows.start] = True
        others = names(state.astype(np.int32), self._others(sample))
        own = self._own.slice(begin + first, behind - first)
        return pc.replace_with_mask(others, numbers(carried), own)

    def _states(self) -> NDArray[np.int8]:
        """int8[records, samples]: the usual copies; ELSEWHERE more where there is another CNV."""
        result, variants, cnvs = self._result, self._variants, self._result.called
        found = result.usual_copies(variants.chrom, variants.start, variants.end)
        places = *on_one_line(variants, cnvs), *on_one_line(cnvs, cnvs)
        other = np.zeros(found.shape, np.bool_)
        for cnv, record in overlaps(*places):
            other[record, cnvs.sample[cnv]] = True
        found[other] += ELSEWHERE
        return found

    def _others(self, sample: int) -> list[str]:
        """The cells of a sample that has no such CNV, for every state."""
        one, two = (self._copies[k] for k in _usual_classes(self._result.options))
        if self._has_alleles(sample):
            return [".", f"0:{one}", f"0/0:{two}", ".", ".", "./."]
        return [".", f".:{one}", f".:{two}", ".", ".", "."]

    def _has_alleles(self, sample: int) -> bool:
        """Whether each of the usual copies is an allele: not where a ploidy is given."""
        ploidy = self._result.ploidy
        return ploidy is None or ploidy[sample] == 2

    def _carriers(self) -> "pa.Array":
        """The cells of the CNVs, in the order of `Variants.cnv`."""
        result, cnvs = self._result, self._result.called.take(self._variants.cnv)
        copies = result.copy_numbers(cnvs) % len(self._copies)  # -1 is the last
        median, mean = (np.round(each, DECIMALS) for each in (cnvs.median, cnvs.mean))
        genotypes = names(self._genotypes(cnvs, copies), GENOTYPES)
        return joined(genotypes, names(copies, self._copies), median, mean, by=":")

    def _genotypes(self, cnvs: SegmentTable, copies: Indices) -> Indices:
        """int32[n]: indices of GENOTYPES."""
        usual = self._result.usual_copies_of(cnvs)
        sign = direction(cnvs.copy_number, self._result.options)
        alleles = np.array([self._has_alleles(k) for k in range(len(self._result.samples))])
        digits = np.array([int(text) if text != "." else -1 for text in self._copies])
        change = digits[copies] - usual
        unknown = (sign == 0) | ~alleles[cnvs.sample]
        conditions = [unknown, usual == 1, change == -2, np.abs(change) == 1]
        found = np.select(conditions, [UNKNOWN, HAPLOID, BOTH, ONE], ANY)
        return np.asarray(found, np.int32)


def _usual_classes(options: CnvOptions) -> tuple[int, int]:
    """The classes of one usual copy and of two."""
    if options.model == "haplo":
        return options.main, options.main
    one, two = names_by_copies(options)[1:, options.main].tolist()
    return one, two


def _copies(classes: tuple[str, ...]) -> list[str]:
    """The number in every label, `.` where it has none; the last one stands for "not called"."""
    digits = [label.removeprefix("CN") for label in classes]
    return [*(text if text.isdigit() else "." for text in digits), "."]

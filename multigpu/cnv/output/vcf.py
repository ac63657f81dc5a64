"""CNVs as VCF 4.4, compressed in blocks and indexed.

A record is a place and a type, loss or gain: CNVs of several samples with the same borders and the
same type are one record. Merged regions are in the tables of CNV regions alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.cnv.calls.copy_numbers import classes_by_usual_copies, direction
from multigpu.cnv.calls.regions import overlaps
from multigpu.cnv.calls.segments import Indices
from multigpu.cnv.output.lines import Text, blocks, joined, lines, texts
from multigpu.cnv.output.tables import names_of
from multigpu.cnv.result import CnvResult, SegmentTable, genome_positions
from multigpu.errors import UsageError, quoted
from multigpu.formats.tables.arrow import numbers
from multigpu.formats.tables.tabix import write_indexed_vcf

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
FIELDS = "GT:CN:MD:MN"
ELSEWHERE = 3  # added to the usual copies, of which there are fewer
TYPES = ("DEL", "CNV", "DUP")  # by direction: -1, 0, 1
DECIMALS = 6  # of means and medians

# Genotypes of samples with a CNV; a gain of two copies may lie on one allele or on both.
UNKNOWN, HAPLOID, ONE, BOTH, ANY = range(5)
GENOTYPES = (".", "1", "0/1", "1/1", "./1")

# Names of contigs that VCF and SAM take; a line that begins with # would be a comment.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Variants:
    """Records in the order of the file, and the CNVs in them by sample and record.

    records         the first CNV of each
    sign            int32[n]  -1, 0 or 1: fewer, as many, more copies than usual
    sample, record  [CNVs]    index of the sample, and of the record
    cnv             [CNVs]    row of `CnvResult.called`
    """

    records: SegmentTable
    sign: Indices
    sample: Indices
    record: NDArray[np.intp]
    cnv: NDArray[np.intp]

    @classmethod
    def of(cls, result: CnvResult) -> "Variants":
        """Return a record for each set of CNVs with the same borders and type."""
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
            records=cnvs.take(first),
            sign=sign[first],
            sample=cnvs.sample[order][kept],
            record=number[kept],
            cnv=order[kept],
        )

    def __len__(self) -> int:
        return len(self.records)


def check_names(contigs: Sequence[str]) -> None:
    """Raise UsageError for the name of a chromosome that VCF does not take."""
    for name in contigs:
        if not CONTIG.fullmatch(name):
            raise UsageError(
                f"VCF does not take the chromosome name {quoted(name)}: rename it, or give --no-vcf"
            )


def write_vcf(result: CnvResult, path: Path) -> None:
    """Write the VCF file to `path`, and its index beside it."""
    variants = Variants.of(result)
    text = chain([_header(result).encode()], map(bytes, _records(result, variants)))
    write_indexed_vcf(path, text, int(variants.records.end.max(initial=0)))


def _header(result: CnvResult) -> str:
    lengths = result.lengths
    contigs = "".join(
        f"##contig=<ID={name}{f',length={lengths[name]}' if name in lengths else ''}>\n"
        for name in result.regions.names
    )
    return f"{HEADER}{contigs}#{chr(9).join([*COLUMNS, *result.samples])}\n"


def _records(result: CnvResult, variants: Variants) -> Iterator[Text]:
    """Yield the lines of all records, many at a time."""
    cells = _Cells(result, variants)
    for rows in blocks(len(variants), len(COLUMNS) + len(result.samples)):
        yield _record_lines(result, variants, cells, rows)


def _record_lines(result: CnvResult, variants: Variants, cells: "_Cells", rows: slice) -> Text:
    """Return the lines of some records.

    Symbolic alleles begin at the base before the first changed one. Before the first base of a
    chromosome there is none that programs can look up: such a record begins at 1 and is a base
    shorter.
    """
    records = variants.records.take(rows)
    position, end = np.maximum(1, records.start), records.end
    kind = names_of(variants.sign[rows] + 1, TYPES)
    number = np.arange(len(variants))[rows]
    info = joined(
        "SVTYPE=", kind, ";SVLEN=", texts(end - position), ";SVCLAIM=D;END=", end,
        ";IMPRECISE;REGIONS=", records.rows,
    )  # fmt: skip
    return lines(
        names_of(records.chrom, result.regions.names), position,
        joined("cnv", number + 1), "N", joined("<", kind, ">"), ".", "PASS", info, FIELDS,
        *(cells.column(sample, rows) for sample in range(len(result.samples))),
    )  # fmt: skip


class _Cells:
    """Cells of the samples in the records.

    A sample without a CNV there has the usual genotype and copy number. One with a CNV there of
    other borders has neither: that is another record. One that is not compared has nothing.
    """

    def __init__(self, result: CnvResult, variants: Variants) -> None:
        self._result, self._variants = result, variants
        self._copies = _copies(result.options.classes)
        self._state, self._carriers = self._states(), self._carrier_cells()
        self._begin = np.searchsorted(variants.sample, np.arange(len(result.samples) + 1))

    def column(self, sample: int, rows: slice) -> "pa.Array":
        """Return the cells of a sample in some records."""
        import pyarrow.compute as pc

        state = self._state[rows, sample]
        begin, stop = self._begin[sample : sample + 2]
        record = self._variants.record[begin:stop]
        first, stop = np.searchsorted(record, [rows.start, rows.start + len(state)])
        carried = np.zeros(len(state), np.bool_)
        carried[record[first:stop] - rows.start] = True
        others = names_of(state.astype(np.int32), self._other_cells(sample))
        carriers = self._carriers.slice(begin + first, stop - first)
        return pc.replace_with_mask(others, numbers(carried), carriers)

    def _states(self) -> NDArray[np.int8]:
        """Return int8[records, samples]: usual copies, plus ELSEWHERE for another CNV."""
        result, variants, cnvs = self._result, self._variants, self._result.called
        records = variants.records
        found = result.usual.of_intervals(records.chrom, records.start, records.end)
        places = *genome_positions(records, cnvs), *genome_positions(cnvs, cnvs)
        other = np.zeros(found.shape, np.bool_)
        for cnv, record in overlaps(*places):
            other[record, cnvs.sample[cnv]] = True
        found[other] += ELSEWHERE
        return found

    def _other_cells(self, sample: int) -> list[str]:
        """Return the cells of a sample that has no such CNV, for every state."""
        options = self._result.options
        usual = classes_by_usual_copies(options)[1:, options.main].tolist()
        one, two = (self._copies[k] for k in usual)
        if self._has_alleles(sample):
            return [".", f"0:{one}", f"0/0:{two}", ".", ".", "./."]
        return [".", f".:{one}", f".:{two}", ".", ".", "."]

    def _has_alleles(self, sample: int) -> bool:
        """Return whether each of the usual copies is an allele: not with another ploidy."""
        ploidy = self._result.ploidy
        return ploidy is None or ploidy[sample] == 2

    def _carrier_cells(self) -> "pa.Array":
        """Return the cells of the CNVs, in the order of `Variants.cnv`."""
        result, cnvs = self._result, self._result.called.take(self._variants.cnv)
        copies = result.usual.shown_classes(cnvs, result.options) % len(
            self._copies
        )  # -1 is the last
        median, mean = (np.round(each, DECIMALS) for each in (cnvs.median, cnvs.mean))
        genotypes = names_of(self._genotypes(cnvs, copies), GENOTYPES)
        return joined(genotypes, names_of(copies, self._copies), median, mean, by=":")

    def _genotypes(self, cnvs: SegmentTable, copies: Indices) -> Indices:
        """Return int32[n]: indices of GENOTYPES."""
        usual = self._result.usual.of_segments(cnvs)
        sign = direction(cnvs.copy_number, self._result.options)
        alleles = np.array([self._has_alleles(k) for k in range(len(self._result.samples))])
        digits = np.array([int(text) if text != "." else -1 for text in self._copies])
        change = digits[copies] - usual
        unknown = (sign == 0) | ~alleles[cnvs.sample]
        conditions = [unknown, usual == 1, change == -2, np.abs(change) == 1]
        found = np.select(conditions, [UNKNOWN, HAPLOID, BOTH, ONE], ANY)
        return np.asarray(found, np.int32)


def _copies(classes: tuple[str, ...]) -> list[str]:
    """Return the number in every label, `.` where it has none; the last is for NOT_CALLED."""
    digits = [label.removeprefix("CN") for label in classes]
    return [*(text if text.isdigit() else "." for text in digits), "."]

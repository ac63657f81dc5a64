"""CNVs as VCF 4.4, compressed in blocks and indexed.

A record is a place and a type, loss or gain: CNVs of several samples with the same borders and the
same type are one record. Merged regions are in the tables of CNV regions alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.cnv.calls.copy_numbers import classes_by_usual_copies, direction
from multigpu.cnv.calls.regions import overlaps
from multigpu.cnv.calls.segments import Indices
from multigpu.cnv.result import CnvResult, SegmentTable, genome_positions
from multigpu.errors import UsageError, quoted
from multigpu.formats.tables.tabix import write_indexed_vcf

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
    """Records in the order of the file, and the CNVs in them by record and sample.

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
        pairs = number * len(result.samples) + cnvs.sample[order]
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
    text = chain([_header(result).encode()], _records(result, variants))
    write_indexed_vcf(path, text, int(variants.records.end.max(initial=0)))


def _header(result: CnvResult) -> str:
    lengths = result.lengths
    contigs = "".join(
        f"##contig=<ID={name}{f',length={lengths[name]}' if name in lengths else ''}>\n"
        for name in result.regions.names
    )
    return f"{HEADER}{contigs}#{chr(9).join([*COLUMNS, *result.samples])}\n"


def _records(result: CnvResult, variants: Variants) -> Iterator[bytes]:
    """Yield the line of each record.

    Symbolic alleles begin at the base before the first changed one. Before the first base of a
    chromosome there is none that programs can look up: such a record begins at 1 and is a base
    shorter.
    """
    records, cells = variants.records, _Cells(result, variants)
    columns = (records.chrom, records.start, records.end, records.rows, variants.sign)
    for number, values in enumerate(zip(*(each.tolist() for each in columns), strict=True)):
        chrom, start, end, rows, sign = values
        name, position, kind = result.regions.names[chrom], max(1, start), TYPES[sign + 1]
        info = f"SVTYPE={kind};SVLEN={end - position};SVCLAIM=D;END={end};IMPRECISE;REGIONS={rows}"
        place = f"{name}\t{position}\tcnv{number + 1}\tN\t<{kind}>\t.\tPASS"
        yield "\t".join([place, info, FIELDS, *cells.row(number)]).encode() + b"\n"


class _Cells:
    """Cells of the samples in the records.

    A sample without a CNV there has the usual genotype and copy number. One with a CNV there of
    other borders has neither: that is another record. One that is not compared has nothing.
    """

    def __init__(self, result: CnvResult, variants: Variants) -> None:
        self._result, self._variants = result, variants
        self._copies = _copies(result.options.classes)
        self._state, self._carriers = self._states(), self._carrier_cells()
        self._others = [self._other_cells(k) for k in range(len(result.samples))]
        self._begin = np.searchsorted(variants.record, np.arange(len(variants) + 1)).tolist()

    def row(self, record: int) -> list[str]:
        """Return the cells of a record."""
        states = self._state[record].tolist()
        found = [cells[state] for cells, state in zip(self._others, states, strict=True)]
        for k in range(*self._begin[record : record + 2]):
            found[self._variants.sample[k]] = self._carriers[k]
        return found

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

    def _carrier_cells(self) -> list[str]:
        """Return the cells of the CNVs, in the order of `Variants.cnv`."""
        result, cnvs = self._result, self._result.called.take(self._variants.cnv)
        copies = result.usual.shown_classes(cnvs, result.options)
        median, mean = (np.round(each, DECIMALS) for each in (cnvs.median, cnvs.mean))
        columns = (self._genotypes(cnvs, copies), copies, median, mean)
        return [
            f"{GENOTYPES[genotype]}:{self._copies[copy]}:{md}:{mn}"
            for genotype, copy, md, mn in zip(*(each.tolist() for each in columns), strict=True)
        ]

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

"""CNVs as VCF 4.4, compressed in blocks and indexed.

A record is a place and a type, loss or gain: CNVs of several samples with the same borders and the
same type are one record. Merged regions are in the tables of CNV regions alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
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
    records = variants.records
    columns = (records.chrom, records.start, records.end, records.rows, variants.sign)
    rows = zip(*(each.tolist() for each in columns), _cells(result, variants), strict=True)
    for number, (chrom, start, end, regions, sign, cells) in enumerate(rows, 1):
        name, position, kind = result.regions.names[chrom], max(1, start), TYPES[sign + 1]
        info = f"SVTYPE={kind};SVLEN={end - position};SVCLAIM=D;END={end};IMPRECISE"
        place = f"{name}\t{position}\tcnv{number}\tN\t<{kind}>\t.\tPASS"
        yield "\t".join([place, f"{info};REGIONS={regions}", FIELDS, *cells]).encode() + b"\n"


def _cells(result: CnvResult, variants: Variants) -> Iterator[list[str]]:
    """Yield the cells of all samples in each record.

    A sample without a CNV there has the usual genotype and copy number. One with a CNV there of
    other borders has neither: that is another record. One that is not compared has nothing.
    """
    digits = [label.removeprefix("CN") for label in result.options.classes]
    copies = [*(text if text.isdigit() else "." for text in digits), "."]  # NOT_CALLED is the last
    ploidies = np.array(result.ploidy or [2] * len(result.samples))[: len(result.samples)]
    has_alleles = ploidies == 2  # as many as usual copies
    usual = classes_by_usual_copies(result.options)[1:, result.options.main].tolist()
    one, two = (copies[k] for k in usual)
    # Cells by state: usual copies, or these and ELSEWHERE.
    diploid = [".", f"0:{one}", f"0/0:{two}", ".", ".", "./."]
    other = [".", f".:{one}", f".:{two}", ".", ".", "."]
    by_sample = [diploid if has else other for has in has_alleles.tolist()]
    carriers = _carrier_cells(result, variants, copies, has_alleles)
    records = np.arange(len(variants.records) + 1)
    begins = np.searchsorted(variants.record, records).tolist()
    for states, (begin, end) in zip(_states(result, variants), pairwise(begins), strict=True):
        found = [cells[state] for cells, state in zip(by_sample, states.tolist(), strict=True)]
        for k in range(begin, end):
            found[variants.sample[k]] = carriers[k]
        yield found


def _states(result: CnvResult, variants: Variants) -> NDArray[np.int8]:
    """Return int8[records, samples]: usual copies, plus ELSEWHERE for another CNV."""
    records, cnvs = variants.records, result.called
    found = result.usual.of_intervals(records.chrom, records.start, records.end)
    other = np.zeros(found.shape, np.bool_)
    for cnv, record in overlaps(*genome_positions(records, cnvs), *genome_positions(cnvs, cnvs)):
        other[record, cnvs.sample[cnv]] = True
    found[other] += ELSEWHERE
    return found


def _carrier_cells(
    result: CnvResult, variants: Variants, copies: list[str], has_alleles: NDArray[np.bool_]
) -> list[str]:
    """Return the cells of the CNVs, in the order of `Variants.cnv`.

    copies  number of copies of every class, as text
    """
    cnvs = result.called.take(variants.cnv)
    classes = result.usual.shown_classes(cnvs, result.options)
    usual = result.usual.of_segments(cnvs)
    digits = np.array([int(text) if text != "." else -1 for text in copies])
    change = digits[classes] - usual
    unknown = (direction(cnvs.copy_number, result.options) == 0) | ~has_alleles[cnvs.sample]
    conditions = [unknown, usual == 1, change == -2, np.abs(change) == 1]
    # A gain of two copies may lie on one allele or on both.
    genotypes = np.select(conditions, [".", "1", "1/1", "0/1"], "./1")
    columns = (genotypes, classes, cnvs.median.round(DECIMALS), cnvs.mean.round(DECIMALS))
    return [
        f"{genotype}:{copies[class_]}:{median}:{mean}"
        for genotype, class_, median, mean in zip(*map(np.ndarray.tolist, columns), strict=True)
    ]

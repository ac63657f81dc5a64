"""CNVs as VCF 4.4, compressed in blocks and indexed.

A record is a place and a type, loss or gain: CNVs of several samples with the same borders and the
same type are one record. Merged regions are in the tables of CNV regions alone.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.errors import UsageError, option, quoted
from multigpu.formats.tables.tabix import write_indexed_vcf
from multigpu.workloads.cnv.calls.copy_numbers import classes_by_usual_copies, direction
from multigpu.workloads.cnv.calls.regions import overlaps
from multigpu.workloads.cnv.calls.segments import NOT_CALLED, Indices
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.result import CnvResult, genome_positions

COLUMNS = ("CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
FIELDS = "GT:CN:MD:MN"
TYPES = ("DEL", "CNV", "DUP")  # by direction: -1, 0, 1
UNKNOWN = len(TYPES)  # in place of a type: the genotype cannot be told
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


def check_names(contigs: Sequence[str]) -> None:
    """Raise UsageError for the name of a chromosome that VCF does not take."""
    for name in contigs:
        if not CONTIG.fullmatch(name):
            raise UsageError(
                f"VCF does not take the chromosome name {quoted(name)}: rename it, or"
                f" give {option('vcf', on=False)}"
            )


def write_vcf(result: CnvResult, path: Path) -> None:
    """Write the VCF file to `path`, and its index beside it."""
    text = chain([_header(result).encode()], _records(result))
    write_indexed_vcf(path, text, int(result.called.end.max(initial=0)))


def _header(result: CnvResult) -> str:
    lengths = result.lengths
    contigs = "".join(
        f"##contig=<ID={name}{f',length={lengths[name]}' if name in lengths else ''}>\n"
        for name in result.regions.names
    )
    return f"{HEADER}{contigs}#{chr(9).join([*COLUMNS, *result.samples])}\n"


def _records(result: CnvResult) -> Iterator[bytes]:
    """Yield the line of each record: the CNVs of all samples with the same borders and type.

    Symbolic alleles begin at the base before the first changed one. Before the first base of a
    chromosome there is none that programs can look up: such a record begins at 1 and is a base
    shorter.
    """
    cnvs = result.called
    sign = direction(cnvs.copy_number, result.options)
    order = np.lexsort((cnvs.sample, sign, cnvs.end, cnvs.start, cnvs.chrom))
    keys = np.stack([cnvs.chrom, cnvs.start, cnvs.end, sign])[:, order]
    is_new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]
    groups = np.split(order, np.flatnonzero(is_new))[1:]
    columns = (*keys[:, is_new], cnvs.rows[order[is_new]])
    rows = zip(*(each.tolist() for each in columns), _cells(result, groups, sign), strict=True)
    for chrom, start, end, change, regions, cells in rows:
        name, position, kind = result.regions.names[chrom], max(1, start), TYPES[change + 1]
        info = f"SVTYPE={kind};SVLEN={end - position};SVCLAIM=D;END={end};IMPRECISE"
        # Files of several runs are joined by their IDs. A semicolon would separate two.
        identity = f"{kind}:{name.replace(';', '_')}:{start + 1}-{end}"
        place = f"{name}\t{position}\t{identity}\tN\t<{kind}>\t.\tPASS"
        yield "\t".join([place, f"{info};REGIONS={regions}", FIELDS, *cells]).encode() + b"\n"


def _cells(
    result: CnvResult, groups: Sequence[NDArray[np.intp]], signs: Indices
) -> Iterator[list[str]]:
    """Yield the cells of all samples in each record.

    groups  rows of `CnvResult.called` that are the CNVs of each record, by sample
    signs   int32[CNVs]  -1, 0 or 1: fewer, as many, more copies than usual

    A sample with the CNV has what was called. Another one has what the model says of it in the
    record's regions, but nothing if it has a CNV of other borders there, which is another record,
    or is not compared.
    """
    first = np.array([rows[0] for rows in groups], np.intp)
    cnvs, classes = result.called, result.classes[first]
    records = cnvs.take(first)
    for cnv, record in overlaps(*genome_positions(records, cnvs), *genome_positions(cnvs, cnvs)):
        classes[record, cnvs.sample[cnv]] = NOT_CALLED
    ploidies = np.array(result.ploidy or [2] * len(result.samples))[: len(result.samples)]
    has_alleles = (ploidies == 2).astype(np.intp)  # as many as usual copies
    usual = result.usual.of_intervals(records.chrom, records.start, records.end)
    texts = np.array(_genotypes(result.options), object)

    medians, means = cnvs.median.round(DECIMALS).tolist(), cnvs.mean.round(DECIMALS).tolist()
    for rows, sign, copies, known in zip(groups, signs[first], usual, classes, strict=True):
        cells: list[str] = texts[has_alleles, sign + 1, copies, known].tolist()
        kind = sign + 1 if sign else UNKNOWN
        # Regions that are given twice can make a sample's segment twice: the first one stays.
        for row in rows[::-1].tolist():
            sample = cnvs.sample[row]
            own = texts[has_alleles[sample], kind, copies[sample], cnvs.copy_number[row]]
            cells[sample] = f"{own}:{medians[row]}:{means[row]}"
        yield cells


def _genotypes(options: CnvOptions) -> list[list[list[list[str]]]]:
    """Return genotype and copy number [has alleles, type, usual copies, class] as text.

    The last type is UNKNOWN, the last class NOT_CALLED.
    """
    digits = [label.removeprefix("CN") for label in options.classes]
    copies = [*(text if text.isdigit() else "." for text in digits), "."]
    shown = classes_by_usual_copies(options).tolist()
    kinds = range(UNKNOWN + 1)
    signs = direction(np.arange(len(copies), dtype=np.int32), options).tolist()

    def text(has_alleles: bool, kind: int, usual: int, k: int) -> str:
        missing = "./." if has_alleles and usual == 2 else "."
        if usual == 0 or k == len(digits):
            return missing
        number = copies[shown[usual][k]]
        if kind == UNKNOWN or not has_alleles:
            return f".:{number}"
        if k == options.main:
            return f"{'0/0' if usual == 2 else '0'}:{number}"
        if not signs[k] or signs[k] != kind - 1:
            return f"{missing}:{number}"
        if usual == 1:
            return f"1:{number}"
        # A gain of two copies may lie on one allele or on both.
        alleles = {"0": "1/1", "1": "0/1", "3": "0/1"}
        return f"{alleles.get(number, './1')}:{number}"

    return [
        [[[text(has, kind, n, k) for k in range(len(copies))] for n in range(3)] for kind in kinds]
        for has in (False, True)
    ]

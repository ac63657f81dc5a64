"""CNVs as VCF 4.4, compressed in blocks and indexed: of all samples, and of each.

A record is a place and a type, loss or gain: CNVs of several samples with the same borders and the
same type are one record. Merged regions are in the tables of CNV regions alone.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.errors import UsageError, option, printable, quoted
from multigpu.formats.sequences.indexed_fasta import IndexedFasta
from multigpu.formats.tables.tabix import write_indexed
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import NOT_CALLED, Copies, SegmentTable
from multigpu.workloads.cnv.results.copy_numbers import classes_by_usual_copies, direction
from multigpu.workloads.cnv.results.intervals import overlaps
from multigpu.workloads.cnv.results.result import LOW_QUALITY, CnvResult, genome_positions

COLUMNS = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
FIELDS = "GT:CN:MD:MN"
TYPES = ("DEL", "CNV", "DUP")  # by direction: -1, 0, 1
UNKNOWN = len(TYPES)  # in place of a type: the genotype cannot be told
DECIMALS = 6  # of means and medians
MOST_CNQ = 999
CNQ = [*(f":{quality}" for quality in range(MOST_CNQ + 1)), ":."]
ESCAPES = {ord(sign): f"%{ord(sign):02X}" for sign in "%:;=, \t\r\n"}  # in the values of INFO

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
##INFO=<ID=CIPOS,Number=2,Type=Integer,Description="Interval around POS, to the middles of regions">
##INFO=<ID=CIEND,Number=2,Type=Integer,Description="Interval around END, to the middles of regions">
##INFO=<ID=IMPRECISE,Number=0,Type=Flag,Description="Borders are those of counting regions">
##INFO=<ID=REGIONS,Number=1,Type=Integer,Description="Counting regions in the variant">
##INFO=<ID=GENES,Number=.,Type=String,Description="Names of the counting regions in the variant">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype, as far as the copy number says it">
##FORMAT=<ID=CN,Number=1,Type=Float,Description="Copy number">
##FORMAT=<ID=CNQ,Number=1,Type=Float,Description="Phred: probability of other copies">
##FORMAT=<ID=MD,Number=1,Type=Float,Description="Median of the {{value}} of the segment">
##FORMAT=<ID=MN,Number=1,Type=Float,Description="Mean of the {{value}} of the segment">
##FILTER=<ID=PASS,Description="All filters passed">
##FILTER=<ID=LowQual,Description="QUAL below {LOW_QUALITY:g}">
##FILTER=<ID=COMMON,Description="Changed in half of the samples, or usual copies unsure">
##FILTER=<ID=OUTLIER,Description="All samples with the variant are outliers of qc.tsv">"""


def check_names(contigs: Sequence[str]) -> None:
    """Raise UsageError for the name of a chromosome that VCF does not take."""
    for name in contigs:
        if not CONTIG.fullmatch(name):
            raise UsageError(
                f"VCF does not take the chromosome name {quoted(name)}: rename it, or"
                f" give {option('vcf', on=False)}"
            )


class VcfSource(NamedTuple):
    """Origin of a VCF file."""

    command: str = ""  # that decides on the records, for the header
    genome: IndexedFasta | None = None  # for the bases before the CNVs; None: they are N


def write_vcf(result: CnvResult, path: Path, source: VcfSource = VcfSource()) -> None:  # noqa: B008
    """Write the VCF file of all samples to `path`, and its index beside it."""
    records = _VcfRecords(result, source)
    text = chain([records.header(result.samples)], records.lines())
    write_indexed(path, text, records.last_base)


def write_sample_vcfs(
    result: CnvResult, folder: Path, names: Sequence[str], source: VcfSource
) -> None:
    """Write a VCF file for each sample, with an index: records of its own CNVs alone.

    names  of the files without suffix, one for each sample
    """
    records = _VcfRecords(result, source)
    lines = records.lines_by_sample()
    for sample, name, own in zip(result.samples, names, lines, strict=True):
        text = chain([records.header([sample])], own)
        write_indexed(folder / f"{name}.vcf.gz", text, records.last_base)


class _VcfRecords:
    """Records of the CNVs: those of all samples with the same borders and type are one.

    Symbolic alleles begin at the base before the first changed one. Before the first base of a
    chromosome there is none that programs can look up: such a record begins at 1 and is a base
    shorter.
    """

    def __init__(self, result: CnvResult, source: VcfSource) -> None:
        self.result, self.source, cnvs = result, source, result.called
        self.genome = source.genome
        self.lengths = {**result.lengths, **(self.genome.lengths if self.genome else {})}
        self.last_base = int(cnvs.end.max(initial=0))
        self.signs = direction(cnvs.copy_number, result.options)
        order = np.lexsort((cnvs.sample, self.signs, cnvs.end, cnvs.start, cnvs.chrom))
        keys = np.stack([cnvs.sample, cnvs.chrom, cnvs.start, cnvs.end, self.signs])[:, order]
        differs = np.append(np.ones((5, 1), np.bool_), keys[:, 1:] != keys[:, :-1], axis=1)
        differs = differs[:, : len(order)]
        # Regions that are given twice can make a sample's segment twice: the first one stays.
        once, is_new = differs.any(axis=0), differs[1:].any(axis=0)
        # Rows of `CnvResult.called` that are the CNVs of each record, by sample.
        self.groups = np.split(order[once], np.flatnonzero(is_new[once]))[1:]
        self.first = np.array([rows[0] for rows in self.groups], np.intp)

    def header(self, samples: Sequence[str]) -> bytes:
        reference = self.genome.path if self.genome else ""
        told = [("multigpuCommand", self.source.command), ("reference", reference)]
        lines = [f"##{name}={printable(value)}" for name, value in told if value]
        contigs = [
            f"##contig=<ID={name}{f',length={self.lengths[name]}' if name in self.lengths else ''}>"
            for name in self.result.regions.names
        ]
        value = "log2 ratio to the expected reads" if self.result.options.is_hmm else "signed I/NI"
        head = HEADER.format(value=value)
        return "\n".join([head, *lines, *contigs, "\t".join([*COLUMNS, *samples]), ""]).encode()

    def lines(self) -> Iterator[bytes]:
        for head, info, rows, cells in self._records():
            yield self._line(head, info, rows, cells)

    def lines_by_sample(self) -> list[list[bytes]]:
        """Return the lines of each sample's own CNVs, with its cell."""
        found: list[list[bytes]] = [[] for _ in self.result.samples]
        for head, info, rows, cells in self._records():
            for row, sample in zip(rows, self.result.called.sample[rows].tolist(), strict=True):
                found[sample].append(self._line(head, info, row[None], [cells[sample]]))
        return found

    def _line(self, head: str, info: str, rows: NDArray[Any], cells: Sequence[str]) -> bytes:
        """Return a record.

        head   columns before QUAL
        rows   CNVs that are shown: they have its quality
        """
        best = float(self.result.called.quality[rows].max())
        quality = "." if np.isnan(best) else f"{best:.1f}"
        failed = ";".join(self.result.failed_filters(rows)) or "PASS"
        fields = FIELDS if self.result.genotypes is None else FIELDS.replace("CN:", "CN:CNQ:")
        return "\t".join([head, quality, failed, info, fields, *cells]).encode() + b"\n"

    def _records(self) -> Iterator[tuple[str, str, NDArray[Any], list[str]]]:
        """Yield of each record the columns before QUAL, INFO, its CNVs and the samples' cells."""
        regions, cnvs = self.result.regions, self.result.called.take(self.first)
        columns = (cnvs.chrom, cnvs.start, cnvs.end, self.signs[self.first], cnvs.rows)
        places = zip(*(each.tolist() for each in columns), self._uncertain(cnvs), strict=True)
        rows = zip(places, self.result.genes(cnvs), self.groups, self._cells(), strict=True)
        for (chrom, start, end, change, count, borders), names, group, cells in rows:
            name, position, kind = regions.names[chrom], max(1, start), TYPES[change + 1]
            base = self.genome.base(name, position - 1) if self.genome else "N"
            # Files of several runs are joined by their IDs. A semicolon would separate two.
            identity = f"{kind}:{name.replace(';', '_')}:{start + 1}-{end}"
            info = f"SVTYPE={kind};SVLEN={end - position};SVCLAIM=D;END={end};{borders};IMPRECISE"
            info = f"{info};REGIONS={count}"
            if names:
                info += f";GENES={','.join(each.translate(ESCAPES) for each in names)}"
            yield f"{name}\t{position}\t{identity}\t{base}\t<{kind}>", info, group, cells

    def _uncertain(self, cnvs: SegmentTable) -> Iterator[str]:
        """Yield CIPOS and CIEND: borders lie between the middles of two neighbouring regions.

        A region counts as changed if more than half of it is. Before the first region a CNV may
        begin with the chromosome, and after the last one end with it, where its length is known. No
        border is farther off than the smallest gap that is drawn.
        """
        regions, (first, stop) = self.result.regions, self.result.rows_of(cnvs)
        middle, last = (regions.start + regions.end) // 2, len(regions) - 1
        ends = np.array([self.lengths.get(name, 0) for name in regions.names])[cnvs.chrom]
        position = np.maximum(1, cnvs.start)
        before, after = np.maximum(first - 1, 0), np.minimum(stop, last)
        is_first = (first == 0) | (regions.chrom[before] != cnvs.chrom)
        is_last = (stop > last) | (regions.chrom[after] != cnvs.chrom)
        limits = (
            (np.where(is_first, 1, middle[before]), middle[first], position),
            (middle[stop - 1], np.where(is_last, ends, middle[after]), cnvs.end),
        )
        most = self.result.options.drawn_gap
        # Regions may overlap; a border lies in its own interval all the same.
        low, high = (np.stack([each[k] - each[2] for each in limits], 1) for k in (0, 1))
        places = np.hstack([low.clip(-most, 0), high.clip(0, most)]).tolist()
        for before_pos, before_end, after_pos, after_end in places:
            yield f"CIPOS={before_pos},{after_pos};CIEND={before_end},{after_end}"

    def _cells(self) -> Iterator[list[str]]:
        """Yield the cells of all samples in each record.

        A sample with the CNV has what was called. Another one has its genotype there, or what the
        model says of it in the record's regions; nothing if it is not compared.
        """
        result, cnvs = self.result, self.result.called
        ploidies = np.array(result.ploidy or [2] * len(result.samples))[: len(result.samples)]
        has_alleles = (ploidies == 2).astype(np.intp)  # as many as usual copies
        certain = np.zeros(len(has_alleles), np.intp)
        # All texts there can be, each made once.
        texts = np.array(_genotypes(result.options), object)[..., None]
        texts = texts + np.array([""] if result.genotypes is None else CNQ, object)
        medians, means = (x.round(DECIMALS).tolist() for x in (cnvs.median, cnvs.mean))
        classes, usual, signs = self._classes(), result.usual[self.first], self.signs[self.first]
        for k, (rows, sign) in enumerate(zip(self.groups, signs.tolist(), strict=True)):
            if result.genotypes is not None:
                rounded = np.rint(result.genotypes.quality[rows[0]]).clip(0, MOST_CNQ)
                certain = np.nan_to_num(rounded, nan=-1).astype(np.intp)
            cells = texts[has_alleles, sign + 1, usual[k], classes[k], certain]
            own, kind = cnvs.sample[rows], sign + 1 if sign else UNKNOWN
            places = has_alleles[own], kind, usual[k, own], cnvs.copy_number[rows], certain[own]
            ends = [f":{medians[row]}:{means[row]}" for row in rows.tolist()]
            cells[own] = texts[places] + np.array(ends, object)
            yield cells.tolist()

    def _classes(self) -> Copies:
        """Return the class of each sample [records, samples], for those without the CNV.

        Without genotypes it is NOT_CALLED for those with a CNV of other borders, which is another
        record.
        """
        cnvs, classes = self.result.called, self.result.classes[self.first]
        if self.result.genotypes is None:
            records = genome_positions(cnvs.take(self.first), self.last_base)
            places = genome_positions(cnvs, self.last_base)
            for cnv, record in overlaps(*records, *places):
                classes[record, cnvs.sample[cnv]] = NOT_CALLED
        return classes


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
            return f"{missing}:."
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

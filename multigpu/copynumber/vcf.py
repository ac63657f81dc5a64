"""CNV regions as VCF 4.4, compressed in blocks and indexed."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.copynumber.calls import Indices, Rows
from multigpu.copynumber.lines import Every, Text, blocks, joined, lines, texts
from multigpu.copynumber.result import CnvResult, names
from multigpu.copynumber.tables import direction
from multigpu.io.arrow import numbers
from multigpu.io.bgzf import bgzf
from multigpu.io.tabix import Records, tabix

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")

# By what the samples of a region have: no change, losses, gains, both.
ALLELES = ("<CNV>", "<DEL>", "<DUP>", "<DEL>,<DUP>")
TYPES = ("CNV", "DEL", "DUP", "CNV")
CLAIMS = ("D", "D", "D", "D,D")
BOTH = 3

HEADER = f"""\
##fileformat=VCFv4.4
##source=multigpu-{__version__}
##ALT=<ID=DEL,Description="Fewer copies than expected">
##ALT=<ID=DUP,Description="More copies than expected">
##ALT=<ID=CNV,Description="Copy number variable region">
##INFO=<ID=SVTYPE,Number=1,Type=String,Description="Type of structural variant">
##INFO=<ID=SVLEN,Number=A,Type=Integer,Description="Length of the structural variant">
##INFO=<ID=SVCLAIM,Number=A,Type=String,Description="Claim made by the call: D is read depth">
##INFO=<ID=END,Number=1,Type=Integer,Description="End position of the longest variant">
##INFO=<ID=IMPRECISE,Number=0,Type=Flag,Description="Borders are those of counting regions">
##FORMAT=<ID=CN,Number=1,Type=Float,Description="Copy number">
##FILTER=<ID=PASS,Description="All filters passed">
"""


def vcf_text(result: CnvResult, every: Every = map) -> bytes:
    """A record for every CNV region."""
    return b"".join([_header(result).encode(), *_records(result, every)])


def write_vcf(result: CnvResult, path: Path, every: Every = map) -> None:
    """Its text to `path`, and the index beside it."""
    text = vcf_text(result, every)
    blocks = bgzf(text, every)
    path.write_bytes(b"".join(blocks))
    regions, order = result.called_regions, _order(result)
    begin, end = np.maximum(1, regions.start) - 1, regions.end
    places = Records(result.regions.names, regions.chrom[order], begin[order], end[order])
    suffix, index = tabix(text, blocks, places)
    path.with_name(path.name + suffix).write_bytes(b"".join(bgzf(index, every)))


def _header(result: CnvResult) -> str:
    contigs = "".join(f"##contig=<ID={name}>\n" for name in result.regions.names)
    return f"{HEADER}{contigs}#{chr(9).join([*COLUMNS, *result.samples])}\n"


def _records(result: CnvResult, every: Every) -> Iterator[Text]:
    """The lines of all regions, many at a time, in the order of the places."""
    order = _order(result)
    pieces = blocks(len(order), len(COLUMNS) + len(result.samples))
    return every(lambda rows: _lines(result, order[rows]), pieces)


def _order(result: CnvResult) -> NDArray[np.intp]:
    """The regions as they lie on the chromosomes."""
    regions = result.called_regions
    return np.lexsort((regions.end, regions.start, regions.chrom))


def _lines(result: CnvResult, rows: NDArray[np.intp]) -> Text:
    """Symbolic alleles begin at the base before the first changed one.

    Before the first base of a chromosome there is none that programs can look up: there the record
    begins at 1 and is a base shorter.
    """
    regions, against = result.called_regions, result.called_regions.copy_number[rows]
    position, end = np.maximum(1, regions.start[rows]), regions.end[rows]
    kind = _kinds(direction(against, result.options))
    copies, numbers = result.region_copies[rows], _copies(result.options.classes)
    return lines(
        names(regions.chrom[rows], result.regions.names), position, joined("cnv", rows + 1), "N",
        names(kind, ALLELES), ".", "PASS", _info(kind, position, end), "CN",
        *(names(column, numbers) for column in (copies % len(numbers)).T),  # -1 is the last
    )  # fmt: skip


def _kinds(signs: Indices) -> Indices:
    """An index of ALLELES for every region: what the samples have that are changed."""
    lost, gained = ((signs == sign).any(axis=1) for sign in (-1, 1))
    kinds: Indices = lost + 2 * gained.astype(np.int32)
    return kinds


def _info(kind: Indices, position: Rows, end: Rows) -> "pa.Array":
    import pyarrow.compute as pc

    length = texts(end - position)
    lengths = pc.if_else(numbers(kind == BOTH), joined(length, length, by=","), length)
    return joined(
        "SVTYPE=", names(kind, TYPES), ";SVLEN=", lengths, ";SVCLAIM=", names(kind, CLAIMS),
        ";END=", end, ";IMPRECISE",
    )  # fmt: skip


def _copies(classes: tuple[str, ...]) -> list[str]:
    """The number in every label, `.` where it has none; the last one stands for "not called"."""
    digits = [label.removeprefix("CN") for label in classes]
    return [*(text if text.isdigit() else "." for text in digits), "."]

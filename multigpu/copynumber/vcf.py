"""CNV regions as VCF 4.4, compressed in blocks and indexed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from multigpu import __version__
from multigpu.copynumber.result import CnvResult
from multigpu.copynumber.tables import direction

LARGEST_TABIX = 1 << 29  # positions beyond it need the other kind of index

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


def write_vcf(result: CnvResult, path: Path) -> None:
    """`path` and the index beside it. A record for every CNV region."""
    import pysam

    place = str(path.absolute())  # htslib takes "s3:x" for an address
    with pysam.BGZFile(place, "wb", None) as file:
        file.write(_header(result).encode())
        for line in _records(result):
            file.write(line.encode())
    far = bool(len(result.called_regions)) and result.called_regions.end.max() >= LARGEST_TABIX
    pysam.tabix_index(place, preset="vcf", force=True, csi=bool(far))


def _header(result: CnvResult) -> str:
    contigs = "".join(f"##contig=<ID={name}>\n" for name in result.regions.names)
    columns = ["CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    return f"{HEADER}{contigs}#{chr(9).join([*columns, *result.samples])}\n"


def _records(result: CnvResult) -> Iterator[str]:
    """Symbolic alleles begin at the base before the first changed one.

    Before the first base of a chromosome there is none that programs can look up: there the record
    begins at 1 and is a base shorter.
    """
    regions = result.called_regions
    names = np.array(result.regions.names, object)[regions.chrom].tolist()
    places = zip(regions.start.tolist(), regions.end.tolist(), strict=True)
    signs = direction(regions.copy_number, result.options)
    lost, gained = ((signs == sign).any(axis=1).tolist() for sign in (-1, 1))
    copies = np.array(_copies(result.options.classes), object)[regions.copy_number].tolist()
    rows = list(zip(names, places, lost, gained, copies, strict=True))
    order = np.lexsort((regions.end, regions.start, regions.chrom))
    for row in order.tolist():
        name, (start, end), *changed, numbers = rows[row]
        position, kinds = max(1, start), _kinds(*changed)
        fields = [
            name, str(position), f"cnv{row + 1}", "N",
            ",".join(f"<{kind}>" for kind in kinds), ".", "PASS",
            _info(kinds, position, end), "CN", *numbers,
        ]  # fmt: skip
        yield "\t".join(fields) + "\n"


def _info(kinds: list[str], position: int, end: int) -> str:
    lengths = ",".join([str(end - position)] * len(kinds))
    claims = ",".join(["D"] * len(kinds))
    kind = kinds[0] if len(kinds) == 1 else "CNV"
    return f"SVTYPE={kind};SVLEN={lengths};SVCLAIM={claims};END={end};IMPRECISE"


def _kinds(lost: bool, gained: bool) -> list[str]:
    """The alleles of a region: what the samples have that are changed."""
    kinds = [kind for kind, there in (("DEL", lost), ("DUP", gained)) if there]
    return kinds or ["CNV"]


def _copies(classes: tuple[str, ...]) -> list[str]:
    """The number in every label, `.` where it has none; the last one stands for "not called"."""
    digits = [label.removeprefix("CN") for label in classes]
    return [*(text if text.isdigit() else "." for text in digits), "."]

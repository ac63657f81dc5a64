"""Calls as text: tab-separated tables, BED, SEG and a session of the genome browser IGV."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multigpu.copynumber.calls import Indices
from multigpu.copynumber.options import CnvOptions
from multigpu.copynumber.result import CnvResult, SegmentTable, class_labels, names

if TYPE_CHECKING:
    import pyarrow as pa

LOSS, NEUTRAL, GAIN = "200,30,30", "120,120,120", "30,60,200"  # red and blue, as IGV shows SEG
TRACKS = ("cnvs.bed", "segments.seg", "cnvs.vcf.gz")
GENOMES = {  # by the length of the first chromosome
    248_956_422: "hg38",
    249_250_621: "hg19",
    248_387_328: "hs1",
    195_154_279: "mm39",
    195_471_971: "mm10",
}
FIRST_CHROMOSOME = ("chr1", "1")
LEAST_ALIKE, MOST_ALIKE = 1e-4, 1e9  # fractions between that Arrow and Python write alike


def tsv(table: "pa.Table") -> bytes:
    """A header and a line for every row; numbers as the shortest text that reads back equal."""
    import pyarrow.compute as pc

    lines = pc.binary_join_element_wise(*map(_texts, table.columns), "\t")
    return "\n".join(["\t".join(table.column_names), *lines.to_pylist(), ""]).encode()


def _texts(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """As Python writes them. Arrow, which is faster, writes some numbers with other exponents."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.string())
    if not pa.types.is_floating(column.type):
        return texts
    numbers = column.to_numpy()
    size = np.abs(numbers)
    others = ~((size > LEAST_ALIKE) & (size < MOST_ALIKE)) | (numbers == np.rint(numbers))
    python = pa.array(map(repr, numbers[others].tolist()), pa.string())
    return pc.replace_with_mask(texts, pa.array(others), python)


def direction(copy_number: Indices, options: CnvOptions) -> Indices:
    """-1, 0 or 1: fewer copies, as many as, or more copies than the main class."""
    folds = np.array([*options.fold_changes, options.fold_changes[options.main]])  # last: missing
    return np.sign(folds[copy_number] - options.fold_changes[options.main]).astype(np.int32)


def bed(result: CnvResult) -> bytes:
    """The CNVs as BED9: losses red, gains blue; the score is 100 times |mean|, at most 1000."""
    cnvs = result.called
    cnvs = cnvs.take(np.lexsort((cnvs.sample, cnvs.end, cnvs.start, cnvs.chrom)))
    score = np.minimum(np.rint(np.abs(cnvs.mean) * 100), 1000).astype(int)
    colour = np.array([LOSS, NEUTRAL, GAIN], object)[
        direction(cnvs.copy_number, result.options) + 1
    ]
    labels = class_labels(cnvs.copy_number, result.options.classes)
    rows = zip(*_places(result, cnvs), labels, score.tolist(), colour, strict=True)
    return "".join(
        f"{chrom}\t{start}\t{end}\t{sample}:{label}\t{score}\t.\t{start}\t{end}\t{colour}\n"
        for chrom, start, end, sample, label, score, colour in rows
    ).encode()


def seg(result: CnvResult) -> bytes:
    """All segments for IGV; positions from 1, inclusive."""
    import pyarrow as pa

    segments = result.segments
    columns = {
        "ID": names(segments.sample, result.samples),
        "chrom": names(segments.chrom, result.regions.names),
        "loc.start": segments.start + 1,
        "loc.end": segments.end,
        "num.mark": segments.rows,
        "seg.mean": segments.mean,
    }
    return tsv(pa.table(columns))


def _places(result: CnvResult, table: SegmentTable) -> tuple[list[Any], ...]:
    """chromosome, start, end, sample of every row."""
    chromosomes = np.array(result.regions.names, object)[table.chrom].tolist()
    samples = np.array(result.samples, object)[table.sample].tolist()
    return chromosomes, table.start.tolist(), table.end.tolist(), samples


def igv_session(genome: str | None, tracks: Sequence[str] = TRACKS) -> bytes:
    """An IGV session with the tracks, which lie beside it."""
    attributes = {"version": "8", **({"genome": genome} if genome else {})}
    session = ET.Element("Session", attributes)
    resources = ET.SubElement(session, "Resources")
    for track in tracks:
        ET.SubElement(resources, "Resource", path=track, type=_kind(track))
    ET.indent(session)
    text: bytes = ET.tostring(session, "utf-8", xml_declaration=True)
    return text + b"\n"


def _kind(track: str) -> str:
    return track.removesuffix(".gz").rpartition(".")[2]


def genome_of(result: CnvResult) -> str | None:
    """The IGV name of the genome whose first chromosome ends where the regions do, if any."""
    for name in FIRST_CHROMOSOME:
        if name in result.regions.names:
            rows = result.regions.chrom == result.regions.names.index(name)
            return GENOMES.get(int(result.regions.end[rows].max()))
    return None

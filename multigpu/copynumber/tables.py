"""Calls as text: tab-separated tables, BED, SEG and a session of the genome browser IGV."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from multigpu.copynumber.calls import Indices
from multigpu.copynumber.options import CnvOptions
from multigpu.copynumber.result import CnvResult, SegmentTable, class_labels

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


def tsv(table: "pa.Table") -> bytes:
    """A header and a line for every row; numbers as the shortest text that reads back equal."""
    columns = [_texts(column) for column in table.columns]
    lines = ["\t".join(row) for row in zip(*columns, strict=True)]
    return "".join(f"{line}\n" for line in ["\t".join(table.column_names), *lines]).encode()


def _texts(column: Any) -> list[str]:
    values = column.to_pylist()
    return values if values and isinstance(values[0], str) else [repr(value) for value in values]


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
    table = result.segments
    columns = (*_places(result, table), table.rows.tolist(), table.mean.tolist())
    lines = (
        f"{sample}\t{chrom}\t{start + 1}\t{end}\t{count}\t{mean!r}\n"
        for chrom, start, end, sample, count, mean in zip(*columns, strict=True)
    )
    return "".join(["ID\tchrom\tloc.start\tloc.end\tnum.mark\tseg.mean\n", *lines]).encode()


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

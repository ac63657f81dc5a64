"""Text files of the calls: tab-separated tables, BED, SEG and a session of the browser IGV."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from multigpu.cnv.calls.copy_numbers import class_labels, direction
from multigpu.cnv.output.colours import GAIN_RED, NEUTRAL, Palette
from multigpu.cnv.output.lines import Text, block_rows, blocks, joined, lines
from multigpu.cnv.output.tables import names_of
from multigpu.cnv.result import CnvResult
from multigpu.formats.tables.arrow import table

if TYPE_CHECKING:
    import pyarrow as pa

TRACKS = ("cnvs.bed", "segments.seg", "cnvs.vcf.gz")
BED_COLUMNS = 9
SCALE = "-0.1;-1.5;0.1;1.5"  # of segment means


def tsv(rows: "pa.Table") -> "Iterator[bytes | Text]":
    """Yield a header and a line for every row, with numbers as Python writes them."""
    yield ("\t".join(rows.column_names) + "\n").encode()
    step = block_rows(rows.num_columns)
    for block in rows.combine_chunks().to_batches(max_chunksize=step):
        yield lines(*block.columns)


def bed(result: CnvResult, palette: Palette = GAIN_RED) -> Iterator[Text]:
    """Yield the CNVs as BED9, with colours; the score is 100 times |mean|, at most 1000."""
    every, options = result.called, result.options
    order = np.lexsort((every.sample, every.end, every.start, every.chrom))
    colours = palette.loss.rgb, NEUTRAL, palette.gain.rgb
    for rows in blocks(len(every), BED_COLUMNS):
        cnvs = every.take(order[rows])
        score = np.minimum(np.rint(np.abs(cnvs.mean) * 100), 1000).astype(int)
        sample = names_of(cnvs.sample, result.samples)
        label = names_of(*class_labels(result.usual.shown_classes(cnvs, options), options.classes))
        chrom, place = names_of(cnvs.chrom, result.regions.names), (cnvs.start, cnvs.end)
        colour = names_of(direction(cnvs.copy_number, options) + 1, colours)
        yield lines(chrom, *place, joined(sample, label, by=":"), score, ".", *place, colour)


def seg(result: CnvResult) -> "Iterator[bytes | Text]":
    """Yield all segments for IGV; positions are from 1, inclusive."""
    segments = result.segments
    columns = {
        "ID": names_of(segments.sample, result.samples),
        "chrom": names_of(segments.chrom, result.regions.names),
        "loc.start": segments.start + 1,
        "loc.end": segments.end,
        "num.mark": segments.rows,
        "seg.mean": segments.mean,
    }
    return tsv(table(columns.items()))


def igv_session(
    genome: str | None, tracks: Sequence[str] = TRACKS, palette: Palette = GAIN_RED
) -> bytes:
    """Return an IGV session with the tracks, which lie beside it, and the colours of segments."""
    attributes = {"version": "8", **({"genome": genome} if genome else {})}
    session = ET.Element("Session", attributes)
    resources = ET.SubElement(session, "Resources")
    for track in tracks:
        kind = track.removesuffix(".gz").rpartition(".")[2]
        ET.SubElement(resources, "Resource", path=track, type=kind)
    scales = ET.SubElement(session, "ColorScales")
    # IGV's own scale for SEG, from loss to gain; between the inner limits it is white.
    scale = f"ContinuousColorScale;{SCALE};{palette.loss.bright};255,255,255;{palette.gain.bright}"
    ET.SubElement(scales, "ColorScale", type="COPY_NUMBER", value=scale)
    ET.indent(session)
    text: bytes = ET.tostring(session, "utf-8", xml_declaration=True)
    return text + b"\n"

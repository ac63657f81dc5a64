"""Text files of the calls: tab-separated tables, BED, SEG and a session of the browser IGV."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from multigpu.formats.tables import arrow
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction
from multigpu.workloads.cnv.results.result import CnvResult

CELLS = 1 << 18  # joined at a time: far below 2 GiB, which is the most Arrow joins
TRACKS = ("cnvs.bed", "segments.seg", "cnvs.vcf.gz")
BED_COLUMNS = 9
LOSS, NEUTRAL, GAIN = "30,60,200", "120,120,120", "200,30,30"  # colours in BED
# IGV's own scale of segment means, from loss to gain; between the inner limits it is white.
SCALE = "ContinuousColorScale;-0.1;-1.5;0.1;1.5;0,0,255;255,255,255;255,0,0"

Text: TypeAlias = pa.Buffer  # Arrow's own memory: to copy it would hold the interpreter
Column: TypeAlias = pa.Array | NDArray[Any] | str  # a text is the same in all rows


# ---- lines from columns, joined by Arrow without a Python object for each row ------------------


def lines(*columns: Column) -> Text:
    """Return a line for every row, with tabs between the columns."""
    return arrow.text(joined(*columns[:-1], joined(columns[-1], "\n"), by="\t"))


def joined(*columns: Column, by: str = "") -> pa.Array:
    """Return the texts of each row, joined with `by`."""
    found = [arrow.word(each) if isinstance(each, str) else texts(each) for each in columns]
    return pc.binary_join_element_wise(*found, arrow.word(by))


def texts(column: pa.Array | NDArray[Any]) -> pa.Array:
    """Return numbers as Python writes them: the shortest text that reads back equal.

    Arrow writes some of them otherwise, whole ones without ".0". Texts stay as they are.
    """
    values = arrow.numbers(column) if isinstance(column, np.ndarray) else column
    if pa.types.is_floating(values.type):
        return arrow.strings([*map(repr, arrow.values(values).tolist())])
    return values.cast(pa.string())


# ---- files ------------------------------------------------------------------------------------


def tsv(rows: pa.Table) -> Iterator[bytes | Text]:
    """Yield a header and a line for every row, with numbers as Python writes them."""
    yield ("\t".join(rows.column_names) + "\n").encode()
    step = max(1, CELLS // rows.num_columns)
    for block in rows.combine_chunks().to_batches(max_chunksize=step):
        yield lines(*block.columns)


def bed(result: CnvResult) -> Iterator[Text]:
    """Yield the CNVs as BED9, with colours; the score is 100 times |mean|, at most 1000."""
    every, options = result.called, result.options
    order = np.lexsort((every.sample, every.end, every.start, every.chrom))
    for begin in range(0, len(every), CELLS // BED_COLUMNS):
        cnvs = every.take(order[begin : begin + CELLS // BED_COLUMNS])
        score = np.minimum(np.rint(np.abs(cnvs.mean) * 100), 1000).astype(int)
        sample = arrow.named(cnvs.sample, result.samples)
        label = arrow.named(*class_labels(cnvs.shown, options.classes))
        chrom, place = arrow.named(cnvs.chrom, result.regions.names), (cnvs.start, cnvs.end)
        colour = arrow.named(direction(cnvs.copy_number, options) + 1, (LOSS, NEUTRAL, GAIN))
        yield lines(chrom, *place, joined(sample, label, by=":"), score, ".", *place, colour)


def seg(result: CnvResult) -> Iterator[bytes | Text]:
    """Yield all segments for IGV; positions are from 1, inclusive."""
    segments = result.segments
    columns = {
        "ID": arrow.named(segments.sample, result.samples),
        "chrom": arrow.named(segments.chrom, result.regions.names),
        "loc.start": segments.start + 1,
        "loc.end": segments.end,
        "num.mark": segments.rows,
        "seg.mean": segments.mean,
    }
    yield from tsv(arrow.table(columns.items()))


def igv_session(genome: str | None, tracks: Sequence[str] = TRACKS) -> bytes:
    """Return an IGV session with the tracks, which lie beside it, and the colours of segments."""
    attributes = {"version": "8", **({"genome": genome} if genome else {})}
    session = ET.Element("Session", attributes)
    resources = ET.SubElement(session, "Resources")
    for track in tracks:
        kind = track.removesuffix(".gz").rpartition(".")[2]
        ET.SubElement(resources, "Resource", path=track, type=kind)
    scales = ET.SubElement(session, "ColorScales")
    ET.SubElement(scales, "ColorScale", type="COPY_NUMBER", value=SCALE)
    ET.indent(session)
    text: bytes = ET.tostring(session, "utf-8", xml_declaration=True)
    return text + b"\n"

"""Text files: tables of calls and of quality, BED, SEG, a session of the browser IGV, MultiQC."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from multigpu.formats.tables import arrow
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction
from multigpu.workloads.cnv.results.qc import FEWEST_SAMPLES, QcTable
from multigpu.workloads.cnv.results.result import CnvResult

CELLS = 1 << 18  # joined at a time: far below 2 GiB, which is the most Arrow joins
TRACKS = ("cnvs.bed", "segments.seg", "cnvs.vcf.gz")
LOSS, NEUTRAL, GAIN = "30,60,200", "120,120,120", "200,30,30"  # colours in BED
# IGV's own scale of segment means, from loss to gain; between the inner limits it is white.
SCALE = "ContinuousColorScale;-0.1;-1.5;0.1;1.5;0,0,255;255,255,255;255,0,0"

Text: TypeAlias = pa.Buffer  # Arrow's own memory: to copy it would hold the interpreter


def texts(column: pa.Array) -> pa.Array:
    """Return numbers as Python writes them: the shortest text that reads back equal.

    Arrow writes some of them otherwise, whole ones without ".0". Texts stay as they are.
    """
    if pa.types.is_floating(column.type):
        return arrow.strings([*map(repr, arrow.values(column).tolist())])
    return column.cast(pa.string())


def lines(rows: pa.Table) -> Iterator[Text]:
    """Yield a line for every row, with tabs between the columns.

    Arrow joins them without a Python object for each row.
    """
    step = max(1, CELLS // rows.num_columns)
    for block in rows.combine_chunks().to_batches(max_chunksize=step):
        *others, last = map(texts, block.columns)
        ended = pc.binary_join_element_wise(last, arrow.word("\n"), arrow.word(""))
        yield arrow.text(pc.binary_join_element_wise(*others, ended, arrow.word("\t")))


def tsv(rows: pa.Table) -> Iterator[bytes | Text]:
    """Yield a header and a line for every row, with numbers as Python writes them."""
    yield ("\t".join(rows.column_names) + "\n").encode()
    yield from lines(rows)


def bed(result: CnvResult) -> Iterator[Text]:
    """Yield the CNVs as BED9, with colours; the score is 100 times |mean|, at most 1000."""
    every, options = result.called, result.options
    cnvs = every.take(np.lexsort((every.sample, every.end, every.start, every.chrom)))
    labels, names = class_labels(cnvs.shown, options.classes)
    rows = zip(cnvs.sample.tolist(), labels.tolist(), strict=True)
    columns = {
        "chrom": arrow.named(cnvs.chrom, result.regions.names),
        "start": cnvs.start,
        "end": cnvs.end,
        "name": arrow.strings([f"{result.samples[k]}:{names[label]}" for k, label in rows]),
        "score": np.minimum(np.rint(np.abs(cnvs.mean) * 100), 1000).astype(int),
        "strand": arrow.strings(["."] * len(cnvs)),
        "thickStart": cnvs.start,
        "thickEnd": cnvs.end,
        "itemRgb": arrow.named(direction(cnvs.copy_number, options) + 1, (LOSS, NEUTRAL, GAIN)),
    }
    yield from lines(arrow.table(columns.items()))


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


def qc_tsv(table: QcTable) -> bytes:
    """Return a header and a line for every sample."""
    fine = "no" if len(table) >= FEWEST_SAMPLES else None  # fewer are not compared
    rows = [{**row, "outlier": row["outlier"] or fine} for row in table.records()]
    lines = [rows[0], *(map(_qc_text, row.values()) for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def qc_multiqc(table: QcTable) -> bytes:
    """Return a section of a report of MultiQC, as JSON: a table of the samples."""
    rows = [{k: x for k, x in row.items() if x is not None} for row in table.records()]
    section = {
        "id": "multigpu_cnv",
        "section_name": "Copy numbers",
        "description": "Samples of multigpu cnv: reads, noise, calls and sex.",
        "plot_type": "table",
        "pconfig": {"id": "multigpu_cnv_table", "title": "multigpu: copy numbers"},
        "data": {row.pop("sample"): row for row in rows},
    }
    return json.dumps(section, indent=1).encode() + b"\n"


def _qc_text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return "NA" if value is None else f"{value:.0f}" if whole else str(value)

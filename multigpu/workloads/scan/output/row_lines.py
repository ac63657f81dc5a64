"""Rows of a scan as lines of TSV, CSV, text, BED and JSON lines."""

from collections.abc import Callable
from json.encoder import encode_basestring

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.output.columns import (
    Column,
    ScanRows,
    TextColumn,
    lines_of,
    samples_of,
    scores_of,
    signatures_of,
    strands_of,
)


def separated(rows: ScanRows, separator: bytes) -> bytes:
    samples, signatures = samples_of(rows), signatures_of(rows)
    if separator == b",":
        samples, signatures = _map_texts(samples, _csv_name), _map_texts(signatures, _csv_name)
    start, end, scores = rows.batch.start, rows.batch.end, scores_of(rows, repr, b"")
    return _delimited(rows, separator, samples, signatures, start, end, strands_of(rows), scores)


def text(rows: ScanRows) -> bytes:
    scores = scores_of(rows, "{:.3f}".format, b"-")
    return lines_of(len(rows), samples_of(rows), b": ", signatures_of(rows), b" (", scores, b")\n")


def bed(rows: ScanRows) -> bytes:
    start, end, signatures = rows.batch.start, rows.batch.end, signatures_of(rows)
    scores = np.clip(np.rint(np.nan_to_num(rows.batch.score) * 10), 0, 1000).astype(np.int64)
    return _delimited(
        rows, b"\t", samples_of(rows), start, end, signatures, scores, strands_of(rows)
    )


def _delimited(rows: ScanRows, separator: bytes, *columns: Column) -> bytes:
    """Return lines with these columns and those on request, the separator between them."""
    line: list[Column] = []
    for column in (*columns, *(_on_request(rows.batch, name) for name in rows.requested)):
        line += [column, separator]
    return lines_of(len(rows), *line[:-1], b"\n")


def jsonl(rows: ScanRows) -> bytes:
    batch, more = rows.batch, []
    for name in rows.requested:
        quote = b'"' if name == "cigar" else b""
        more += [b',"%s":%s' % (name.encode(), quote), _on_request(batch, name), quote]
    return lines_of(
        len(rows),
        b'{"sample":', _map_texts(samples_of(rows), _json_name),
        b',"signature":', _map_texts(signatures_of(rows), _json_name),
        b',"start":', batch.start,
        b',"end":', batch.end,
        b',"strand":"', strands_of(rows),
        b'","score":', scores_of(rows, repr, b"null"),
        *more,
        b"}\n",
    )  # fmt: skip


def _on_request(batch: Batch, name: str) -> Column:
    """Return a column on request."""
    return TextColumn.of(batch.cigar) if name == "cigar" else requested_numbers(batch, name)


def requested_numbers(batch: Batch, name: str) -> NDArray[np.int32]:
    """Return a column on request that is made of numbers."""
    return batch.ambiguous if name == "ambiguous" else batch.errors


def _map_texts(texts: TextColumn, change: Callable[[bytes], bytes]) -> TextColumn:
    return TextColumn(list(map(change, texts.distinct)), texts.which)


def _csv_name(name: bytes) -> bytes:
    """Return a name as in RFC 4180: in quotes where it needs them, with quotes inside doubled."""
    if b"," in name or b'"' in name or b"\r" in name:
        return b'"' + name.replace(b'"', b'""') + b'"'
    return name


def _json_name(name: bytes) -> bytes:
    return encode_basestring(name.decode("utf-8", "replace")).encode()

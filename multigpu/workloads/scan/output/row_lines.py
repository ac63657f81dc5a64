"""Rows of a scan as lines of TSV, CSV, text, BED and JSON lines."""

from json.encoder import encode_basestring

import numpy as np

from multigpu.workloads.scan.output.columns import (
    Column,
    Columns,
    ScanRows,
    delimited,
    lines_of,
    on_request,
    scores_of,
    signatures_of,
    strands_of,
)

COLUMNS = ("sample", "signature", "start", "end", "strand", "score")


def titles(requested: Columns, separator: str) -> str:
    """Return the line of names above those of `separated`."""
    return separator.join([*COLUMNS, *requested]) + "\n"


def separated(rows: ScanRows, separator: bytes) -> bytes:
    samples, signatures = rows.batch.sample, signatures_of(rows)
    start, end, scores = rows.batch.start, rows.batch.end, scores_of(rows, repr, b"")
    return _delimited(rows, separator, samples, signatures, start, end, strands_of(rows), scores)


def text(rows: ScanRows) -> bytes:
    scores = scores_of(rows, "{:.3f}".format, b"-")
    return lines_of(rows.batch.sample, b": ", signatures_of(rows), b" (", scores, b")\n")


def bed(rows: ScanRows) -> bytes:
    start, end, signatures = rows.batch.start, rows.batch.end, signatures_of(rows)
    scores = np.clip(np.rint(np.nan_to_num(rows.batch.score) * 10), 0, 1000).astype(np.int64)
    return _delimited(
        rows, b"\t", rows.batch.sample, start, end, signatures, scores, strands_of(rows)
    )


def _delimited(rows: ScanRows, separator: bytes, *columns: Column) -> bytes:
    """Return lines with these columns and those on request, the separator between them."""
    line = [*columns, *(on_request(rows, name) for name in rows.requested)]
    if separator == b",":
        line = [list(map(_csv_name, c)) if isinstance(c, list) else c for c in line]
    return delimited(separator, line)


def jsonl(rows: ScanRows) -> bytes:
    batch, more = rows.batch, []
    for name in rows.requested:
        column = on_request(rows, name)
        if isinstance(column, list):
            column = list(map(_json_name, column))
        more += [b',"%s":' % name.encode(), column]
    return lines_of(
        b'{"sample":', list(map(_json_name, batch.sample)),
        b',"signature":', list(map(_json_name, signatures_of(rows))),
        b',"start":', batch.start,
        b',"end":', batch.end,
        b',"strand":"', strands_of(rows),
        b'","score":', scores_of(rows, repr, b"null"),
        *more,
        b"}\n",
    )  # fmt: skip


def _csv_name(name: bytes) -> bytes:
    """Return a name as in RFC 4180: in quotes where it needs them, with quotes inside doubled."""
    if b"," in name or b'"' in name or b"\r" in name:
        return b'"' + name.replace(b'"', b'""') + b'"'
    return name


def _json_name(name: bytes) -> bytes:
    return encode_basestring(name.decode("utf-8", "replace")).encode()

"""Rows of a scan as lines of TSV, CSV and BED."""

import numpy as np

from multigpu.workloads.scan.output.columns import (
    Column,
    Columns,
    ScanRows,
    delimited,
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


def _csv_name(name: bytes) -> bytes:
    """Return a name as in RFC 4180: in quotes where it needs them, with quotes inside doubled."""
    if b"," in name or b'"' in name or b"\r" in name:
        return b'"' + name.replace(b'"', b'""') + b'"'
    return name

"""Rows of a scan, and outputs of them."""

import math
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.formats.sequences.signatures import Signatures
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.registry import FORMATS
from multigpu.workloads.scan.output.row_sink import RowSink
from multigpu.workloads.scan.sink import Findings
from support.scanned import signatures_named

NAMES = signatures_named([b"adapter", b"caf\xc3\xa9", b"\xff"])


def batch(*rows: tuple[bytes, int, int, int, bool, float], first: int = 0, **more: Any) -> Batch:
    """Rows of these columns; row i has i ambiguous bases and 3 + i errors."""
    samples, signatures, starts, ends, reverses, scores = zip(*rows, strict=True)
    columns = {
        "sample_index": np.arange(first, first + len(rows)),
        "ambiguous": np.arange(len(rows), dtype=np.int32),
        "errors": np.arange(len(rows), dtype=np.int32) + 3,
        "sample_length": np.array(ends, np.int64) + 5, "source": np.zeros(len(rows), np.int32),
        "mate": np.zeros(len(rows), np.int8), "tied": np.zeros(len(rows), np.int32),
        "bulge": np.zeros(len(rows), np.int32),
        "cigar": [b"%d=1X" % length for length in range(len(rows))], "bases": [b""] * len(rows),
    }  # fmt: skip
    return Batch(
        sample=list(samples), signature=np.array(signatures, np.int32),
        start=np.array(starts, np.int64), end=np.array(ends, np.int64),
        reverse=np.array(reverses, np.bool_), score=np.array(scores, np.float64),
        **{**columns, **more},
    )  # fmt: skip


ROWS = batch(
    (b"read1", 0, 0, 12, False, 21.85),
    (b"read2", 1, 3, 15, True, 10.0),
    (b"read2", 0, 2**40, 2**40 + 12, False, math.nan),
)


def random_rows(count: int, seed: int = 1) -> Batch:
    """Return rows, three of each sample."""
    draw = np.random.default_rng(seed)
    scores = np.round(draw.random(count) * 40, 2)
    scores[draw.random(count) < 0.2] = np.nan
    which, starts = draw.integers(0, len(NAMES), count), draw.integers(0, 1000, count)
    names = [b"read%d" % (number // 3) for number in range(count)]
    reverse = draw.random(count) < 0.5
    rows = zip(names, which, starts, starts + 12, reverse, scores, strict=True)
    return batch(*rows, sample_index=np.arange(count) // 3)


def sink(
    fmt: str, *columns: str, path: str | None = None, signatures: Signatures = NAMES,
    files: tuple[str, ...] = ("samples",), options: ScanOptions | None = None,
) -> RowSink[Any]:  # fmt: skip
    """Return the output in a format with columns on request."""
    made: RowSink[Any] = FORMATS[fmt].sink(
        path=path, format=FORMATS[fmt], columns=FORMATS[fmt].columns(columns),
        signatures=signatures, files=files, layouts=frozenset(["fastq"]),
        options=options or ScanOptions(),
    )  # fmt: skip
    return made


def collected(output: RowSink[Any], rows: Batch) -> Any:
    """Return what an output takes of rows on a worker."""
    lengths = rows.sample_length
    about = {"path": "samples", "source": 0, "rows": rows, "lengths": lengths}
    return output.collect(Findings(**about, names=lambda: rows.sample))


def render(rows: Batch, fmt: str, *columns: str, signatures: Signatures = NAMES) -> bytes:
    """Return the lines of rows, without a header."""
    lines: bytes = collected(sink(fmt, *columns, signatures=signatures), rows)
    return lines


def written(batches: list[Batch], path: Path, fmt: str, *columns: str) -> bytes:
    """Return the file of batches, written one after the other."""
    output, first = sink(fmt, *columns, path=str(path)), 0
    with ExitStack() as files, output.open(files) as write:
        for rows in batches:
            write(collected(output, rows.numbered(-first)), first)
            first = int(rows.sample_index[-1]) + 1 if len(rows) else first
    return path.read_bytes()


def without_files(table: bytes) -> bytes:
    """Return TSV of rows without its last column, the file."""
    return re.sub(rb"\t[^\t\n]*\n", b"\n", table)

"""Batches to tables: tsv, text, bed, jsonl and Parquet, compressed or not.

The bytes written depend on the rows and their order only, never on how the rows were divided
into batches: text is cut anew into blocks before it is compressed, Parquet into row groups.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from json.encoder import encode_basestring
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.batch import Batch
from multigpu.errors import UsageError
from multigpu.io import parquet
from multigpu.io.arrow import numbers, pyarrow, strings
from multigpu.io.compressed import COMPRESSIONS, Compressed, Compression
from multigpu.io.parquet import RowGroups

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("tsv", "text", "bed", "jsonl", "parquet")
SUFFIXES = {
    ".tsv": "tsv",
    ".txt": "text",
    ".bed": "bed",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".pq": "parquet",
    ".parquet": "parquet",
}

COLUMNS = ("sample", "signature", "start", "end", "strand", "score")

PIECE = 1 << 14  # rows rendered at a time: their Python objects stay in the processor's cache


def format_of(path: str | None, chosen: str | None) -> str:
    """The format asked for, or the one the path's suffix means; tsv where it means none."""
    if chosen is not None:
        if chosen not in FORMATS:
            raise UsageError(f"unknown format {chosen!r}: choose from {', '.join(FORMATS)}")
        return chosen
    suffixes = [suffix.lower() for suffix in PurePath(path or "").suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1], "tsv") if suffixes else "tsv"


def header(fmt: str) -> bytes:
    """What stands above the rows: the column names of a tsv file, nothing elsewhere."""
    return ("\t".join(COLUMNS) + "\n").encode() if fmt == "tsv" else b""


def render(batch: Batch, signature_names: Sequence[bytes], fmt: str) -> bytes:
    """The rows as lines of one of the text formats; no header.

    tsv    sample, signature, start, end, strand, score; the score as the shortest decimal that
           reads back equal, empty without quality
    text   `sample: signature (score)` with three decimals, `(-)` without quality
    bed    BED6: sample, start, end, signature, score, strand; the score is 10 x the score,
           rounded (halves to even) and held within 0..1000, 0 without quality
    jsonl  an object with the tsv columns on each line; names that are no UTF-8 get U+FFFD; the
           score is null without quality
    """
    pieces = range(0, len(batch), PIECE)
    return b"".join([RENDERERS[fmt](batch[at : at + PIECE], signature_names) for at in pieces])


Columns = tuple[list[str], list[str], list[int], list[int], list[str]]


def _tsv(batch: Batch, signature_names: Sequence[bytes]) -> bytes:
    scores = _per_row(batch.score, repr, "")
    rows = zip(*_columns(batch, signature_names), scores, strict=True)
    return "".join(
        f"{sample}\t{signature}\t{start}\t{end}\t{strand}\t{score}\n"
        for sample, signature, start, end, strand, score in rows
    ).encode("latin-1")


def _text(batch: Batch, signature_names: Sequence[bytes]) -> bytes:
    scores = _per_row(batch.score, "{:.3f}".format, "-")
    rows = zip(*_columns(batch, signature_names), scores, strict=True)
    return "".join(
        f"{sample}: {signature} ({score})\n" for sample, signature, _, _, _, score in rows
    ).encode("latin-1")


def _bed(batch: Batch, signature_names: Sequence[bytes]) -> bytes:
    scores = np.clip(np.rint(np.nan_to_num(batch.score) * 10), 0, 1000).astype(np.int64)
    rows = zip(*_columns(batch, signature_names), scores.tolist(), strict=True)
    return "".join(
        f"{sample}\t{start}\t{end}\t{signature}\t{score}\t{strand}\n"
        for sample, signature, start, end, strand, score in rows
    ).encode("latin-1")


def _jsonl(batch: Batch, signature_names: Sequence[bytes]) -> bytes:
    scores = _per_row(batch.score, repr, "null")
    rows = zip(*_columns(batch, signature_names, _json_strings), scores, strict=True)
    return "".join(
        f'{{"sample":{sample},"signature":{signature},"start":{start},"end":{end}'
        f',"strand":"{strand}","score":{score}}}\n'
        for sample, signature, start, end, strand, score in rows
    ).encode()


RENDERERS: dict[str, Callable[[Batch, Sequence[bytes]], bytes]] = {
    "tsv": _tsv,
    "text": _text,
    "bed": _bed,
    "jsonl": _jsonl,
}


def _latin1(names: Sequence[bytes]) -> list[str]:
    """Bytes as characters, one each: put together as text and encoded they are the same bytes."""
    return _decoded(names, "latin-1")


def _json_strings(names: Sequence[bytes]) -> list[str]:
    return list(map(encode_basestring, _decoded(names, "utf-8")))


def _decoded(names: Sequence[bytes], encoding: str) -> list[str]:
    """All at once: a call for each name takes longer. Names hold no line ends."""
    return b"\n".join(names).decode(encoding, "replace").split("\n") if names else []


def _columns(
    batch: Batch,
    signature_names: Sequence[bytes],
    decode: Callable[[Sequence[bytes]], list[str]] = _latin1,
) -> Columns:
    """All columns but the score, as lists: an array's elements are slow to take one by one."""
    which, rows = np.unique(batch.signature, return_inverse=True)  # names that occur, no others
    signatures = np.array(decode([signature_names[i] for i in which.tolist()]), object)
    strands = np.array(["+", "-"], object)
    return (
        decode(batch.sample),
        signatures[rows].tolist(),
        batch.start.tolist(),
        batch.end.tolist(),
        strands[batch.reverse.astype(np.intp)].tolist(),
    )


def _per_row(scores: NDArray[np.float64], show: Callable[[float], str], missing: str) -> list[str]:
    """float64[n] as n texts; each distinct score is rendered once, NaN as `missing`."""
    distinct, rows = np.unique(scores + 0.0, return_inverse=True)  # + 0.0: no -0.0 beside 0.0
    texts = [missing if math.isnan(score) else show(score) for score in distinct.tolist()]
    texts_by_row: list[str] = np.array(texts, object)[rows].tolist()
    return texts_by_row


# ---- Arrow ------------------------------------------------------------------------------------


def to_arrow(batch: Batch, signature_names: Sequence[bytes]) -> "pa.Table":
    """The rows as a table with the columns of the Parquet files (see `_schema`).

    Names that are no UTF-8 get U+FFFD; the score is null without quality.
    """
    pa = pyarrow()
    schema = _schema(pa)
    # In pieces, because one array of strings holds 2 GiB at most.
    pieces = [
        pa.Table.from_arrays(
            _arrays(batch[at : at + parquet.ROW_GROUP], signature_names), schema=schema
        )
        for at in range(0, len(batch), parquet.ROW_GROUP)
    ]
    return pa.concat_tables(pieces) if pieces else pa.Table.from_batches([], schema)


def _schema(pa: Any) -> "pa.Schema":
    return pa.schema(
        [
            pa.field("sample", pa.string(), nullable=False),
            pa.field("sample_index", pa.int64(), nullable=False),
            pa.field("signature", pa.string(), nullable=False),
            pa.field("signature_index", pa.int32(), nullable=False),
            pa.field("start", pa.int64(), nullable=False),
            pa.field("end", pa.int64(), nullable=False),
            pa.field("strand", pa.string(), nullable=False),
            pa.field("score", pa.float64()),
        ]
    )


def _arrays(batch: Batch, signature_names: Sequence[bytes]) -> list["pa.Array"]:
    """The columns in the order of the schema."""
    which, rows = np.unique(batch.signature, return_inverse=True)
    names = strings(_decoded([signature_names[i] for i in which.tolist()], "utf-8"))
    return [
        strings(_decoded(batch.sample, "utf-8")),
        numbers(batch.sample_index),
        names.take(numbers(rows.astype(np.int32))),
        numbers(batch.signature),
        numbers(batch.start),
        numbers(batch.end),
        strings(["+", "-"]).take(numbers(batch.reverse.astype(np.int8))),
        numbers(batch.score, nan_is_null=True),
    ]


# ---- sinks ------------------------------------------------------------------------------------


class Sink(Protocol):
    """Where rows go, in order. `raw` stays open: who opened it closes it."""

    def write(self, rows: Batch | bytes) -> None:
        """Rows, or text that `render` made of rows elsewhere."""

    def close(self) -> None:
        """Write what is still held back. Without this call the file is not complete."""

    def abandon(self) -> None:
        """Forget it: the run has failed."""


def open_sink(
    raw: BinaryIO, fmt: str, compression: Compression, signature_names: Sequence[bytes]
) -> Sink:
    """A sink that has written its header. Raises UsageError for what does not go together."""
    if fmt != "parquet":
        return _TextSink(raw, fmt, compression, signature_names)
    if compression != "none":
        raise UsageError(parquet.COMPRESSED_INSIDE)
    return _ParquetSink(raw, signature_names)


@contextmanager
def closed_after(sink: Sink) -> Iterator[Sink]:
    """Closes the sink when the block ends well, abandons it otherwise."""
    try:
        yield sink
    except BaseException:
        sink.abandon()
        raise
    sink.close()


class _TextSink:
    """Lines."""

    def __init__(
        self, raw: BinaryIO, fmt: str, compression: Compression, signature_names: Sequence[bytes]
    ) -> None:
        self._fmt, self._names = fmt, signature_names
        self._lines = Compressed(raw, compression)
        self.write(header(fmt))

    def write(self, rows: Batch | bytes) -> None:
        self._lines.write(render(rows, self._names, self._fmt) if isinstance(rows, Batch) else rows)

    def close(self) -> None:
        self._lines.close()

    def abandon(self) -> None:
        """Nothing is held that would be written later."""


class _ParquetSink:
    """Row groups of a Parquet file."""

    def __init__(self, raw: BinaryIO, signature_names: Sequence[bytes]) -> None:
        self._names = signature_names
        self._groups = RowGroups(raw, _schema(pyarrow()), ["sample", "signature", "strand"])

    def write(self, rows: Batch | bytes) -> None:
        if isinstance(rows, bytes):
            raise TypeError("Parquet is written from batches, not from text")
        self._groups.write(to_arrow(rows, self._names))

    def close(self) -> None:
        self._groups.close()

    def abandon(self) -> None:
        self._groups.abandon()

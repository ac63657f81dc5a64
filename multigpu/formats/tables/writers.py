"""Batches to tables: tsv, csv, text, bed, jsonl and Parquet, compressed or not.

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

from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import COMPRESSIONS, Compressed, Compression
from multigpu.formats.storage.suffixes import OTHERS
from multigpu.formats.tables import parquet
from multigpu.formats.tables.arrow import numbers, pyarrow, strings
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.parquet import RowGroups

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("tsv", "csv", "text", "bed", "jsonl", "parquet")
SUFFIXES = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".txt": "text",
    ".bed": "bed",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".pq": "parquet",
    ".parquet": "parquet",
}

NOT_WRITTEN = OTHERS - SUFFIXES.keys()

COLUMNS = ("sample", "signature", "start", "end", "strand", "score")
AMBIGUOUS = "ambiguous"  # a column that some formats have on request only
WITH_AMBIGUOUS = f"+{AMBIGUOUS}"  # what the name of such a format then ends with
ON_REQUEST = ("tsv", "csv", "bed")

PIECE = 1 << 14  # rows rendered at a time: their Python objects stay in the processor's cache


def format_of(path: str | None, chosen: str | None) -> str:
    """The format asked for, or the one the path's suffix means; tsv where it means none.

    Raises UsageError for a suffix that promises what is not written.
    """
    if chosen is not None:
        if chosen not in FORMATS:
            raise UsageError(f"unknown format {chosen!r}: choose from {', '.join(FORMATS)}")
        return chosen
    suffixes = [suffix.lower() for suffix in PurePath(path or "").suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in NOT_WRITTEN:
        possible = ", ".join(dict.fromkeys(SUFFIXES))
        raise UsageError(
            f"{path}: {suffix} files cannot be written: choose a name that ends in {possible},"
            " with .gz or .zst after it to compress; or say --format tsv"
        )
    return SUFFIXES.get(suffix, "tsv")


def with_ambiguous(fmt: str) -> str:
    """The format with the column `ambiguous`, where it has that on request only."""
    return fmt + WITH_AMBIGUOUS if fmt in ON_REQUEST else fmt


def header(fmt: str) -> bytes:
    """What stands above the rows: the column names of a tsv or csv file, nothing elsewhere."""
    plain = fmt.removesuffix(WITH_AMBIGUOUS)
    if plain not in SEPARATORS:
        return b""
    columns = COLUMNS if fmt == plain else (*COLUMNS, AMBIGUOUS)
    return (SEPARATORS[plain].join(columns) + "\n").encode()


def render(batch: Batch, signature_names: Sequence[bytes], fmt: str) -> bytes:
    """The rows as lines of one of the text formats; no header.

    tsv    sample, signature, start, end, strand, score; the score as the shortest decimal that
           reads back equal, empty without quality
    csv    the same with commas; names with a comma or a quote are in quotes
    text   `sample: signature (score)` with three decimals, `(-)` without quality
    bed    BED6: sample, start, end, signature, score, strand; the score is 10 x the score,
           rounded (halves to even) and held within 0..1000, 0 without quality
    jsonl  an object with the tsv columns and `ambiguous` on each line; names that are no UTF-8 get
           U+FFFD; the score is null without quality

    tsv, csv and bed have `ambiguous` as the last column where `with_ambiguous` is the format.
    """
    plain = fmt.removesuffix(WITH_AMBIGUOUS)
    renderer, pieces = RENDERERS[plain], range(0, len(batch), PIECE)
    return b"".join(
        [renderer(batch[at : at + PIECE], signature_names, fmt != plain) for at in pieces]
    )


Columns = tuple[list[str], list[str], list[int], list[int], list[str]]


def _tsv(batch: Batch, signature_names: Sequence[bytes], ambiguous: bool) -> bytes:
    scores, last = _per_row(batch.score, repr, ""), _last(batch, ambiguous, "\t")
    rows = zip(*_columns(batch, signature_names), scores, last, strict=True)
    return "".join(
        f"{sample}\t{signature}\t{start}\t{end}\t{strand}\t{score}{more}\n"
        for sample, signature, start, end, strand, score, more in rows
    ).encode("latin-1")


def _csv(batch: Batch, signature_names: Sequence[bytes], ambiguous: bool) -> bytes:
    scores, last = _per_row(batch.score, repr, ""), _last(batch, ambiguous, ",")
    rows = zip(*_columns(batch, signature_names, _csv_strings), scores, last, strict=True)
    return "".join(
        f"{sample},{signature},{start},{end},{strand},{score}{more}\n"
        for sample, signature, start, end, strand, score, more in rows
    ).encode("latin-1")


def _text(batch: Batch, signature_names: Sequence[bytes], _: bool) -> bytes:
    scores = _per_row(batch.score, "{:.3f}".format, "-")
    rows = zip(*_columns(batch, signature_names), scores, strict=True)
    return "".join(
        f"{sample}: {signature} ({score})\n" for sample, signature, _, _, _, score in rows
    ).encode("latin-1")


def _bed(batch: Batch, signature_names: Sequence[bytes], ambiguous: bool) -> bytes:
    scores = np.clip(np.rint(np.nan_to_num(batch.score) * 10), 0, 1000).astype(np.int64)
    last = _last(batch, ambiguous, "\t")
    rows = zip(*_columns(batch, signature_names), scores.tolist(), last, strict=True)
    return "".join(
        f"{sample}\t{start}\t{end}\t{signature}\t{score}\t{strand}{more}\n"
        for sample, signature, start, end, strand, score, more in rows
    ).encode("latin-1")


def _jsonl(batch: Batch, signature_names: Sequence[bytes], _: bool) -> bytes:
    scores = _per_row(batch.score, repr, "null")
    columns = _columns(batch, signature_names, _json_strings)
    rows = zip(*columns, scores, batch.ambiguous.tolist(), strict=True)
    return "".join(
        f'{{"sample":{sample},"signature":{signature},"start":{start},"end":{end}'
        f',"strand":"{strand}","score":{score},"ambiguous":{ambiguous}}}\n'
        for sample, signature, start, end, strand, score, ambiguous in rows
    ).encode()


SEPARATORS = {"tsv": "\t", "csv": ","}
RENDERERS: dict[str, Callable[[Batch, Sequence[bytes], bool], bytes]] = {
    "tsv": _tsv,
    "csv": _csv,
    "text": _text,
    "bed": _bed,
    "jsonl": _jsonl,
}


def _latin1(names: Sequence[bytes]) -> list[str]:
    """Bytes as characters, one each: put together as text and encoded they are the same bytes."""
    return _decoded(names, "latin-1")


def _csv_strings(names: Sequence[bytes]) -> list[str]:
    """As RFC 4180 has them: in quotes where they need them, and quotes within doubled."""
    return [
        '"' + name.replace('"', '""') + '"' if "," in name or '"' in name or "\r" in name else name
        for name in _latin1(names)
    ]


def _last(batch: Batch, ambiguous: bool, separator: str) -> list[str]:
    """The column `ambiguous`, each with the separator before it; empty texts where it is not."""
    if not ambiguous:
        return [""] * len(batch)
    return [f"{separator}{count}" for count in batch.ambiguous.tolist()]


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
            pa.field("ambiguous", pa.int32(), nullable=False),
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
        numbers(batch.ambiguous),
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

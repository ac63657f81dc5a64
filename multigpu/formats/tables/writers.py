"""Writers of the rows of a scan: TSV, CSV, text, BED, JSON lines and Parquet, compressed or not.

The bytes written depend on the rows and their order only, never on how the rows were divided into
batches: text is cut into blocks again before it is compressed, Parquet into row groups.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import Compressed, Compression
from multigpu.formats.storage.suffixes import FOREIGN, PARQUET, uncompressed_suffix
from multigpu.formats.tables import parquet
from multigpu.formats.tables.arrow import numbers, pyarrow, strings
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.parquet import RowGroups

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("sample", "signature", "start", "end", "strand", "score")
# Columns on request, in their order. The name of a format with some of them is, e.g.,
# "tsv+edits+cigar".
REQUESTED = ("mismatches", "edits", "cigar", "ambiguous")

PIECE = 1 << 14  # rows rendered at a time: their Python objects stay in the processor's cache


Names = Sequence[bytes]
Columns = tuple[list[str], list[str], list[int], list[int], list[str]]
Requested = tuple[str, ...]  # some of `REQUESTED`


def _separated(batch: Batch, signature_names: Names, more: Requested, separator: str) -> bytes:
    decode = _csv_strings if separator == "," else _latin1
    scores, last = _per_row(batch.score, repr, ""), _last(batch, more, separator)
    rows, cut = zip(*_columns(batch, signature_names, decode), scores, last, strict=True), separator
    return "".join(
        f"{sample}{cut}{signature}{cut}{start}{cut}{end}{cut}{strand}{cut}{score}{rest}\n"
        for sample, signature, start, end, strand, score, rest in rows
    ).encode("latin-1")


def _text(batch: Batch, signature_names: Names, _: Requested) -> bytes:
    scores = _per_row(batch.score, "{:.3f}".format, "-")
    rows = zip(*_columns(batch, signature_names), scores, strict=True)
    return "".join(
        f"{sample}: {signature} ({score})\n" for sample, signature, _, _, _, score in rows
    ).encode("latin-1")


def _bed(batch: Batch, signature_names: Names, more: Requested) -> bytes:
    scores = np.clip(np.rint(np.nan_to_num(batch.score) * 10), 0, 1000).astype(np.int64)
    last = _last(batch, more, "\t")
    rows = zip(*_columns(batch, signature_names), scores.tolist(), last, strict=True)
    return "".join(
        f"{sample}\t{start}\t{end}\t{signature}\t{score}\t{strand}{rest}\n"
        for sample, signature, start, end, strand, score, rest in rows
    ).encode("latin-1")


def _jsonl(batch: Batch, signature_names: Names, more: Requested) -> bytes:
    scores = _per_row(batch.score, repr, "null")
    columns = _columns(batch, signature_names, _json_strings)
    last = [""] * len(batch)
    for name in more:
        quote = '"' if name == "cigar" else ""
        texts = _texts(batch, name)
        last = [
            f'{rest},"{name}":{quote}{text}{quote}' for rest, text in zip(last, texts, strict=True)
        ]
    rows = zip(*columns, scores, last, strict=True)
    return "".join(
        f'{{"sample":{sample},"signature":{signature},"start":{start},"end":{end}'
        f',"strand":"{strand}","score":{score}{rest}}}\n'
        for sample, signature, start, end, strand, score, rest in rows
    ).encode()


def _latin1(names: Sequence[bytes]) -> list[str]:
    """Return bytes as characters, one each: encoded again they are the same bytes."""
    return _decoded(names, "latin-1")


def _csv_strings(names: Sequence[bytes]) -> list[str]:
    """Return names as in RFC 4180: in quotes where they need them, with quotes inside doubled."""
    return [
        '"' + name.replace('"', '""') + '"' if "," in name or '"' in name or "\r" in name else name
        for name in _latin1(names)
    ]


def _last(batch: Batch, more: Requested, separator: str) -> list[str]:
    """Return the columns on request as one text a row, each with the separator before it."""
    if not more:
        return [""] * len(batch)
    columns = [_texts(batch, name) for name in more]
    return [separator + separator.join(row) for row in zip(*columns, strict=True)]


def _texts(batch: Batch, name: str) -> list[str]:
    """Return a column on request as texts."""
    if name == "cigar":
        return _latin1(batch.cigar)
    return list(map(str, _numbers(batch, name).tolist()))


def _numbers(batch: Batch, name: str) -> NDArray[np.int32]:
    """Return a column on request that is made of numbers."""
    return batch.ambiguous if name == "ambiguous" else batch.errors


def _json_strings(names: Sequence[bytes]) -> list[str]:
    return list(map(encode_basestring, _decoded(names, "utf-8")))


def _decoded(names: Sequence[bytes], encoding: str) -> list[str]:
    """Return names as text; they hold no line ends."""
    # All at once: a call for each name takes longer.
    return b"\n".join(names).decode(encoding, "replace").split("\n") if names else []


def _columns(
    batch: Batch,
    signature_names: Names,
    decode: Callable[[Sequence[bytes]], list[str]] = _latin1,
) -> Columns:
    """Return all columns but the score as lists."""
    # An array's elements are slow to take one by one, and only names that occur are decoded.
    which, rows = np.unique(batch.signature, return_inverse=True)
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
    """Return float64[n] as n texts, NaN as `missing`; each distinct score is rendered once."""
    # + 0.0, so that there is no -0.0 beside 0.0.
    distinct, rows = np.unique(scores + 0.0, return_inverse=True)
    texts = [missing if math.isnan(score) else show(score) for score in distinct.tolist()]
    texts_by_row: list[str] = np.array(texts, object)[rows].tolist()
    return texts_by_row


# ---- formats ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """A format of the rows of a scan. Adding one to `FORMATS` is all that a new one needs.

    suffixes    of names that ask for it
    lines       makes lines of rows, of signature names, and of the columns on request; None for
                Parquet, which workers do not render
    separator   of the names in a header line; empty where there is no header
    has_always  columns of `REQUESTED` that it has without a request
    has_more    whether it has columns on request at all
    """

    name: str
    suffixes: tuple[str, ...]
    lines: Callable[[Batch, Names, Requested], bytes] | None
    separator: str = ""
    has_always: Requested = ()
    has_more: bool = True


_tsv, _csv = partial(_separated, separator="\t"), partial(_separated, separator=",")
_ambiguous = ("ambiguous",)

FORMATS: dict[str, TableFormat] = {
    each.name: each
    for each in (
        TableFormat(name="tsv", suffixes=(".tsv",), lines=_tsv, separator="\t"),
        TableFormat(name="csv", suffixes=(".csv",), lines=_csv, separator=","),
        TableFormat(name="text", suffixes=(".txt",), lines=_text, has_more=False),
        TableFormat(name="bed", suffixes=(".bed",), lines=_bed),
        TableFormat(
            name="jsonl", suffixes=(".json", ".jsonl"), lines=_jsonl, has_always=_ambiguous
        ),
        TableFormat(name="parquet", suffixes=PARQUET, lines=None, has_always=_ambiguous),
    )
}


def format_of(path: str | None, chosen: str | None) -> str:
    """Return the format asked for, or the one that the path's suffix means; tsv for any other.

    Raises UsageError for a suffix that promises what is not written.
    """
    if chosen is not None:
        if chosen not in FORMATS:
            raise UsageError(f"unknown format {chosen!r}: choose from {', '.join(FORMATS)}")
        return chosen
    by_suffix = {suffix: each.name for each in FORMATS.values() for suffix in each.suffixes}
    suffix = uncompressed_suffix(path)
    if suffix in FOREIGN - by_suffix.keys():
        possible = ", ".join(by_suffix)
        raise UsageError(
            f"{path}: {suffix} files cannot be written: choose a name that ends in {possible},"
            " with .gz or .zst after it to compress; or say --format tsv"
        )
    return by_suffix.get(suffix, "tsv")


def with_columns(fmt: str, names: Iterable[str]) -> str:
    """Return the format with columns of `REQUESTED`, as far as it can have them."""
    kind = FORMATS[fmt]
    asked = set(names) - set(kind.has_always) if kind.has_more else set()
    return "+".join([fmt, *(name for name in REQUESTED if name in asked)])


def _split(fmt: str) -> tuple[TableFormat, Requested]:
    """Return a format, and the columns of `REQUESTED` that it has."""
    name, *names = fmt.split("+")
    kind = FORMATS[name]
    return kind, tuple(each for each in REQUESTED if each in (*names, *kind.has_always))


def is_text(fmt: str) -> bool:
    """Return whether `render` makes lines of this format."""
    return _split(fmt)[0].lines is not None


def header(fmt: str) -> bytes:
    """Return the line above the rows: the names of the columns, or nothing."""
    kind, more = _split(fmt)
    if not kind.separator:
        return b""
    return (kind.separator.join([*COLUMNS, *more]) + "\n").encode()


def render(batch: Batch, signature_names: Sequence[bytes], fmt: str) -> bytes:
    """Return the rows as lines of one of the text formats, without a header.

    tsv    sample, signature, start, end, strand, score; the score as the shortest decimal that
           reads back equal, empty without quality
    csv    the same with commas; names with a comma or a quote are in quotes
    text   `sample: signature (score)` with three decimals, `(-)` without quality
    bed    BED6: sample, start, end, signature, score, strand; the score is 10 x the score,
           rounded (halves to even) and held within 0..1000, 0 without quality
    jsonl  an object with the tsv columns and `ambiguous` on each line; names that are no UTF-8 get
           U+FFFD; the score is null without quality

    All but text have the columns on request that the format names (see `with_columns`) last.
    """
    kind, more = _split(fmt)
    assert kind.lines is not None
    pieces = (batch[at : at + PIECE] for at in range(0, len(batch), PIECE))
    return b"".join([kind.lines(piece, signature_names, more) for piece in pieces])


# ---- Arrow ------------------------------------------------------------------------------------


def to_arrow(batch: Batch, signature_names: Names, fmt: str = "parquet") -> "pa.Table":
    """Return the rows as a table with the columns of the Parquet files (see `_schema`).

    Names that are no UTF-8 get U+FFFD; the score is null without quality.
    """
    pa = pyarrow()
    more = _split(fmt)[1]
    schema = _schema(pa, more)
    # In pieces, because one array of strings holds 2 GiB at most.
    pieces = [
        pa.Table.from_arrays(
            _arrays(batch[at : at + parquet.ROW_GROUP], signature_names, more), schema=schema
        )
        for at in range(0, len(batch), parquet.ROW_GROUP)
    ]
    return pa.concat_tables(pieces) if pieces else pa.Table.from_batches([], schema)


def _schema(pa: Any, more: Requested) -> "pa.Schema":
    requested = [
        pa.field(name, pa.string() if name == "cigar" else pa.int32(), nullable=False)
        for name in more
    ]
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
            *requested,
        ]
    )


def _arrays(batch: Batch, signature_names: Names, more: Requested) -> list["pa.Array"]:
    """Return the columns in the order of the schema."""
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
        *(
            strings(_texts(batch, name)) if name == "cigar" else numbers(_numbers(batch, name))
            for name in more
        ),
    ]


# ---- files ------------------------------------------------------------------------------------


@contextmanager
def open_table(
    raw: BinaryIO, fmt: str, compression: Compression, signature_names: Names
) -> Iterator[Callable[[Batch | bytes], None]]:
    """Yield a function that writes rows, or text that `render` made of rows elsewhere, in order.

    `raw` stays open: who opened it closes it. What is written is complete when the block ends
    without an error. Raises UsageError for compressed Parquet.
    """
    kind, more = _split(fmt)
    if kind.lines is None:
        if compression != "none":
            raise UsageError(parquet.COMPRESSED_INSIDE)
        repeated = ["sample", "signature", "strand"]
        with RowGroups(raw, _schema(pyarrow(), more), repeated) as groups:
            yield lambda rows: groups.write(to_arrow(_batch(rows), signature_names, fmt))
        return
    lines = Compressed(raw, compression)
    lines.write(header(fmt))
    yield lambda rows: lines.write(
        rows if isinstance(rows, bytes) else render(rows, signature_names, fmt)
    )
    lines.close()


def _batch(rows: Batch | bytes) -> Batch:
    if isinstance(rows, bytes):
        raise TypeError("Parquet is written from batches, not from text")
    return rows

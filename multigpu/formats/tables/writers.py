"""Writers of the rows of a scan: TSV, CSV, text, BED, JSON lines, PAF and Parquet.

The bytes written depend on the rows and their order only, never on how the rows were divided into
batches: text is cut into blocks again before it is compressed, Parquet into row groups.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, option
from multigpu.formats.storage.compressed import Compressed, Compression
from multigpu.formats.storage.suffixes import FOREIGN, PARQUET, uncompressed_suffix
from multigpu.formats.tables import parquet
from multigpu.formats.tables.alignment_lines import paf, sam_of_reads
from multigpu.formats.tables.arrow import numbers, pyarrow, strings
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.columns import (
    Column,
    Requested,
    Rows,
    Texts,
    decoded,
    lines_of,
    samples_of,
    scores_of,
    signatures_of,
    strands_of,
)
from multigpu.formats.tables.parquet import RowGroups

if TYPE_CHECKING:
    import pyarrow as pa

    from multigpu.formats.sequences.signatures import Signatures

COLUMNS = ("sample", "signature", "start", "end", "strand", "score")
# Columns on request, in their order. The name of a format with some of them is, e.g.,
# "tsv+edits+cigar".
REQUESTED = ("mismatches", "edits", "cigar", "ambiguous")

Names = Sequence[bytes]


def _separated(rows: Rows, separator: bytes) -> bytes:
    samples, signatures = samples_of(rows), signatures_of(rows)
    if separator == b",":
        samples, signatures = _map_texts(samples, _csv_name), _map_texts(signatures, _csv_name)
    start, end, scores = rows.batch.start, rows.batch.end, scores_of(rows, repr, b"")
    return _delimited(rows, separator, samples, signatures, start, end, strands_of(rows), scores)


def _text(rows: Rows) -> bytes:
    scores = scores_of(rows, "{:.3f}".format, b"-")
    return lines_of(len(rows), samples_of(rows), b": ", signatures_of(rows), b" (", scores, b")\n")


def _bed(rows: Rows) -> bytes:
    start, end, signatures = rows.batch.start, rows.batch.end, signatures_of(rows)
    scores = np.clip(np.rint(np.nan_to_num(rows.batch.score) * 10), 0, 1000).astype(np.int64)
    return _delimited(
        rows, b"\t", samples_of(rows), start, end, signatures, scores, strands_of(rows)
    )


def _delimited(rows: Rows, separator: bytes, *columns: Column) -> bytes:
    """Return lines with these columns and those on request, the separator between them."""
    line: list[Column] = []
    for column in (*columns, *(_on_request(rows.batch, name) for name in rows.requested)):
        line += [column, separator]
    return lines_of(len(rows), *line[:-1], b"\n")


def _jsonl(rows: Rows) -> bytes:
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
    return Texts.of(batch.cigar) if name == "cigar" else _requested_numbers(batch, name)


def _requested_numbers(batch: Batch, name: str) -> NDArray[np.int32]:
    """Return a column on request that is made of numbers."""
    return batch.ambiguous if name == "ambiguous" else batch.errors


def _map_texts(texts: Texts, change: Callable[[bytes], bytes]) -> Texts:
    return Texts(list(map(change, texts.distinct)), texts.which)


def _csv_name(name: bytes) -> bytes:
    """Return a name as in RFC 4180: in quotes where it needs them, with quotes inside doubled."""
    if b"," in name or b'"' in name or b"\r" in name:
        return b'"' + name.replace(b'"', b'""') + b'"'
    return name


def _json_name(name: bytes) -> bytes:
    return encode_basestring(name.decode("utf-8", "replace")).encode()


# ---- formats ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """A format of the rows of a scan. A new one needs a place in `FORMATS`, and in --format.

    Files of SAM and BAM have headers, which `multigpu.formats.tables.sam` writes.

    suffixes    of names that ask for it
    lines       makes lines of rows, also on workers; None where only the client can write the rows.
                Lines of SAM are those of reads
    separator   of the names in a header line; empty where there is no header
    has_always  columns of `REQUESTED` that it has without a request
    has_more    whether it has columns on request at all
    """

    name: str
    suffixes: tuple[str, ...]
    lines: Callable[[Rows], bytes] | None
    separator: str = ""
    has_always: Requested = ()
    has_more: bool = True


_tsv, _csv = partial(_separated, separator=b"\t"), partial(_separated, separator=b",")
_ambiguous = ("ambiguous",)
_alignment = ("mismatches", "edits", "cigar")

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
        TableFormat(name="sam", suffixes=(".sam",), lines=sam_of_reads, has_always=_alignment),
        TableFormat(name="bam", suffixes=(".bam",), lines=None, has_always=_alignment),
        TableFormat(name="paf", suffixes=(".paf",), lines=paf, has_always=_alignment),
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
            f" with .gz or .zst after it to compress; or say {option('format')} tsv"
        )
    return by_suffix.get(suffix, "tsv")


def with_columns(fmt: str, names: Iterable[str]) -> str:
    """Return the format with columns of `REQUESTED`, as far as it can have them."""
    kind = FORMATS[fmt]
    asked = set(names) - set(kind.has_always) if kind.has_more else set()
    return "+".join([fmt, *(name for name in REQUESTED if name in asked)])


def split_format(fmt: str) -> tuple[TableFormat, Requested]:
    """Return a format, and the columns of `REQUESTED` that it has."""
    name, *names = fmt.split("+")
    kind = FORMATS[name]
    return kind, tuple(each for each in REQUESTED if each in (*names, *kind.has_always))


def header(fmt: str) -> bytes:
    """Return the line above the rows: the names of the columns, or nothing."""
    kind, more = split_format(fmt)
    if not kind.separator:
        return b""
    return (kind.separator.join([*COLUMNS, *more]) + "\n").encode()


def render(batch: Batch, signatures: "Signatures", fmt: str) -> bytes:
    """Return the rows as lines of one of the text formats, without a header.

    tsv    sample, signature, start, end, strand, score; the score as the shortest decimal that
           reads back equal, empty without quality
    csv    the same with commas; names with a comma or a quote are in quotes
    text   `sample: signature (score)` with three decimals, `(-)` without quality
    bed    BED6: sample, start, end, signature, score, strand; the score is 10 x the score,
           rounded (halves to even) and held within 0..1000, 0 without quality
    jsonl  an object with the tsv columns and `ambiguous` on each line; names that are no UTF-8 get
           U+FFFD; the score is null without quality
    sam    alignments of reads to signatures
    paf    alignments of signatures to samples

    All but text have the columns on request that the format names (see `with_columns`) last.
    """
    kind, requested = split_format(fmt)
    assert kind.lines is not None
    rows = Rows.of(batch, signatures, requested)
    return b"".join([kind.lines(piece) for piece in rows.pieces()])


# ---- Arrow ------------------------------------------------------------------------------------


def to_arrow(batch: Batch, signature_names: Names, fmt: str = "parquet") -> "pa.Table":
    """Return the rows as a table with the columns of the Parquet files (see `_schema`).

    Names that are no UTF-8 get U+FFFD; the score is null without quality.
    """
    pa = pyarrow()
    more = split_format(fmt)[1]
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
    names = strings(decoded([signature_names[i] for i in which.tolist()], "utf-8"))
    return [
        strings(decoded(batch.sample, "utf-8")),
        numbers(batch.sample_index),
        names.take(numbers(rows.astype(np.int32))),
        numbers(batch.signature),
        numbers(batch.start),
        numbers(batch.end),
        strings(["+", "-"]).take(numbers(batch.reverse.astype(np.int8))),
        numbers(batch.score, nan_is_null=True),
        *(
            strings(decoded(batch.cigar, "ascii"))
            if name == "cigar"
            else numbers(_requested_numbers(batch, name))
            for name in more
        ),
    ]


# ---- files ------------------------------------------------------------------------------------


@contextmanager
def open_table(
    raw: BinaryIO, fmt: str, compression: Compression, signatures: "Signatures"
) -> Iterator[Callable[[Any], None]]:
    """Yield a function that writes batches, or text that `render` made of them elsewhere, in order.

    `raw` stays open: who opened it closes it. What is written is complete when the block ends
    without an error. Raises UsageError for compressed Parquet.
    """
    kind, more = split_format(fmt)
    if kind.lines is None:
        if compression != "none":
            raise UsageError(parquet.COMPRESSED_INSIDE)
        repeated = ["sample", "signature", "strand"]
        with RowGroups(raw, _schema(pyarrow(), more), repeated) as groups:

            def write(rows: Batch | bytes) -> None:
                if isinstance(rows, bytes):
                    raise TypeError("this format is written from batches, not from text")
                groups.write(to_arrow(rows, signatures.names, fmt))

            yield write
        return
    lines = Compressed(raw, compression)
    lines.write(header(fmt))
    yield lambda rows: lines.write(
        rows if isinstance(rows, bytes) else render(rows, signatures, fmt)
    )
    lines.close()

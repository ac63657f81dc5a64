"""Counts tables as lines of text: plain, .gz or .zst."""

import io
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import Any

import numpy as np

from multigpu.errors import InputError, UsageError, quoted
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.compressed import compressed_output
from multigpu.formats.tables import counts_errors
from multigpu.formats.tables.counts import (
    COLUMNS,
    ROWS,
    CountRows,
    Counts,
    CountsFormat,
    Empty,
    Values,
    batch_of,
    check_rows,
    check_samples,
    narrow,
    rows_of_batch,
    slices,
)


def read_tsv(path: str, file: BufferedReader, _: Empty) -> tuple[tuple[str, ...], Regions, Values]:
    """Return samples, regions and values. Raises InputError for a file that is no table."""
    header = file.readline().decode("utf-8-sig", "replace")
    if problem := counts_errors.identify(path, header):
        raise InputError(path, problem)
    samples = check_samples(path, header.lstrip("#").rstrip("\r\n").split("\t"))
    return samples, *_read_text(path, file, samples)


def _read_text(path: str, file: Any, samples: Sequence[str]) -> tuple[Regions, Values]:
    """Return the rows of the rest of the file."""
    names: dict[str, int] = {}
    whole = CountRows.empty(0, len(samples), np.int32, np.empty)
    columns = [(whole.chrom, whole.start, whole.end, whole.values)]
    rows = 0
    for part in _read_text_rows(path, file, samples):
        check_rows(path, part, samples, rows)
        rows += len(part.chrom)
        columns.append((part.numbered(names), part.start, part.end, narrow(part.values)))
    chrom, start, end, values = map(np.concatenate, zip(*columns, strict=True))
    return Regions(tuple(names), chrom, start, end), values


def _read_text_rows(path: str, file: Any, samples: Sequence[str]) -> Iterator[CountRows]:
    import pyarrow as pa
    from pyarrow import csv

    if not file.peek(1):
        return
    # Names that no sample's name can clash with.
    names = [*COLUMNS, *(f"sample {number}" for number in range(len(samples)))]
    types = dict.fromkeys(names, pa.float64())
    types |= {"chrom": pa.dictionary(pa.int32(), pa.string())}
    types |= {"start": pa.int64(), "end": pa.int64()}
    try:
        reader = csv.open_csv(
            file,
            csv.ReadOptions(column_names=names, use_threads=False),  # so errors have a row
            csv.ParseOptions(delimiter="\t", quote_char=False),
            csv.ConvertOptions(column_types=types, null_values=[]),
        )
        for batch in reader:
            yield rows_of_batch(batch)
    except pa.ArrowInvalid as error:
        raise counts_errors.translate(path, [*COLUMNS, *samples], str(error)) from error


def write_tsv(path: str | None, counts: Counts) -> None:
    """Write a table; fractions are the shortest decimals that read back equal.

    Raises UsageError for names with a tab or the end of a line.
    """
    with compressed_output(path) as out:
        _write_text(out, counts)


def _write_text(out: Any, counts: Counts) -> None:
    from pyarrow import csv

    for name in (*counts.regions.names, *counts.samples):
        if any(sign in name for sign in "\t\r\n"):
            raise UsageError(f"{quoted(name)} cannot be a name in a TSV file: use Parquet")
    out.write("\t".join([*COLUMNS, *counts.samples]).encode() + b"\n")
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    for rows in slices(counts, ROWS):
        text = io.BytesIO()
        csv.write_csv(batch_of(counts, rows), text, options)
        out.write(text.getbuffer())


TSV = CountsFormat("TSV", (".tsv",), lambda start: True, read_tsv, write_tsv)

"""Counts tables as Parquet."""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import accumulate
from typing import Any

import numpy as np

from multigpu.cluster.files import atomic_output
from multigpu.errors import InputError, first_line
from multigpu.formats.alignments.regions import Regions, gene_name
from multigpu.formats.storage.stored_streams import is_regular
from multigpu.formats.storage.suffixes import PARQUET as SUFFIXES
from multigpu.formats.tables.counts import (
    COLUMNS,
    ROWS,
    CountRows,
    Counts,
    CountsFormat,
    Empty,
    TableParts,
    Values,
    batch_of,
    check_rows,
    check_samples,
    narrow,
    rows_of_batch,
    slices,
)

MAGIC = b"PAR1"
THREADS = 16  # at most, that decode row groups; each holds such rows and some pages
THREAD_ROWS = 8 * ROWS  # a thread for these: all together hold a quarter of the counts at most
COLUMN_BUFFER = 1 << 16  # bytes of every column read at a time, not all that a row group has
ROW_GROUP = 1 << 20  # rows
GENES = b"genes"  # metadata: the name of each region, a line each; "" for none


def read_parquet(path: str, _: BufferedReader, empty: Empty) -> TableParts:
    """Return samples, regions and values. Raises InputError for what is no counts table."""
    if not is_regular(path):
        raise InputError(path, "Parquet cannot be read from a pipe: give a file")
    samples = _read_schema(path)
    with suppress(_Fractional):  # which knows of the arrays up to here, until this block ends
        return samples, *_decode(path, samples, np.int32, empty)
    return samples, *_decode(path, samples, np.float64, empty)


class _Fractional(Exception):
    """Error of a count that is no whole number, or does not fit int32."""


def _decode(path: str, samples: Sequence[str], kind: Any, empty: Empty) -> tuple[Regions, Values]:
    """Return all rows: several threads decode row groups, each to its place in the arrays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _as_parquet(path):
        metadata = pq.read_metadata(path)
        genes = (metadata.metadata or {}).get(GENES)
        numbers = range(metadata.num_row_groups)
        sizes = (metadata.row_group(number).num_rows for number in numbers)
        borders = list(accumulate(sizes, initial=0))
        whole = CountRows.empty(borders[-1], len(samples), kind, empty)

    options = {"read_dictionary": ["chrom"], "buffer_size": COLUMN_BUFFER, "pre_buffer": False}

    def decode(number: int, first: int, stop: int) -> CountRows:
        with _as_parquet(path), pq.ParquetFile(path, metadata=metadata, **options) as file:
            # Arrow's own threads keep some megabytes each, for good.
            batches = file.iter_batches(ROWS, row_groups=[number], use_threads=False)
            return _place_rows(path, samples, batches, whole, first, stop)

    names: dict[str, int] = {}
    threads = min(THREADS, len(os.sched_getaffinity(0)), 1 + len(whole.values) // THREAD_ROWS)
    with ThreadPoolExecutor(threads) as pool:
        for group in pool.map(decode, numbers, borders, borders[1:]):
            group.chrom[:] = group.numbered(names)
    pa.default_memory_pool().release_unused()  # Arrow keeps what it has freed
    named = (
        () if genes is None else tuple(map(gene_name, genes.decode("utf-8", "replace").split("\n")))
    )
    if named and len(named) != len(whole.chrom):
        raise InputError(
            path, f"is damaged: {len(whole.chrom):,} regions have {len(named):,} names"
        )
    return Regions(tuple(names), whole.chrom, whole.start, whole.end, named), whole.values


def _place_rows(
    path: str,
    samples: Sequence[str],
    batches: Iterable[Any],
    whole: CountRows,
    first: int,
    stop: int,
) -> CountRows:
    """Put the batches of a row group in their place, rows `first` to `stop`.

    Raises _Fractional.
    """
    names: dict[str, int] = {}
    at = first
    for batch in batches:
        _check_there(path, batch, at)
        here = whole.part(at, min(at + batch.num_rows, stop))
        rows = rows_of_batch(batch, here.values)
        # Arrow does not look whether each number stands for a name.
        chrom = rows.chrom
        if len(chrom) and not (chrom.min() >= 0 and chrom.max() < len(rows.names)):
            raise InputError(path, "cannot be read as Parquet: its chromosomes are damaged")
        check_rows(path, rows, samples, at)
        here.chrom[:], here.start[:], here.end[:] = rows.numbered(names), rows.start, rows.end
        if rows.values is not here.values:
            values = narrow(rows.values)
            if not np.can_cast(values.dtype, here.values.dtype):
                raise _Fractional
            here.values[:] = values
        at += batch.num_rows
    if at != stop:
        raise InputError(path, f"cannot be read as Parquet: row {at + 1} is missing")
    return whole.part(first, stop, list(names))


def _check_there(path: str, batch: Any, before: int) -> None:
    """Raise InputError at the first row without chromosome, start or end."""
    missing = [
        (column.is_null().index(True).as_py(), number)
        for number, column in enumerate(batch.columns[:3])
        if column.null_count
    ]
    if missing:
        row, number = min(missing)
        raise InputError(path, "is missing", f"row {before + row + 1}, column {COLUMNS[number]}")


@contextmanager
def _as_parquet(path: str) -> Iterator[None]:
    """Raise what is wrong with a file as InputError, and missing memory as MemoryError."""
    import pyarrow as pa

    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError(path, "its name is not UTF-8, as Parquet needs: rename it") from error
    except MemoryError:  # that of Arrow is an ArrowException, too
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise MemoryError(first_line(error)) from error
        raise InputError(path, f"cannot be read as Parquet: {first_line(error)}") from error


def _read_schema(path: str) -> tuple[str, ...]:
    """Return the names of the samples. Raises InputError for columns of wrong types, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _as_parquet(path):
        schema = pq.read_schema(path)
    samples = check_samples(path, schema.names)
    kinds = pa.types
    for number, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        if number == 0:
            plain = kind.value_type if kinds.is_dictionary(kind) else kind
            right = kinds.is_string(plain) or kinds.is_large_string(plain)
        else:
            right = kinds.is_integer(kind) or (number > 2 and kinds.is_floating(kind))
        if not right:
            raise InputError(path, f"it cannot hold {kind}", f"column {name}")
    return samples


def write_parquet(path: str | None, counts: Counts) -> None:
    """Write a table: whole counts as int32, others as float64."""
    import pyarrow.parquet as pq

    schema = batch_of(counts, slice(0, 0)).schema
    if counts.regions.genes:
        schema = schema.with_metadata({GENES: "\n".join(map(gene_name, counts.regions.genes))})
    options = {"compression": "zstd", "use_dictionary": ["chrom"]}
    with atomic_output(path) as file, pq.ParquetWriter(file, schema, **options) as writer:
        for rows in slices(counts, ROW_GROUP):
            batch = batch_of(counts, rows)
            writer.write_batch(batch.replace_schema_metadata(schema.metadata), ROW_GROUP)


PARQUET = CountsFormat(
    "a counts table in Parquet",
    lambda start: start.startswith(MAGIC),
    read_parquet,
    suffixes=SUFFIXES,
    write=write_parquet,
)

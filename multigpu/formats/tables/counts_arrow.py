"""Counts as columns of Arrow: Parquet files, and tables of pyarrow or pandas (not imported)."""

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BufferedReader
from itertools import accumulate
from typing import Any

import numpy as np

from multigpu.cluster.files import atomic_output
from multigpu.errors import InputError, UsageError, first_line, printable_name
from multigpu.formats.alignments.regions import Regions, gene_name, in_order
from multigpu.formats.storage.stored_streams import is_regular
from multigpu.formats.storage.suffixes import PARQUET as SUFFIXES
from multigpu.formats.tables.arrow import pyarrow
from multigpu.formats.tables.counts import (
    ROWS,
    CountRows,
    Counts,
    CountsFormat,
    Empty,
    TableParts,
    batch_of,
    kind_of_values,
    narrow,
    place_batches,
    samples_of_schema,
    slices,
)

NAME = "the table"  # in messages
MAGIC = b"PAR1"
THREADS = 16  # at most, that decode row groups; each holds such rows and some pages
THREAD_ROWS = 8 * ROWS  # a thread for these: all together hold a quarter of the counts at most
COLUMN_BUFFER = 1 << 16  # bytes of every column read at a time, not all that a row group has
ROW_GROUP = 1 << 20  # rows
GENES = b"genes"  # metadata: the name of each region, a line each; "" for none


def read_parquet(path: str, _: BufferedReader, empty: Empty) -> TableParts:
    """Return samples, regions and values; threads decode row groups. Raises InputError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not is_regular(path):
        raise InputError(path, "Parquet cannot be read from a pipe: give a file")
    with _as_parquet(path):
        schema = pq.read_schema(path)
        samples = samples_of_schema(path, schema)
        metadata = pq.read_metadata(path)
        numbers = range(metadata.num_row_groups)
        sizes = (metadata.row_group(number).num_rows for number in numbers)
        borders = list(accumulate(sizes, initial=0))
        whole = CountRows.empty(borders[-1], len(samples), kind_of_values(schema), empty)

    options = {"read_dictionary": ["chrom"], "buffer_size": COLUMN_BUFFER, "pre_buffer": False}

    def decode(number: int, first: int) -> list[str]:
        with _as_parquet(path), pq.ParquetFile(path, metadata=metadata, **options) as file:
            # Arrow's own threads keep some megabytes each, for good.
            batches = file.iter_batches(ROWS, row_groups=[number], use_threads=False)
            return place_batches(path, samples, batches, whole, first)

    names: dict[str, int] = {}
    threads = min(THREADS, len(os.sched_getaffinity(0)), 1 + len(whole.values) // THREAD_ROWS)
    with ThreadPoolExecutor(threads) as pool:
        groups = pool.map(decode, numbers, borders[:-1])
        for found, first, stop in zip(groups, borders, borders[1:], strict=False):
            group = whole.part(first, stop, found)
            group.chrom[:] = group.numbered(names)
    pa.default_memory_pool().release_unused()  # Arrow keeps what it has freed
    texts = (metadata.metadata or {}).get(GENES)
    genes = texts.decode("utf-8", "replace").split("\n") if texts is not None else []
    if texts is not None and len(genes) != len(whole.chrom):
        problem = f"is damaged: {len(whole.chrom):,} regions have {len(genes):,} names"
        raise InputError(path, problem)
    named = tuple(map(gene_name, genes))
    regions = Regions(tuple(names), whole.chrom, whole.start, whole.end, named)
    return samples, regions, narrow(whole.values)


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


def is_frame(given: Any) -> bool:
    """Return whether an object has columns with names."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def counts_from_frame(frame: Any) -> Counts:
    """Return a table's counts, sorted. Raises UsageError for columns other than theirs."""
    table = _as_arrow(frame)
    samples = samples_of_schema(NAME, table.schema)
    kind = kind_of_values(table.schema)
    whole = CountRows.empty(table.num_rows, len(samples), kind, np.empty)
    names = place_batches(NAME, samples, table.to_batches(ROWS), whole)
    regions = Regions(tuple(names), whole.chrom, whole.start, whole.end)
    regions, order, notes = in_order(NAME, regions)
    values = narrow(whole.values)
    return Counts(regions, samples, values if order is None else values[order], notes)


def _as_arrow(frame: Any) -> Any:
    pa = pyarrow()
    if isinstance(frame, pa.Table):
        return frame
    columns = {}
    for name in frame.columns:
        try:
            columns[str(name)] = pa.array(np.asarray(frame[name]), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            where = f"column {printable_name(str(name))}"
            raise UsageError(f"{NAME}: {where}: {first_line(error)}") from error
    if len(columns) < len(frame.columns):
        raise UsageError(f"{NAME}: two columns have the same name")
    return pa.table(columns)

"""Read counts of regions and samples: the table between counting and calling.

As TSV (plain, .gz, .zst) or Parquet: `chrom start end`, 0-based half-open, and a column a sample.
"""

import errno
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output
from multigpu.errors import Failure, InputError, UsageError, first_line, quoted
from multigpu.formats.alignments.regions import LONGEST, Regions, in_order, no_region
from multigpu.formats.names import name_problem
from multigpu.formats.storage.compressed import Compressed, compressed_output
from multigpu.formats.storage.sources import is_regular, open_content
from multigpu.formats.storage.suffixes import PARQUET, suffix_of_output
from multigpu.formats.tables import arrow, counts_errors

COLUMNS = ("chrom", "start", "end")
PARQUET_MAGIC = b"PAR1"
ROWS = 1 << 15  # read or written at a time
THREADS = 16  # at most, that decode row groups; each holds such rows and some pages
THREAD_ROWS = 8 * ROWS  # a thread for these: all together hold a quarter of the counts at most
COLUMN_BUFFER = 1 << 16  # bytes of every column read at a time, not all that a row group has
ROW_GROUP = 1 << 20  # rows, of Parquet
LARGEST = np.iinfo(np.int32).max
MOST_READS = 1 << 40  # of a region: sums and grids of what is beyond do not fit anywhere

Values = NDArray[np.int32] | NDArray[np.float64]
Empty = Callable[[tuple[int, ...], Any], NDArray[Any]]  # shape and dtype to an array


@dataclass(frozen=True, eq=False)
class Counts:
    """Reads of every region in every sample.

    regions  grouped by chromosome, ascending within each
    samples  their names, each once
    values   int32 where all counts are whole, else float64; [regions, samples], C-contiguous,
             finite, not negative
    notes    what was noticed in the input: one sentence each

    Raises ValueError on any other dtype or shape; nothing is converted.
    """

    regions: Regions
    samples: tuple[str, ...]
    values: Values
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Counts: {len(self.samples):,} samples × {len(self.regions):,} regions>"

    def __post_init__(self) -> None:
        if self.values.dtype not in (np.int32, np.float64) or not self.values.flags.c_contiguous:
            raise ValueError(f"values: {self.values.dtype} instead of contiguous int32 or float64")
        if self.values.shape != (len(self.regions), len(self.samples)):
            raise ValueError(
                f"values: {list(self.values.shape)}"
                f" instead of [{len(self.regions)}, {len(self.samples)}]"
            )


# ---- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a table as they are read; chrom are indexes into `names`."""

    names: list[str]
    chrom: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    values: Values

    def numbered(self, names: dict[str, int]) -> NDArray[np.int32]:
        """Return chromosomes as the numbers in `names`, where new ones are added."""
        number = [names.setdefault(name, len(names)) for name in self.names]
        return np.array(number, np.int32)[self.chrom]

    @classmethod
    def empty(cls, rows: int, samples: int, kind: Any, empty: Empty) -> Self:
        """Return room for `rows` rows."""
        start, end = empty((rows,), np.int64), empty((rows,), np.int64)
        return cls([], np.empty(rows, np.int32), start, end, empty((rows, samples), kind))

    def part(self, first: int, stop: int, names: Sequence[str] = ()) -> Self:
        """Return some of these rows, as views."""
        here = slice(first, stop)
        columns = (self.chrom[here], self.start[here], self.end[here], self.values[here])
        return type(self)(list(names), *columns)


def read_counts(path: str, empty: Empty = np.empty) -> Counts:
    """Return a table in order; the notes say whether its rows had to be sorted.

    empty: makes large arrays, where their size is known beforehand

    Chromosomes keep the order in which they appear. Raises InputError with row (from 1) and column
    of a count that is missing, no number, negative or not finite, and for what else is no table;
    Failure where it does not fit the memory.
    """
    try:
        return _read(path, empty)
    except MemoryError as error:
        raise Failure(f"{path}: does not fit into memory ({first_line(error)})") from error


def _read(path: str, empty: Empty) -> Counts:
    with open_content(path) as file:
        if file.peek(4)[:4] != PARQUET_MAGIC:
            header = file.readline().decode("utf-8-sig", "replace")
            if problem := counts_errors.identify(path, header):
                raise InputError(path, problem)
            samples = _check_samples(path, header.lstrip("#").rstrip("\r\n").split("\t"))
            return _in_order(path, samples, *_read_text(path, file, samples))
    if not is_regular(path):
        raise InputError(path, "Parquet cannot be read from a pipe: give a file")
    samples = _read_schema(path)
    with suppress(_Fractional):  # which knows of the arrays up to here, until this block ends
        return _in_order(path, samples, *_decode(path, samples, np.int32, empty))
    return _in_order(path, samples, *_decode(path, samples, np.float64, empty))


def _in_order(path: str, samples: tuple[str, ...], regions: Regions, values: Values) -> Counts:
    """Return the table of these rows."""
    if not len(regions):
        raise InputError(path, "there are no regions")
    regions, order, notes = in_order(path, regions)
    return Counts(regions, samples, values if order is None else values[order], notes)


def _narrow(values: Values) -> Values:
    """Return int32 where that changes nothing."""
    if values.dtype == np.int32 or values.max(initial=0) > LARGEST:
        return values
    whole = values.astype(np.int32)
    return whole if (whole == values).all() else values


def _check(path: str, rows: _Rows, samples: Sequence[str], before: int) -> None:
    """Raise InputError at the first row that is wrong."""
    _check_names(path, rows, before)
    wrong = (rows.start < 0) | (rows.start >= rows.end) | (rows.end >= LONGEST)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = no_region(int(rows.start[row]), int(rows.end[row]))
        raise InputError(path, problem, f"row {before + row + 1}")
    wrong = ~((rows.values >= 0) & (rows.values < MOST_READS))
    if wrong.any():
        row, column = divmod(int(np.argmax(wrong)), len(samples))
        value = rows.values[row, column]
        rule = "below 2^40" if MOST_READS <= value < np.inf else "finite and not negative"
        problem = f"{value:g} is no count: counts are {rule}"
        raise InputError(path, problem, f"row {before + row + 1}, column {samples[column]}")


def _check_names(path: str, rows: _Rows, before: int) -> None:
    """Raise InputError at the first row with a chromosome that is no name."""
    wrong = [number for number, name in enumerate(rows.names) if not name or name_problem(name)]
    if wrong and (there := np.isin(rows.chrom, wrong)).any():
        row = int(np.argmax(there))
        name = rows.names[rows.chrom[row]]
        problem = f"{quoted(name)} is no chromosome: {name_problem(name)}"
        problem = problem if name else "the chromosome has no name"
        raise InputError(path, problem, f"row {before + row + 1}, column chrom")


def _check_samples(path: str, columns: Sequence[str]) -> tuple[str, ...]:
    if tuple(columns[:3]) != COLUMNS:
        shown = quoted("\t".join(columns))
        problem = f"is no counts table: its columns are chrom, start, end and samples, not {shown}"
        raise InputError(path, problem)
    samples = tuple(columns[3:])
    if not samples:
        raise InputError(path, "there are no samples: a column for each follows chrom, start, end")
    for number, name in enumerate(samples):
        where = f"column {number + 4}"
        if not name:
            raise InputError(path, "has no name", where)
        if problem := name_problem(name):
            raise InputError(path, f"{quoted(name)} is no name of a sample: {problem}", where)
        if name in samples[:number]:
            raise InputError(path, f"the sample {quoted(name)} is listed twice", where)
    return samples


# ---- text -------------------------------------------------------------------------------------


def _read_text(path: str, file: Any, samples: Sequence[str]) -> tuple[Regions, Values]:
    """Return the rows of the rest of the file."""
    names: dict[str, int] = {}
    whole = _Rows.empty(0, len(samples), np.int32, np.empty)
    columns = [(whole.chrom, whole.start, whole.end, whole.values)]
    rows = 0
    for part in _read_text_rows(path, file, samples):
        _check(path, part, samples, rows)
        rows += len(part.chrom)
        columns.append((part.numbered(names), part.start, part.end, _narrow(part.values)))
    chrom, start, end, values = map(np.concatenate, zip(*columns, strict=True))
    return Regions(tuple(names), chrom, start, end), values


def _read_text_rows(path: str, file: Any, samples: Sequence[str]) -> Iterator[_Rows]:
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
            yield _rows(batch)
    except pa.ArrowInvalid as error:
        raise counts_errors.translate(path, [*COLUMNS, *samples], str(error)) from error


# ---- Parquet ----------------------------------------------------------------------------------


class _Fractional(Exception):
    """Error of a count that is no whole number, or does not fit int32."""


def _decode(path: str, samples: Sequence[str], kind: Any, empty: Empty) -> tuple[Regions, Values]:
    """Return all rows: several threads decode row groups, each to its place in the arrays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _as_parquet(path):
        metadata = pq.read_metadata(path)
        numbers = range(metadata.num_row_groups)
        sizes = (metadata.row_group(number).num_rows for number in numbers)
        borders = list(accumulate(sizes, initial=0))
        whole = _Rows.empty(borders[-1], len(samples), kind, empty)

    options = {"read_dictionary": ["chrom"], "buffer_size": COLUMN_BUFFER, "pre_buffer": False}

    def decode(number: int, first: int, stop: int) -> _Rows:
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
    return Regions(tuple(names), whole.chrom, whole.start, whole.end), whole.values


def _place_rows(
    path: str, samples: Sequence[str], batches: Iterable[Any], whole: _Rows, first: int, stop: int
) -> _Rows:
    """Put the batches of a row group in their place, rows `first` to `stop`.

    Raises _Fractional.
    """
    names: dict[str, int] = {}
    at = first
    for batch in batches:
        _check_there(path, batch, at)
        here = whole.part(at, min(at + batch.num_rows, stop))
        rows = _rows(batch, here.values)
        # Arrow does not look whether each number stands for a name.
        chrom = rows.chrom
        if len(chrom) and not (chrom.min() >= 0 and chrom.max() < len(rows.names)):
            raise InputError(path, "cannot be read as Parquet: its chromosomes are damaged")
        _check(path, rows, samples, at)
        here.chrom[:], here.start[:], here.end[:] = rows.numbered(names), rows.start, rows.end
        if rows.values is not here.values:
            values = _narrow(rows.values)
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
    samples = _check_samples(path, schema.names)
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


def _rows(batch: Any, into: Values | None = None) -> _Rows:
    """Return the rows of a batch of Arrow; what is missing becomes NaN.

    into  where the counts are put if they have its type
    """
    chrom = batch.column(0)
    chrom = chrom if hasattr(chrom, "dictionary") else chrom.dictionary_encode()
    columns = [arrow.values(column) for column in batch.columns[3:]]
    whole = all(column.dtype == np.int32 for column in columns)
    kind: Any = np.int32 if whole else np.float64
    if into is None or into.dtype != kind:
        into = np.empty((batch.num_rows, len(columns)), kind)
    values = np.stack(columns, 1, out=into)
    start, end = (arrow.values(batch.column(i)).astype(np.int64, copy=False) for i in (1, 2))
    return _Rows(chrom.dictionary.to_pylist(), arrow.values(chrom.indices), start, end, values)


# ---- writing ----------------------------------------------------------------------------------


def write_counts(path: str | None, counts: Counts) -> None:
    """Write Parquet where the suffix says so, else TSV; None is standard output.

    The file appears when it is complete. Whole counts are written as int32, others as float64, in
    a text as the shortest decimal that reads back equal.
    """
    if suffix_of_output(path) in PARQUET:
        with atomic_output(path) as file:
            _write_parquet(file, counts)
    else:
        with compressed_output(path) as out:
            _write_text(out, counts)


def _write_parquet(file: Any, counts: Counts) -> None:
    import pyarrow.parquet as pq

    schema = _batch(counts, slice(0, 0)).schema
    with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=["chrom"]) as writer:
        for rows in _slices(counts, ROW_GROUP):
            writer.write_batch(_batch(counts, rows), ROW_GROUP)


def _write_text(out: Compressed, counts: Counts) -> None:
    from pyarrow import csv

    for name in (*counts.regions.names, *counts.samples):
        if any(sign in name for sign in "\t\r\n"):
            raise UsageError(f"{quoted(name)} cannot be a name in a TSV file: use Parquet")
    out.write("\t".join([*COLUMNS, *counts.samples]).encode() + b"\n")
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    for rows in _slices(counts, ROWS):
        text = io.BytesIO()
        csv.write_csv(_batch(counts, rows), text, options)
        out.write(text.getbuffer())


def _slices(counts: Counts, size: int) -> Iterator[slice]:
    return (slice(at, at + size) for at in range(0, len(counts.regions), size))


def _batch(counts: Counts, rows: slice) -> Any:
    import pyarrow as pa

    regions = counts.regions
    columns = [
        arrow.strings(regions.names).take(arrow.numbers(regions.chrom[rows])),
        arrow.numbers(regions.start[rows]),
        arrow.numbers(regions.end[rows]),
        *map(arrow.numbers, counts.values[rows].T.copy()),
    ]
    return pa.record_batch(columns, [*COLUMNS, *counts.samples])

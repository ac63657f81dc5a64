"""Read counts of regions and samples: the table between counting and calling.

Its columns in a file are `chrom start end`, 0-based half-open, and one for each sample. Here is
what all formats share; `counts_files.py` lists them.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePath
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.devices.memory import free_bytes
from multigpu.errors import InputError, quoted
from multigpu.formats.alignments.regions import LONGEST, Regions, no_region
from multigpu.formats.names import name_problem
from multigpu.formats.storage.bgzf import least_content
from multigpu.formats.storage.stored_streams import is_regular
from multigpu.formats.tables import arrow

COLUMNS = ("chrom", "start", "end")
ROWS = 1 << 15  # read or written at a time
LARGEST = np.iinfo(np.int32).max
MOST_READS = 1 << 40  # of a region: sums and grids of what is beyond do not fit anywhere

Values = NDArray[np.int32] | NDArray[np.float64]
Empty = Callable[[tuple[int, ...], Any], NDArray[Any]]  # shape and dtype to an array
TableParts = tuple[tuple[str, ...], Regions, Values]  # names of the samples, regions, counts


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

    def take(self, rows: NDArray[np.intp]) -> "Counts":
        """Return the rows of these indices, in this order."""
        return Counts(self.regions.take(rows), self.samples, self.values[rows], self.notes)


@dataclass(frozen=True)
class CountsFormat:
    """A layout of counts tables in files.

    name        in messages
    fits        whether a file with these first bytes of its content has it
    read        returns samples, regions and values of a file, from its path, its decompressed
                content and a maker of arrays
    has_depths  whether values are mean depths of the regions, not counts of reads
    suffixes    of files that are written in it; none: it is only read
    write       writes a table to a path; None is standard output
    """

    name: str
    fits: Callable[[bytes], bool]
    read: Callable[[str, BufferedReader, Empty], TableParts]
    has_depths: bool = False
    suffixes: tuple[str, ...] = ()
    write: Callable[[str | None, Counts], None] | None = None


# What follows the name of a sample or a batch in names of files: the parts that programs add.
SUFFIX = re.compile(
    r"(\.(regions|(anti)?targetcoverage|counts|rd|bincov|readcounts|collectreadcounts))?"
    r"\.(bed|cnn|tsv|txt|hdf5|h5)(\.b?gz|\.zst)?$",
    re.IGNORECASE,
)


def sample_of_file(path: str) -> str:
    """Return the name of the sample, or batch, of a file: that of the file without suffixes."""
    name = os.fsencode(PurePath(path).name).decode("utf-8", "replace")
    return SUFFIX.sub("", name) or name


# ---- rows of a table, and what they must be ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class CountRows:
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


def narrow(values: Values) -> Values:
    """Return int32 where that changes nothing."""
    if values.dtype == np.int32 or values.max(initial=0) > LARGEST:
        return values
    whole = values.astype(np.int32)
    return whole if (whole == values).all() else values


def check_rows(
    path: str, rows: CountRows, samples: Sequence[str], before: int, first: int = 0
) -> None:
    """Raise InputError at the first row that is wrong.

    before  rows before these
    first   number of a chromosome's first base in the file, in the words of messages
    """
    _check_chromosomes(path, rows, before)
    wrong = (rows.start < 0) | (rows.start >= rows.end) | (rows.end >= LONGEST)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = no_region(int(rows.start[row]) + first, int(rows.end[row]), first)
        raise InputError(path, problem, f"row {before + row + 1}")
    wrong = ~((rows.values >= 0) & (rows.values < MOST_READS))
    if wrong.any():
        row, column = divmod(int(np.argmax(wrong)), len(samples))
        value = rows.values[row, column]
        rule = "below 2^40" if MOST_READS <= value < np.inf else "finite and not negative"
        problem = f"{value:g} is no count: counts are {rule}"
        raise InputError(path, problem, f"row {before + row + 1}, column {samples[column]}")


def _check_chromosomes(path: str, rows: CountRows, before: int) -> None:
    wrong = [number for number, name in enumerate(rows.names) if not name or name_problem(name)]
    if wrong and (there := np.isin(rows.chrom, wrong)).any():
        row = int(np.argmax(there))
        name = rows.names[rows.chrom[row]]
        problem = f"{quoted(name)} is no chromosome: {name_problem(name)}"
        problem = problem if name else "the chromosome has no name"
        raise InputError(path, problem, f"row {before + row + 1}, column chrom")


def check_room(path: str, file: BufferedReader, samples: int, share: float = 1.0) -> None:
    """Raise MemoryError where the rows of a text cannot fit, by the first of them and its size.

    file   the text from its first row on
    share  of the counts that are kept
    """
    line = len(file.peek(1).partition(b"\n")[0]) + 1
    if not samples or line < samples or not is_regular(path):
        return
    rows, free = least_content(path) // line, free_bytes(None)
    needed = int(4 * samples * rows * share)
    if needed > free:
        about = f"about {rows:,} regions of {samples:,} samples need {needed:,} bytes"
        raise MemoryError(f"{about}, and {free:,} are free")


def check_samples(path: str, columns: Sequence[str]) -> tuple[str, ...]:
    if tuple(columns[:3]) != COLUMNS:
        text = "\t".join(columns)
        found = f"not {quoted(text)}" if text else "and it begins with none"
        problem = f"is no counts table: its columns are chrom, start, end and samples, {found}"
        if other := re.match("chrom([,; ])start", text):
            problem += f"; `tr '{other[1]}' '\\t' < FILE` separates them by tabs"
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


# ---- batches of Arrow -------------------------------------------------------------------------


def samples_of_schema(path: str, schema: Any) -> tuple[str, ...]:
    """Return the names of the samples. Raises InputError for columns of wrong types, too."""
    from pyarrow import types

    samples = check_samples(path, schema.names)
    for number, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        if number == 0:
            plain = kind.value_type if types.is_dictionary(kind) else kind
            right = types.is_string(plain) or types.is_large_string(plain)
        else:
            right = types.is_integer(kind) or (number > 2 and types.is_floating(kind))
        if not right:
            raise InputError(path, f"it cannot hold {kind}", f"column {name}")
    return samples


def kind_of_values(schema: Any) -> Any:
    """Return the type that holds the counts of all samples: int32 or float64."""
    return np.int32 if {str(kind) for kind in schema.types[3:]} == {"int32"} else np.float64


def place_batches(
    path: str, samples: Sequence[str], batches: Iterable[Any], whole: CountRows, first: int = 0
) -> list[str]:
    """Put batches into rows from `first` on; return their chromosomes. Raises InputError."""
    names: dict[str, int] = {}
    for batch in batches:
        _check_there(path, batch, first)
        here = whole.part(first, first + batch.num_rows)
        rows = rows_of_batch(batch, here.values)
        # Arrow does not look whether each number stands for a name.
        chrom = rows.chrom
        if len(chrom) and not (chrom.min() >= 0 and chrom.max() < len(rows.names)):
            raise InputError(path, "cannot be read as Parquet: its chromosomes are damaged")
        check_rows(path, rows, samples, first)
        here.chrom[:], here.start[:], here.end[:] = rows.numbered(names), rows.start, rows.end
        first += batch.num_rows
    return list(names)


def _check_there(path: str, batch: Any, before: int) -> None:
    missing = [
        (column.is_null().index(True).as_py(), number)
        for number, column in enumerate(batch.columns[:3])
        if column.null_count
    ]
    if missing:
        row, number = min(missing)
        raise InputError(path, "is missing", f"row {before + row + 1}, column {COLUMNS[number]}")


def rows_of_batch(batch: Any, into: Values | None = None) -> CountRows:
    """Return a batch's rows, NaN for what is missing. into: for counts, if of its type."""
    chrom = batch.column(0)
    chrom = chrom if hasattr(chrom, "dictionary") else chrom.dictionary_encode()
    columns = [arrow.values(column) for column in batch.columns[3:]]
    whole = all(column.dtype == np.int32 for column in columns)
    kind: Any = np.int32 if whole else np.float64
    if into is None or into.dtype != kind:
        into = np.empty((batch.num_rows, len(columns)), kind)
    values = np.stack(columns, 1, out=into)
    start, end = (arrow.values(batch.column(i)).astype(np.int64, copy=False) for i in (1, 2))
    return CountRows(chrom.dictionary.to_pylist(), arrow.values(chrom.indices), start, end, values)


def slices(counts: Counts, size: int) -> Iterator[slice]:
    return (slice(at, at + size) for at in range(0, len(counts.regions), size))


def batch_of(counts: Counts, rows: slice) -> Any:
    import pyarrow as pa

    regions = counts.regions
    columns = [
        arrow.named(regions.chrom[rows], regions.names),
        arrow.numbers(regions.start[rows]),
        arrow.numbers(regions.end[rows]),
        *map(arrow.numbers, counts.values[rows].T.copy()),
    ]
    return pa.record_batch(columns, [*COLUMNS, *counts.samples])

"""Counts from tables in memory: those of pyarrow, and frames of pandas, which is not imported."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, printable_name, quoted
from multigpu.formats.alignments.regions import LONGEST, Regions, no_region
from multigpu.formats.tables import arrow
from multigpu.formats.tables.counts import COLUMNS, LARGEST, MOST_READS, Counts


def is_frame(given: Any) -> bool:
    """Return whether an object has columns with names."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def counts_from_frame(frame: Any) -> Counts:
    """Return the counts of a table with the columns chrom, start, end and samples, sorted.

    Raises UsageError for any other table.
    """
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    samples = tuple(names[3:])
    if tuple(names[:3]) != COLUMNS or not samples:
        found = quoted(", ".join(names))
        raise UsageError(f"the columns of a table are chrom, start, end and samples, not {found}")
    if len(set(names)) < len(names):
        raise UsageError("two columns of the table have the same name")
    start, end = (_places(_column(frame, name), name) for name in COLUMNS[1:])
    values = _values(frame, samples)
    regions = _regions(_chromosomes(frame), start, end)
    order = regions.order()
    notes = []
    if order is not None:
        regions, values = regions.take(order), values[order]
        notes = ["the regions are not in order: they are sorted"]
    return Counts(regions, samples, values, (*notes, *regions.oddities()))


def _column(frame: Any, name: str) -> NDArray[Any]:
    """Return the values of a column; those of Arrow must be numbers, and are NaN where null."""
    column = frame[name]
    if not hasattr(column, "chunks"):
        return np.asarray(column)
    kind = str(column.type)
    if not kind.startswith(("int", "uint", "float", "double")):
        raise UsageError(f"column {printable_name(name)}: it cannot hold {kind}, but numbers")
    chunks = [arrow.values(chunk) for chunk in column.chunks]
    return np.concatenate(chunks) if chunks else np.empty(0)


def _chromosomes(frame: Any) -> list[str]:
    column = frame["chrom"]
    is_arrow = hasattr(column, "to_pylist")
    names: list[str] = column.to_pylist() if is_arrow else np.asarray(column).tolist()
    for row, name in enumerate(names, 1):
        if not isinstance(name, str):
            raise UsageError(f"row {row}, column chrom: {quoted(str(name))} is no name")
        if not name or "\0" in name:
            raise UsageError(f"row {row}, column chrom: {quoted(name)} is no chromosome")
    return names


def _places(column: NDArray[Any], name: str) -> NDArray[np.int64]:
    if column.dtype.kind not in "iu":
        raise UsageError(f"column {name}: it cannot hold {column.dtype}, but whole numbers")
    return column.astype(np.int64)


def _regions(names: list[str], start: NDArray[np.int64], end: NDArray[np.int64]) -> Regions:
    wrong = (start < 0) | (start >= end) | (end >= LONGEST)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise UsageError(f"row {row + 1}: {no_region(int(start[row]), int(end[row]))}")
    numbers: dict[str, int] = {}
    chrom = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)
    return Regions(tuple(numbers), chrom, start, end)


def _values(frame: Any, samples: tuple[str, ...]) -> NDArray[Any]:
    """Return [regions, samples]: int32 where all counts are whole, else float64."""
    found = []
    for name in samples:
        values = _column(frame, name)
        if values.dtype.kind not in "iuf":
            raise UsageError(
                f"column {printable_name(name)}: it cannot hold {values.dtype}, but numbers"
            )
        values = values.astype(np.float64)
        wrong = ~((values >= 0) & (values < MOST_READS))
        if wrong.any():
            row = int(np.argmax(wrong))
            where = f"row {row + 1}, column {printable_name(name)}"
            raise UsageError(f"{where}: {values[row]:g} is no count, which is from 0 to 2^40")
        found.append(values)
    every = np.stack(found, 1)
    whole = every.max(initial=0) <= LARGEST and bool((every == np.floor(every)).all())
    return every.astype(np.int32) if whole else every

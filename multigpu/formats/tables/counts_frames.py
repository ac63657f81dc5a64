"""Counts from tables in memory: those of pyarrow, and frames of pandas, which is not imported."""

from typing import Any

import numpy as np

from multigpu.errors import UsageError, first_line, printable_name
from multigpu.formats.alignments.regions import Regions, in_order
from multigpu.formats.tables.arrow import pyarrow
from multigpu.formats.tables.counts import (
    ROWS,
    CountRows,
    Counts,
    kind_of_values,
    narrow,
    place_batches,
    samples_of_schema,
)

NAME = "the table"  # in messages


def is_frame(given: Any) -> bool:
    """Return whether an object has columns with names."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def counts_from_frame(frame: Any) -> Counts:
    """Return the counts of a table with the columns chrom, start, end and samples, sorted.

    Raises UsageError for any other table.
    """
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
    """Return a table of Arrow, whose rows have numbers or names."""
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

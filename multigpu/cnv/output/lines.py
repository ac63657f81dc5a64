"""Lines of text from columns, joined by Arrow without a Python object for each row."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.tables import arrow

if TYPE_CHECKING:
    import pyarrow as pa

CELLS = 1 << 18  # joined at a time: far below 2 GiB, which is the most Arrow joins

Text: TypeAlias = "pa.Buffer"  # Arrow's own memory: to copy it would hold the interpreter
Column: TypeAlias = "pa.Array | NDArray[Any] | str"  # a text is the same in all rows


def block_rows(columns: int) -> int:
    """Return the number of rows that are joined at a time."""
    return max(1, CELLS // columns)


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield the rows that are joined at a time."""
    step = block_rows(columns)
    return (slice(at, at + step) for at in range(0, rows, step))


def lines(*columns: Column) -> Text:
    """Return a line for every row, with tabs between the columns."""
    return arrow.text(joined(*columns[:-1], joined(columns[-1], "\n"), by="\t"))


def joined(*columns: Column, by: str = "") -> "pa.Array":
    """Return the texts of each row, joined with `by`."""
    import pyarrow.compute as pc

    found = [arrow.word(each) if isinstance(each, str) else texts(each) for each in columns]
    return pc.binary_join_element_wise(*found, arrow.word(by))


def texts(column: "pa.Array | NDArray[Any]") -> "pa.Array":
    """Return numbers as Python writes them: the shortest text that reads back equal.

    Arrow writes some of them otherwise, whole ones without ".0". Texts stay as they are.
    """
    import pyarrow as pa

    values = arrow.numbers(column) if isinstance(column, np.ndarray) else column
    if pa.types.is_floating(values.type):
        return arrow.strings([*map(repr, arrow.values(values).tolist())])
    return values.cast(pa.string())

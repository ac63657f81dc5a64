"""Lines of text from columns, joined by Arrow without a Python object for each row."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.tables import arrow

if TYPE_CHECKING:
    import pyarrow as pa

CELLS = 1 << 18  # joined at a time: far below 2 GiB, which is the most Arrow joins
LEAST_ALIKE, MOST_ALIKE = 1e-4, 1e9  # Arrow and Python write fractions between them alike
TINY = 1e-9  # and fractions below it, as all exponents have two digits or more

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

    return pc.binary_join_element_wise(*map(_texts_or_constant, columns), arrow.word(by))


def _texts_or_constant(column: Column) -> "pa.Array | pa.Scalar":
    return arrow.word(column) if isinstance(column, str) else texts(column)


def texts(column: "pa.Array | NDArray[Any]") -> "pa.Array":
    """Return numbers as Python writes them: the shortest text that reads back equal.

    Arrow, which is faster, writes whole numbers without ".0", and some with other exponents.
    Texts stay as they are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = arrow.numbers(column) if isinstance(column, np.ndarray) else column
    found = values.cast(pa.string())
    if not pa.types.is_floating(values.type):
        return found
    numbers = arrow.values(values)
    size = np.abs(numbers)
    whole = (size < MOST_ALIKE) & (numbers == np.rint(numbers))
    others = ~((size < TINY) | ((size > LEAST_ALIKE) & (size < MOST_ALIKE)))
    unlike = arrow.numbers(whole | others)
    python = arrow.strings([*map(repr, numbers[others].tolist())])
    as_whole = joined(found.filter(unlike), ".0")
    written = pc.replace_with_mask(as_whole, arrow.numbers(others[whole | others]), python)
    return pc.replace_with_mask(found, unlike, written)

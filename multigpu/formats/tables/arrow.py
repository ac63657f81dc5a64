"""Columns as Arrow arrays and back, without pandas.

pyarrow's own functions import pandas wherever it is installed, to compare values with its types:
0.24 s and 50 MB in every process that no file needs. The functions here go by the buffers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.tables.texts import Texts

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TEXT = 2**31 - 1  # bytes of one array of strings


def pyarrow() -> Any:
    """Return pyarrow, loaded when a table is made: it takes longer than the rest of a start."""
    import pyarrow as pa

    return pa


def numbers(values: NDArray[Any], nan_is_null: bool = False) -> "pa.Array":
    """Return an array of numbers or truth values, [n]; contiguous numbers are not copied."""
    pa = pyarrow()
    found = _bits(values) if values.dtype == np.bool_ else np.ascontiguousarray(values)
    there = ~np.isnan(values) if nan_is_null else None
    valid = None if there is None or there.all() else pa.py_buffer(_bits(there))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(found)])


def _bits(values: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")


def strings(texts: Sequence[str]) -> "pa.Array":
    """Return an array of texts in UTF-8."""
    pa = pyarrow()
    every = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, every)])
    if ends[-1] > MOST_TEXT:
        return pa.array(texts, pa.string())  # in chunks
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(every))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def texts_of_binary(array: "pa.LargeBinaryArray") -> Texts:
    """Return texts of Arrow, without a copy. What is null has no letters."""
    _, ends, letters = array.buffers()
    borders = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    return Texts(np.frombuffer(letters or b"", np.uint8), borders[:-1], np.diff(borders))


def named(indices: NDArray[Any], names: Sequence[str]) -> "pa.Array":
    """Return the name of every index, [n]."""
    return strings(names).take(numbers(indices))


def word(text: str) -> "pa.Scalar":
    """Return one text, where a function takes the same for all rows."""
    return strings([text])[0]


def values(array: "pa.Array") -> NDArray[Any]:
    """Return a view of the numbers; where some are null a copy, float64, with NaN for these."""
    if array.null_count:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return np.from_dlpack(array)


def text(array: "pa.Array") -> "pa.Buffer":
    """Return all texts of an array, which is no slice, one after the other; not copied."""
    _, ends, letters = array.buffers()
    return letters.slice(0, int(np.frombuffer(ends, np.int32)[len(array)]))


def schema(columns: Mapping[str, str], nullable: str) -> "pa.Schema":
    """Return a schema of types by name; one of them may be null."""
    pa = pyarrow()
    return pa.schema([pa.field(name, kind, name == nullable) for name, kind in columns.items()])


def table(columns: "Iterable[tuple[str, pa.Array | NDArray[Any]]]") -> "pa.Table":
    """Return a table of columns, of Arrow or numbers, each after its name."""
    names, found = zip(*columns, strict=True)
    arrays = [numbers(each) if isinstance(each, np.ndarray) else each for each in found]
    return pyarrow().Table.from_arrays(arrays, names=names)

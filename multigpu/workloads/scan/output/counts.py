"""The table of `--counts`: one line for each file and signature."""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.formats.storage.suffixes import PARQUET, suffix_of_output
from multigpu.formats.tables.arrow import named, numbers, pyarrow
from multigpu.formats.tables.parquet import RowGroups
from multigpu.workloads.scan.output.columns import (
    Column,
    TextColumn,
    decoded,
    lines_of,
    names_of_files,
)
from multigpu.workloads.scan.tally import Tallies

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = ("file", "signature")
COLUMNS = {"reads": int, "matches": int, "share": float, "mean_score": float, "covered": float}
BLOCK = 1 << 16  # lines made at a time


def write_counts(path: str, file: BinaryIO, tallies: Tallies) -> None:
    """Write TSV, compressed as the suffix of the path says, or Parquet."""
    if suffix_of_output(path) in PARQUET:
        with RowGroups(file, _schema(), NAMES) as groups:
            for table in _tables(tallies):
                groups.write(table)
        return
    out = Compressed(file, compression_of(path))
    out.write("\t".join([*NAMES, *COLUMNS]).encode() + b"\n")
    for lines in _lines(tallies):
        out.write(lines)
    out.close()


def _lines(tallies: Tallies) -> Iterator[bytes]:
    """Yield the lines, in the order of the files and of the signatures."""
    names = tallies.signatures.names
    for file, found in zip(names_of_files(tallies.names), tallies, strict=True):
        for at in range(0, len(names), BLOCK):
            some = slice(at, at + BLOCK)
            texts = TextColumn.of(names[some])
            columns: list[Column] = [file, texts, *(_column(found[c][some]) for c in COLUMNS)]
            separated = chain.from_iterable(zip(columns, repeat(b"\t")))
            yield lines_of(len(names[some]), *[*separated][:-1], b"\n")


def _column(values: NDArray[Any]) -> Column:
    """Return numbers; fractions as the shortest texts that read back equal, NaN as nothing."""
    if values.dtype.kind != "f":
        return values
    distinct, which = np.unique(values, return_inverse=True)
    texts = ["" if np.isnan(value) else repr(value) for value in distinct.tolist()]
    return TextColumn([text.encode() for text in texts], which)


def _schema() -> "pa.Schema":
    pa = pyarrow()
    kinds = {int: pa.int64(), float: pa.float64()}
    fields = [pa.field(name, pa.string(), nullable=False) for name in NAMES]
    for name, kind in COLUMNS.items():
        fields.append(pa.field(name, kinds[kind], nullable=name == "mean_score"))
    return pa.schema(fields)


def _tables(tallies: Tallies) -> Iterator["pa.Table"]:
    """Yield the rows of each file."""
    files = decoded(names_of_files(tallies.names), "utf-8")
    signatures = decoded(tallies.signatures.names, "utf-8")
    which = np.arange(len(signatures), dtype=np.int32)
    for file, found in zip(files, tallies, strict=True):
        columns = [numbers(found[name], nan_is_null=name == "mean_score") for name in COLUMNS]
        arrays = [named(0 * which, [file]), named(which, signatures), *columns]
        yield pyarrow().Table.from_arrays(arrays, schema=_schema())

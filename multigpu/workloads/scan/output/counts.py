"""The table of `--counts`: one line for each file and signature."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.formats.storage.suffixes import PARQUET, suffix_of_output
from multigpu.formats.tables.arrow import named, numbers, pyarrow, schema
from multigpu.formats.tables.parquet import RowGroups
from multigpu.workloads.scan.output.row_lines import (
    Column,
    decoded,
    delimited,
    names_of_files,
    numbers_as_texts,
)
from multigpu.workloads.scan.tally import Tallies

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = {
    "file": "string", "signature": "string", "reads": "int64", "matches": "int64",
    "share": "double", "mean_score": "double", "covered": "double",
}  # fmt: skip


def write_counts(path: str, file: BinaryIO, tallies: Tallies) -> None:
    """Write TSV, compressed as the suffix of the path says, or Parquet."""
    if suffix_of_output(path) in PARQUET:
        kinds = schema(COLUMNS, nullable="mean_score")
        with RowGroups(file, kinds, ("file", "signature")) as groups:
            for columns in _arrays(tallies):
                groups.write(pyarrow().Table.from_arrays(columns, schema=kinds))
        return
    out = Compressed(file, compression_of(path))
    out.write("\t".join(COLUMNS).encode() + b"\n")
    for lines in _lines(tallies):
        out.write(lines)
    out.close()


def _lines(tallies: Tallies) -> Iterator[bytes]:
    """Yield the lines of each file, with the shortest fractions that read back equal."""
    signatures = tallies.signatures.names
    for file, found in zip(names_of_files(tallies.names), tallies, strict=True):
        columns: Iterator[Column] = (
            numbers_as_texts(each) if each.dtype.kind == "f" else each for each in found.values()
        )
        yield delimited(b"\t", [file, signatures, *columns])


def _arrays(tallies: Tallies) -> Iterator[list["pa.Array"]]:
    """Yield the columns of each file."""
    signatures = decoded(tallies.signatures.names, "utf-8")
    which = np.arange(len(signatures))
    for file, found in zip(decoded(names_of_files(tallies.names), "utf-8"), tallies, strict=True):
        columns = [numbers(each, nan_is_null=True) for each in found.values()]
        yield [named(0 * which, [file]), named(which, signatures), *columns]

"""The table of `--counts`: one line for each file and signature."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.formats.storage.suffixes import PARQUET, suffix_of_output
from multigpu.formats.tables.arrow import named, numbers, pyarrow
from multigpu.formats.tables.parquet import RowGroups
from multigpu.workloads.scan.output.columns import TextColumn, decoded, lines_of, names_of_files
from multigpu.workloads.scan.tally import Tallies

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("file", "signature", "reads", "matches", "share", "mean_score", "covered")
REPEATED = ("file", "signature")
BLOCK = 1 << 16  # lines made at a time


@dataclass(frozen=True)
class SignatureCounts:
    """TSV, compressed as the suffix of the path says, or Parquet."""

    path: str
    is_detailed: ClassVar[bool] = False

    def write(self, file: BinaryIO, tallies: Tallies) -> None:
        if suffix_of_output(self.path) in PARQUET:
            with RowGroups(file, _schema(), REPEATED) as groups:
                for unit in range(len(tallies.names)):
                    groups.write(_table(tallies, unit))
            return
        out = Compressed(file, compression_of(self.path))
        out.write("\t".join(COLUMNS).encode() + b"\n")
        for unit in range(len(tallies.names)):
            for lines in _lines(tallies, unit):
                out.write(lines)
        out.close()


def _lines(tallies: Tallies, unit: int) -> Iterator[bytes]:
    """Yield the lines of one file, in the order of the signatures."""
    file = names_of_files([tallies.names[unit]])[0]
    names, found = tallies.signatures.names, tallies.of(unit)
    for at in range(0, len(names), BLOCK):
        some = slice(at, at + BLOCK)
        count = len(names[some])
        yield lines_of(
            count,
            file, b"\t", TextColumn.of(names[some]), b"\t", found.reads[some], b"\t",
            found.matches[some], b"\t", _texts(found.share[some]), b"\t",
            _texts(found.mean_score[some]), b"\t", _texts(found.covered[some]), b"\n",
        )  # fmt: skip


def _texts(values: NDArray[np.float64]) -> TextColumn:
    """Return numbers as the shortest texts that read back equal, NaN as nothing."""
    distinct, which = np.unique(values, return_inverse=True)
    texts = ["" if np.isnan(value) else repr(value) for value in distinct.tolist()]
    return TextColumn([text.encode() for text in texts], which)


def _schema() -> "pa.Schema":
    pa = pyarrow()
    kinds = (*[pa.string()] * 2, *[pa.int64()] * 2, *[pa.float64()] * 3)
    return pa.schema(
        [
            pa.field(name, kind, nullable=name == "mean_score")
            for name, kind in zip(COLUMNS, kinds, strict=True)
        ]
    )


def _table(tallies: Tallies, unit: int) -> "pa.Table":
    """Return the rows of one file."""
    found, size = tallies.of(unit), len(tallies.signatures)
    file = decoded(names_of_files([tallies.names[unit]]), "utf-8")
    columns = [
        named(np.zeros(size, np.int32), file),
        named(np.arange(size, dtype=np.int32), decoded(tallies.signatures.names, "utf-8")),
        numbers(found.reads),
        numbers(found.matches),
        numbers(found.share),
        numbers(found.mean_score, nan_is_null=True),
        numbers(found.covered),
    ]
    return pyarrow().Table.from_arrays(columns, schema=_schema())

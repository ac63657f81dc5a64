"""Table of scores: a row for every pose, as text, Parquet or Arrow."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import compressed_output
from multigpu.formats.storage.suffixes import PARQUET, suffix_of_output, uncompressed_suffix
from multigpu.formats.tables.arrow import numbers, pyarrow, strings
from multigpu.formats.tables.batch import PoseBatch
from multigpu.formats.tables.parquet import COMPRESSED_INSIDE, RowGroups
from multigpu.formats.tables.texts import replace_undecodable

if TYPE_CHECKING:
    import pyarrow as pa

ANGLES, LENGTHS = ("alpha", "beta", "gamma"), ("x", "y", "z", "rmsd_to_input")
# Each column with its format in text.
FORMATS = {
    "ligand": "%s",
    "pose": "%d",
    "score": "%r",
    **dict.fromkeys(ANGLES, "%s"),
    **dict.fromkeys(("qw", "qx", "qy", "qz"), "%.9f"),
    **dict.fromkeys(LENGTHS, "%.4f"),
    "rotation": "%d",
    "atoms": "%d",
    "source": "%s",
    "atoms_outside": "%d",
}
HEADER = "\t".join(FORMATS) + "\n"
ROW = "\t".join(FORMATS.values()) + "\n"
LINE_BREAKS = str.maketrans("\t\n\r", "???")

# Takes rows, and the same as lines of text where the table is text.
WriteScores = Callable[[PoseBatch, bytes], Any]


def is_parquet(path: str) -> bool:
    return suffix_of_output(path) in PARQUET


def check_scores(path: str | None) -> None:
    """Raise UsageError for a name that says Parquet and another compression."""
    if path is not None and not is_parquet(path) and uncompressed_suffix(path) in PARQUET:
        raise UsageError(f"{path}: {COMPRESSED_INSIDE}")


@contextmanager
def score_output(path: str | None) -> Iterator[WriteScores]:
    """Open a table that gets its name when the block ends without an error; None: no table.

    It is Parquet by the suffix .parquet or .pq, else tab-separated text, compressed as the suffix
    says.
    """
    if path is None:
        yield lambda rows, lines: None
    elif is_parquet(path):
        schema, repeated = to_arrow([]).schema, ["ligand", "source"]
        with atomic_output(path) as raw, RowGroups(raw, schema, repeated) as groups:
            yield lambda rows, lines: groups.write(to_arrow([rows]))
    else:
        with compressed_output(path) as text:
            text.write(HEADER.encode())
            yield lambda rows, lines: text.write(lines)


def as_tsv(rows: PoseBatch) -> bytes:
    """Return the rows as lines of text.

    Scores are the shortest decimals that read back equal. Angles are empty where rotations are not
    made of angles.
    """
    columns = _columns(rows)
    for name in ANGLES:
        columns[name] = [_angle(degrees) for degrees in columns[name].tolist()]
    for name in LENGTHS:
        # Four decimals would show them as -0.0000.
        columns[name] = np.where(np.abs(columns[name]) < 0.5e-4, 0.0, columns[name])
    columns["source"] = [_without_breaks(path) for path in rows.source]
    values = [each if isinstance(each, list) else each.tolist() for each in columns.values()]
    return "".join(map(ROW.__mod__, zip(*values, strict=True))).encode("utf-8", "replace")


@lru_cache(4096)
def _angle(degrees: float) -> str:
    return "" if np.isnan(degrees) else f"{degrees:.10g}"


@lru_cache(64)
def _without_breaks(path: str) -> str:
    return path.translate(LINE_BREAKS)


def to_arrow(batches: Sequence[PoseBatch]) -> "pa.Table":
    """Return the columns of the table in full precision.

    Angles are null where rotations are not made of angles.
    """
    pa = pyarrow()
    types = {"ligand": pa.string(), "source": pa.string(), "rotation": pa.int64()}
    types |= dict.fromkeys(("pose", "atoms", "atoms_outside"), pa.int32())
    schema = pa.schema([pa.field(name, types.get(name, pa.float64())) for name in FORMATS])
    tables = [
        pa.Table.from_arrays([*map(_arrow_array, _columns(rows).values())], schema=schema)
        for rows in batches
    ]
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


def _arrow_array(column: "list[str] | NDArray[Any]") -> "pa.Array":
    if isinstance(column, list):
        return strings([replace_undecodable(text) for text in column])
    return numbers(column, nan_is_null=column.dtype.kind == "f")


def _columns(rows: PoseBatch) -> dict[str, Any]:
    columns = [
        rows.ligand,
        rows.pose,
        rows.score,
        *np.ascontiguousarray(rows.angles.T),
        *np.ascontiguousarray(rows.quaternion.T),
        *np.ascontiguousarray(rows.place.T),
        rows.rmsd_to_input,
        rows.rotation,
        rows.atoms,
        rows.source,
        rows.atoms_outside,
    ]
    return dict(zip(FORMATS, columns, strict=True))

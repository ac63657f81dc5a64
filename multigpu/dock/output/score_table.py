"""Table of scores: a row for every pose, as text, Parquet or Arrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.output import atomic_output
from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import Compressed, compression_of
from multigpu.formats.tables.arrow import numbers, pyarrow, strings
from multigpu.formats.tables.batch import PoseBatch
from multigpu.formats.tables.parquet import COMPRESSED_INSIDE, RowGroups
from multigpu.formats.tables.texts import speakable

if TYPE_CHECKING:
    import pyarrow as pa

# Each column with its format in text.
FORMATS = {
    "ligand": "%s",
    "pose": "%d",
    "score": "%r",
    **dict.fromkeys(("alpha", "beta", "gamma"), "%s"),
    **dict.fromkeys(("qw", "qx", "qy", "qz"), "%.9f"),
    **dict.fromkeys(("x", "y", "z", "rmsd_to_input"), "%.4f"),
    "rotation": "%d",
    "atoms": "%d",
    "source": "%s",
    "atoms_outside": "%d",
}
HEADER = "\t".join(FORMATS) + "\n"
ROW = "\t".join(FORMATS.values()) + "\n"
LINE_BREAKS = str.maketrans("\t\n\r", "???")


class ScoreTable(Protocol):
    """A table of scores that is being written, in the order of the input.

    takes_lines  whether it takes rows as lines of text, see `as_tsv`
    """

    takes_lines: bool

    def write(self, rows: PoseBatch, lines: bytes) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def check_scores(path: str | None) -> None:
    """Raise UsageError for a name that says Parquet and another compression."""
    if path is not None and compression_of(path) != "none" and is_parquet(Path(path).stem):
        raise UsageError(f"{path}: {COMPRESSED_INSIDE}")


@contextmanager
def score_output(path: str | None) -> Iterator[ScoreTable]:
    """Open a table that gets its name when the block ends without an error; None: no table.

    It is Parquet by the suffix .parquet or .pq, else tab-separated text, compressed as the suffix
    says.
    """
    if path is None:
        yield _NoScores()
        return
    with atomic_output(path) as raw:
        table = _ParquetScores(raw) if is_parquet(path) else _TextScores(raw, path)
        try:
            yield table
        except BaseException:
            table.abandon()
            raise
        table.close()


def is_parquet(path: str) -> bool:
    """Whether a path names a Parquet file."""
    return Path(path).suffix.lower() in (".parquet", ".pq")


class _NoScores:
    """No table at all."""

    takes_lines = False

    def write(self, rows: PoseBatch, lines: bytes) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class _TextScores:
    """Tab-separated text with a line of column names."""

    takes_lines = True

    def __init__(self, raw: BinaryIO, path: str) -> None:
        self._out = Compressed(raw, compression_of(path))
        self._out.write(HEADER.encode())

    def write(self, rows: PoseBatch, lines: bytes) -> None:
        self._out.write(lines)

    def close(self) -> None:
        self._out.close()

    def abandon(self) -> None:
        """Do nothing: no text is held back that would be written later."""


class _ParquetScores:
    """Row groups of a Parquet file."""

    takes_lines = False

    def __init__(self, raw: BinaryIO) -> None:
        self._groups = RowGroups(raw, to_arrow([]).schema, ["ligand", "source"])

    def write(self, rows: PoseBatch, lines: bytes) -> None:
        self._groups.write(to_arrow([rows]))

    def close(self) -> None:
        self._groups.close()

    def abandon(self) -> None:
        self._groups.abandon()


def as_tsv(rows: PoseBatch) -> bytes:
    """Return the rows as lines of text.

    Scores are the shortest decimals that read back equal. Angles are empty where rotations are not
    made of angles.
    """
    columns = [
        rows.ligand,
        rows.pose.tolist(),
        rows.score.tolist(),
        *([_angle(each) for each in column] for column in rows.angles.T.tolist()),
        *rows.quaternion.T.tolist(),
        *_without_negative_zeros(rows.place).T.tolist(),
        _without_negative_zeros(rows.rmsd_to_input).tolist(),
        rows.rotation.tolist(),
        rows.atoms.tolist(),
        [_path(path) for path in rows.source],
        rows.atoms_outside.tolist(),
    ]
    return "".join(map(ROW.__mod__, zip(*columns, strict=True))).encode("utf-8", "replace")


def _without_negative_zeros(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0.0 for numbers that four decimals would show as -0.0000."""
    return np.where(np.abs(values) < 0.5e-4, 0.0, values)


@lru_cache(4096)
def _angle(degrees: float) -> str:
    return "" if np.isnan(degrees) else f"{degrees:.10g}"


@lru_cache(64)
def _path(source: str) -> str:
    return source.translate(LINE_BREAKS)


def to_arrow(batches: Sequence[PoseBatch]) -> "pa.Table":
    """Return the columns of the table in full precision.

    Angles are null where rotations are not made of angles.
    """
    pa = pyarrow()
    texts, doubles = pa.string(), pa.float64()
    types = {"ligand": texts, "source": texts, "rotation": pa.int64()}
    types |= dict.fromkeys(("pose", "atoms", "atoms_outside"), pa.int32())
    schema = pa.schema([pa.field(name, types.get(name, doubles)) for name in FORMATS])
    tables = [
        pa.Table.from_arrays([_arrow_array(column) for column in _columns(rows)], schema=schema)
        for rows in batches
    ]
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


def _arrow_array(column: "list[str] | NDArray[Any]") -> "pa.Array":
    if isinstance(column, list):
        return strings(column)
    return numbers(column, nan_is_null=column.dtype.kind == "f")


def _columns(rows: PoseBatch) -> list[Any]:
    return [
        rows.ligand,
        rows.pose,
        rows.score,
        *np.ascontiguousarray(rows.angles.T),
        *np.ascontiguousarray(rows.quaternion.T),
        *np.ascontiguousarray(rows.place.T),
        rows.rmsd_to_input,
        rows.rotation,
        rows.atoms,
        [speakable(path) for path in rows.source],
        rows.atoms_outside,
    ]

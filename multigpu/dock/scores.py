"""Tables of a docking run: the scores of its poses, and the ligands that were skipped."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from multigpu.formats.tables.texts import Texts, are_several, speakable

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = (
    "ligand", "pose", "score", "alpha", "beta", "gamma", "qw", "qx", "qy", "qz", "x", "y", "z",
    "rmsd_to_input", "rotation", "atoms", "source", "atoms_outside",
)  # fmt: skip
ROW = "\t".join(  # of these columns
    ["%s", "%d", "%r", "%s", "%s", "%s", *["%.9f"] * 4, *["%.4f"] * 4, "%d", "%d", "%s", "%d\n"]
)
BREAKS = str.maketrans("\t\n\r", "???")
ERROR_COLUMNS = ("file", "record", "ligand", "reason")
ERRORS_HEADER = "\t".join(ERROR_COLUMNS) + "\n"


@dataclass(frozen=True)
class Skipped:
    """A ligand that was not docked, and why. number: of the record in its file, from 1."""

    path: str
    number: int
    ligand: str
    reason: str


class ScoreSink(Protocol):
    """Where rows go, in order.

    lines  whether it takes them as lines, which `as_tsv` makes of them
    """

    lines: bool

    def write(self, rows: PoseBatch, lines: bytes) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def check_scores(path: str | None) -> None:
    """Raises UsageError for a name that says Parquet and something else."""
    if path is not None and compression_of(path) != "none" and is_parquet(Path(path).stem):
        raise UsageError(f"{path}: {COMPRESSED_INSIDE}")


@contextmanager
def score_output(path: str | None) -> Iterator[ScoreSink]:
    """A table that appears under its name when the block ends well; None: nothing is written.

    Parquet by the suffix .parquet or .pq, else tab-separated, compressed as the suffix says.
    """
    if path is None:
        yield _Nowhere()
        return
    with atomic_output(path) as raw:
        sink = _ParquetScores(raw) if is_parquet(path) else _TextScores(raw, path)
        try:
            yield sink
        except BaseException:
            sink.abandon()
            raise
        sink.close()


def is_parquet(path: str) -> bool:
    return Path(path).suffix.lower() in (".parquet", ".pq")


class _Nowhere:
    lines = False

    def write(self, rows: PoseBatch, lines: bytes) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class _TextScores:
    """Lines below a line of names."""

    lines = True

    def __init__(self, raw: BinaryIO, path: str) -> None:
        self._out = Compressed(raw, compression_of(path))
        self._out.write(("\t".join(COLUMNS) + "\n").encode())

    def write(self, rows: PoseBatch, lines: bytes) -> None:
        self._out.write(lines)

    def close(self) -> None:
        self._out.close()

    def abandon(self) -> None:
        """Nothing is held that would be written later."""


class _ParquetScores:
    """Row groups of a Parquet file."""

    lines = False

    def __init__(self, raw: BinaryIO) -> None:
        schema = to_arrow([]).schema
        self._groups = RowGroups(raw, schema, ["ligand", "source"])

    def write(self, rows: PoseBatch, lines: bytes) -> None:
        self._groups.write(to_arrow([rows]))

    def close(self) -> None:
        self._groups.close()

    def abandon(self) -> None:
        self._groups.abandon()


def as_tsv(rows: PoseBatch) -> bytes:
    """Scores as the shortest decimals that read back equal; angles are empty where there are none.

    Quaternions have nine decimals, places and distances four.
    """
    if are_several(len(rows)):
        return _as_tsv_at_once(rows)
    columns = [
        rows.ligand, rows.pose.tolist(), rows.score.tolist(),
        *([_angle(each) for each in column] for column in rows.angles.T.tolist()),
        *rows.quaternion.T.tolist(), *_lengths(rows.place).T.tolist(),
        _lengths(rows.rmsd_to_input).tolist(), rows.rotation.tolist(), rows.atoms.tolist(),
        _paths(rows), rows.atoms_outside.tolist(),
    ]  # fmt: skip
    return "".join(map(ROW.__mod__, zip(*columns, strict=True))).encode("utf-8", "replace")


def _as_tsv_at_once(rows: PoseBatch) -> bytes:
    """The same without objects for all that stands in a row."""
    from multigpu.formats.tables.columns import decimals, glued, whole

    angles, which = np.unique(rows.angles, return_inverse=True, equal_nan=True)
    angle = Texts.of_words(map(_angle, angles.tolist()))
    scores = Texts.of_words(map(repr, rows.score.tolist()))
    columns = [
        Texts.of_words(rows.ligand), whole(rows.pose), scores,
        *(angle.take(column) for column in which.reshape(rows.angles.shape).T),
        decimals(rows.quaternion, 9), decimals(_lengths(rows.place), 4),
        decimals(_lengths(rows.rmsd_to_input), 4), whole(rows.rotation), whole(rows.atoms),
        Texts.of_words(_paths(rows)), whole(rows.atoms_outside),
    ]  # fmt: skip
    tabbed = [piece for column in columns for piece in (b"\t", column)]
    return glued(*tabbed[1:], b"\n").raw.tobytes()


def _paths(rows: PoseBatch) -> list[str]:
    """The sources, without what ends a column or a line."""
    shown = {path: path.translate(BREAKS) for path in set(rows.source)}
    return [shown[path] for path in rows.source]


def _lengths(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without numbers that four decimals would show as -0.0000."""
    return np.where(np.abs(values) < 0.5e-4, 0.0, values)


@lru_cache(4096)
def _angle(degrees: float) -> str:
    return "" if np.isnan(degrees) else f"{degrees:.10g}"


def to_arrow(batches: Sequence[PoseBatch]) -> "pa.Table":
    """The columns of the table, in full precision; angles are null where there are none."""
    pa = pyarrow()
    strings, doubles = pa.string(), pa.float64()
    kinds = {"ligand": strings, "source": strings, "rotation": pa.int64()}
    kinds |= dict.fromkeys(("pose", "atoms", "atoms_outside"), pa.int32())
    schema = pa.schema([pa.field(name, kinds.get(name, doubles)) for name in COLUMNS])
    tables = [
        pa.Table.from_arrays([_array(column) for column in _columns(rows)], schema=schema)
        for rows in batches
    ]
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


def _array(column: "list[str] | NDArray[Any]") -> "pa.Array":
    if isinstance(column, list):
        return strings(column)
    return numbers(column, nan_is_null=column.dtype.kind == "f")


def _columns(rows: PoseBatch) -> list[Any]:
    return [
        rows.ligand, rows.pose, rows.score, *np.ascontiguousarray(rows.angles.T),
        *np.ascontiguousarray(rows.quaternion.T), *np.ascontiguousarray(rows.place.T),
        rows.rmsd_to_input, rows.rotation, rows.atoms, [speakable(path) for path in rows.source],
        rows.atoms_outside,
    ]  # fmt: skip


# ---- what was skipped -------------------------------------------------------------------------


def write_errors(path: str, skipped: Sequence[Skipped]) -> None:
    """The table of skipped ligands; without any, only one that is there already becomes empty."""
    if not skipped and not _is_errors_table(path):
        return
    with atomic_output(path) as file:
        rows = [
            f"{s.path.translate(BREAKS)}\t{s.number}\t{s.ligand}\t{one_line(s.reason)}\n"
            for s in skipped
        ]
        file.write("".join([ERRORS_HEADER, *rows]).encode("utf-8", "replace"))


def _is_errors_table(path: str) -> bool:
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(ERRORS_HEADER)) == ERRORS_HEADER.encode()


def check_errors_path(path: str) -> None:
    """Raises UsageError where a file that is no table of errors would be replaced."""
    if Path(path).exists() and not _is_errors_table(path):
        raise UsageError(f"{path} is in the way: skipped ligands are listed there; move it")


def one_line(text: str) -> str:
    """Without tabs and line ends."""
    return " ".join(text.split())

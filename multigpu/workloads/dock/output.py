"""All files that a docking job writes: poses, scores, skipped ligands, the report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from multigpu.cluster.engine.journal import journal_of
from multigpu.cluster.files import STDOUT, atomic_output, check_output, is_replaced
from multigpu.errors import UsageError, spelled
from multigpu.formats.molecules.poses import format_of
from multigpu.formats.molecules.registry import FORMATS
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.storage.compressed import compressed_output, compression_of
from multigpu.formats.storage.suffixes import PARQUET, suffix_of_output, uncompressed_suffix
from multigpu.formats.tables.parquet import COMPRESSED_INSIDE, RowGroups
from multigpu.workloads.dock.parts import DockedLigands, Skipped
from multigpu.workloads.dock.rows import (
    LINE_BREAKS,
    Formats,
    PoseBatch,
    as_tsv,
    header,
    one_line,
    to_arrow,
)

OTHER_TABLES = (".csv", ".xls", ".xlsx", ".json")
SCORES, ERRORS = "scores.tsv", "errors.tsv"
SKIPPED_HEADER = "file\trecord\tligand\treason\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class DockFiles:
    """Paths of the poses, their tables and the report."""

    poses: str | None  # None: standard output
    scores: str | None  # table of scores; None: beside the poses
    report: str | None  # HTML page, or None

    @property
    def format(self) -> str:
        """Format of the poses. Raises UsageError for an unknown suffix."""
        if self.poses is None or self.poses in STDOUT:
            return SDF.name
        return format_of(self.poses)

    def check(self) -> None:
        """Raise UsageError for files that cannot be written."""
        for path in (self.poses if self.format else None, self.scores, self.report):
            check_output(path)
        suffix = uncompressed_suffix(self.scores)
        if suffix in OTHER_TABLES:
            raise UsageError(f"{self.scores}: tables of scores are .tsv or .parquet")
        if suffix in PARQUET and suffix_of_output(self.scores) not in PARQUET:
            raise UsageError(f"{self.scores}: {COMPRESSED_INSIDE}")
        if self.scores in STDOUT and self.poses in (None, *STDOUT):
            raise UsageError("poses and scores would both go to standard output: name a file")
        errors = tables_beside(self.poses)[1]
        if Path(errors).exists() and not _is_errors_table(errors):
            raise UsageError(f"{errors} exists and is no table of skipped ligands: move it")

    @property
    def paths(self) -> list[str | None]:
        scores, errors = tables_beside(self.poses)
        return [self.poses, self.scores or scores, errors, self.report]

    @property
    def journal(self) -> Path | None:
        """Journal of a run that writes these poses; None for pipes and devices."""
        return journal_of(str(self.poses)) if is_replaced(self.poses) else None

    @contextmanager
    def open(self, columns: Formats) -> Iterator[Callable[[DockedLigands], None]]:
        """Yield a function that writes docked ligands, in the order of the input.

        columns: of the table of scores

        The files get their names when the block ends without an error.
        """
        skipped: list[Skipped] = []
        scores, errors = tables_beside(self.poses)
        with compressed_output(self.poses) as poses:
            with score_output(self.scores or scores, columns) as write_scores:
                written = 0

                def write(docked: DockedLigands) -> None:
                    nonlocal written
                    poses.write(_framed(docked.pose_texts, self.format, written + 1))
                    written += len(docked.pose_texts)
                    write_scores(docked.rows)
                    skipped.extend(docked.skipped)

                yield write
            write_errors(errors, skipped)


def _framed(texts: Sequence[bytes], fmt: str, number: int) -> bytes:
    """Return the poses as one text; in some formats as models with numbers from `number` on."""
    if not FORMATS[fmt].has_models:
        return b"".join(texts)
    return b"".join(b"MODEL %8d\n%bENDMDL\n" % (k, text) for k, text in enumerate(texts, number))


def tables_beside(path: str | None) -> tuple[str | None, str]:
    """Return the tables of scores and of skipped ligands that belong to poses.

    They have the name of their file with other suffixes. Poses on standard output have no table of
    scores, and their table of skipped ligands is in the current directory.
    """
    if path is None or path in STDOUT:
        return None, ERRORS
    name = PurePath(path)
    if compression_of(path) != "none":
        name = name.with_suffix("")
    beside = str(name.with_suffix(""))
    return f"{beside}.{SCORES}", f"{beside}.{ERRORS}"


@contextmanager
def score_output(path: str | None, columns: Formats) -> Iterator[Callable[[PoseBatch], Any]]:
    """Open a table that gets its name when the block ends without an error; None: no table.

    It is Parquet by the suffix .parquet or .pq, else tab-separated text, compressed as the suffix
    says.
    """
    if path is None:
        yield lambda rows: None
    elif suffix_of_output(path) in PARQUET:
        schema, repeated = to_arrow([], columns).schema, ["ligand", "source"]
        with atomic_output(path) as raw, RowGroups(raw, schema, repeated) as groups:
            yield lambda rows: groups.write(to_arrow([rows], columns))
    else:
        with compressed_output(path) as text:
            text.write(header(columns).encode())
            yield lambda rows: text.write(as_tsv(rows, columns))


def write_errors(path: str, skipped: Sequence[Skipped]) -> None:
    """Write the table of skipped ligands.

    Without any, no table is written, but one that an earlier run has left becomes empty.
    """
    if not skipped and not _is_errors_table(path):
        return
    rows = [
        f"{each.path.translate(LINE_BREAKS)}\t{each.number}\t{each.ligand}\t"
        f"{one_line(spelled(each.reason))}\n"
        for each in skipped
    ]
    with atomic_output(path) as file:
        file.write("".join([SKIPPED_HEADER, *rows]).encode("utf-8", "replace"))


def _is_errors_table(path: str) -> bool:
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(SKIPPED_HEADER)) == SKIPPED_HEADER.encode()

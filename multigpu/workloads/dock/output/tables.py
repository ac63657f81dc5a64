"""Tables of a docking job: the scores of all poses, and the ligands that were skipped."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError, spelled
from multigpu.formats.storage.compressed import compressed_output
from multigpu.formats.storage.suffixes import PARQUET, suffix_of_output, uncompressed_suffix
from multigpu.formats.tables.parquet import COMPRESSED_INSIDE, RowGroups
from multigpu.workloads.dock.parts import Skipped
from multigpu.workloads.dock.rows import LINE_BREAKS, PoseBatch, header, one_line, to_arrow

OTHER_TABLES = (".csv", ".xls", ".xlsx", ".json")
SKIPPED_HEADER = "file\trecord\tligand\treason\n"

# Takes rows, and the same as lines of text where the table is text.
WriteScores = Callable[[PoseBatch, bytes], Any]


def is_parquet(path: str) -> bool:
    return suffix_of_output(path) in PARQUET


def check_scores(path: str | None) -> None:
    """Raise UsageError for a name of another format, or of Parquet and another compression."""
    if path is not None and uncompressed_suffix(path) in OTHER_TABLES:
        raise UsageError(f"{path}: tables of scores are .tsv or .parquet")
    if path is not None and not is_parquet(path) and uncompressed_suffix(path) in PARQUET:
        raise UsageError(f"{path}: {COMPRESSED_INSIDE}")


@contextmanager
def score_output(path: str | None, energies: bool) -> Iterator[WriteScores]:
    """Open a table that gets its name when the block ends without an error; None: no table.

    energies: whether it has columns of energies

    It is Parquet by the suffix .parquet or .pq, else tab-separated text, compressed as the suffix
    says.
    """
    if path is None:
        yield lambda rows, lines: None
    elif is_parquet(path):
        schema, repeated = to_arrow([], energies).schema, ["ligand", "source"]
        with atomic_output(path) as raw, RowGroups(raw, schema, repeated) as groups:
            yield lambda rows, lines: groups.write(to_arrow([rows], energies))
    else:
        with compressed_output(path) as text:
            text.write(header(energies).encode())
            yield lambda rows, lines: text.write(lines)


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


def check_errors_path(path: str) -> None:
    """Raise UsageError where a file that is no table of skipped ligands would be replaced."""
    if Path(path).exists() and not _is_errors_table(path):
        raise UsageError(f"{path} exists and is no table of skipped ligands: move it")


def _is_errors_table(path: str) -> bool:
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(SKIPPED_HEADER)) == SKIPPED_HEADER.encode()

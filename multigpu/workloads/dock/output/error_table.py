"""Table of the ligands that were skipped, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError
from multigpu.workloads.dock.output.score_table import LINE_BREAKS

COLUMNS = ("file", "record", "ligand", "reason")
HEADER = "\t".join(COLUMNS) + "\n"


@dataclass(frozen=True)
class Skipped:
    """A ligand that was not docked, and the reason. number: of the record in its file, from 1."""

    path: str
    number: int
    ligand: str
    reason: str


def write_errors(path: str, skipped: Sequence[Skipped]) -> None:
    """Write the table of skipped ligands.

    Without any, no table is written, but one that an earlier run has left becomes empty.
    """
    if not skipped and not _is_errors_table(path):
        return
    rows = [
        f"{each.path.translate(LINE_BREAKS)}\t{each.number}\t{each.ligand}\t"
        f"{one_line(each.reason)}\n"
        for each in skipped
    ]
    with atomic_output(path) as file:
        file.write("".join([HEADER, *rows]).encode("utf-8", "replace"))


def check_errors_path(path: str) -> None:
    """Raise UsageError where a file that is no table of skipped ligands would be replaced."""
    if Path(path).exists() and not _is_errors_table(path):
        raise UsageError(f"{path} exists and is no table of skipped ligands: move it")


def _is_errors_table(path: str) -> bool:
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(HEADER)) == HEADER.encode()


def one_line(text: str) -> str:
    """Return text without tabs and line breaks."""
    return " ".join(text.split())

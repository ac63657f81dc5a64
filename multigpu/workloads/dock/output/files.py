"""All files that a docking job writes: checked before it runs, written while it runs."""

import filecmp
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from multigpu.cluster.engine.journal import journal_of
from multigpu.cluster.files import (
    STDOUT,
    check_output,
    failures_named,
    folder_beside,
    is_replaced,
    replace_folder,
    sync_directory,
)
from multigpu.errors import Failure, UsageError
from multigpu.formats.molecules.poses import SAME, format_of
from multigpu.formats.molecules.registry import FORMATS, SUFFIXES
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.storage.compressed import Compressed, compressed_output, compression_of
from multigpu.workloads.dock.output.tables import (
    check_errors_path,
    check_scores,
    is_parquet,
    score_output,
    write_errors,
)
from multigpu.workloads.dock.parts import DockedLigands, Skipped

UNSAFE = re.compile(r"[^\w.+-]")
SCORES, ERRORS = "scores.tsv", "errors.tsv"
LONGEST_NAME, MOST_BYTES = 100, 200  # characters and bytes of a ligand's name in a file name


@dataclass(frozen=True, slots=True, kw_only=True)
class DockFiles:
    """Paths of the poses, their tables and the report.

    poses   file, or directory with a file for each ligand; None: standard output
    scores  table of scores; None: beside the poses
    report  HTML page, or None
    """

    poses: str | None
    scores: str | None
    report: str | None

    @property
    def format(self) -> str:
        """Format of the poses. Raises UsageError for an unknown suffix."""
        return pose_format(self.poses)

    @property
    def score_lines(self) -> bool:
        """Whether the table of scores is text; there is none beside standard output."""
        if self.scores is not None:
            return not is_parquet(self.scores)
        return self.poses not in (None, *STDOUT)

    def check(self, resume: bool) -> None:
        """Raise UsageError for files that cannot be written.

        resume: whether the job continues an interrupted run, which may have published a directory
        """
        pose_format(self.poses)
        # A folder of somebody's ligands is not that of an earlier run: that left its scores, too.
        table = self.scores or tables_beside(self.poses)[0]
        is_left = table in (None, *STDOUT) or Path(str(table)).exists()
        check_poses(self.poses, resume and is_left)
        check_scores(self.scores)
        check_output(self.scores)
        check_output(self.report)
        if self.scores in STDOUT and self.poses in (None, *STDOUT):
            raise UsageError("poses and scores would both go to standard output: name a file")
        if not is_folder(self.poses):
            check_errors_path(tables_beside(self.poses)[1])

    def check_not_in_folder(self, *others: str | None) -> None:
        """Raise UsageError for a file in the directory of the poses.

        The directory gets its name when all poses are there, so no file can be in it before.
        """
        if self.poses is None or not is_folder(self.poses):
            return
        for path in filter(None, others):
            if Path(self.poses).resolve() in Path(path).resolve().parents:
                raise UsageError(
                    f"{path} lies inside the output directory {self.poses}: choose another place"
                )

    @property
    def paths(self) -> list[str | None]:
        """All files, without those inside of a directory of poses."""
        if is_folder(self.poses):
            return [self.poses, self.scores, self.report]
        scores, errors = tables_beside(self.poses)
        return [self.poses, self.scores or scores, errors, self.report]

    @contextmanager
    def open(self, energies: bool = False) -> Iterator[Callable[[DockedLigands], None]]:
        """Yield a function that writes docked ligands, in the order of the input.

        energies: whether the table of scores has columns of them

        The files get their names when the block ends without an error.
        """
        skipped: list[Skipped] = []
        with pose_output(self.poses) as poses:
            with score_output(self.scores or poses.scores, energies) as write_scores:

                def write(docked: DockedLigands) -> None:
                    poses.write(docked)
                    write_scores(docked.rows, docked.score_lines)
                    skipped.extend(docked.skipped)

                yield write
            write_errors(poses.errors, skipped)


# ---- poses: one file, or a directory with one for each ligand ---------------------------------


def pose_format(path: str | None) -> str:
    """Return the format of poses; `SAME` for a directory. Raises UsageError for other suffixes."""
    if path is None or path in STDOUT:
        return SDF.name
    return SAME if is_folder(path) else format_of(path)


def is_folder(path: str | None) -> bool:
    """Whether poses go to a directory, with a file for each ligand."""
    if path is None:
        return False
    with failures_named(path, UsageError):
        return path.endswith("/") or Path(path).is_dir()


def pose_journal(path: str | None) -> Path | None:
    """Return the journal of a run that writes these poses; None for pipes and devices."""
    if path is None or not (is_folder(path) or is_replaced(path)):
        return None
    return journal_of(path.rstrip("/"))


def check_poses(path: str | None, resume: bool = False) -> None:
    """Raise UsageError where poses cannot be written.

    resume: whether the run continues an interrupted one, which may have published its directory,
            or repeats one that has finished, whose poses stay if they are the same
    """
    if path is None or not is_folder(path):
        check_output(path)
        return
    folder = Path(path)
    if _is_filled(folder) and not (resume and _has_only_poses(folder)):
        raise UsageError(f"{path}: the directory is not empty: name a new one for the poses")
    parent = folder.resolve().parent
    if not parent.is_dir():
        raise UsageError(f"{path}: there is no directory {parent}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: no permission to write in {parent}")
    if folder.is_mount():
        raise UsageError(f"{path}: a mount point cannot be replaced: name a directory in it")


def tables_beside(path: str | None) -> tuple[str | None, str]:
    """Return the tables of scores and of skipped ligands that belong to poses.

    They have the name of their file with other suffixes, or are in their directory. Poses on
    standard output have no table of scores, and their table of skipped ligands is in the current
    directory.
    """
    if path is None or path in STDOUT:
        return None, ERRORS
    name = PurePath(path)
    if is_folder(path):
        return str(name / SCORES), str(name / ERRORS)
    if compression_of(path) != "none":
        name = name.with_suffix("")
    beside = str(name.with_suffix(""))
    return f"{beside}.{SCORES}", f"{beside}.{ERRORS}"


@contextmanager
def pose_output(path: str | None) -> Iterator["PoseFile | PoseFolder"]:
    """Open a file or directory that gets its name when the block ends without an error."""
    fmt = pose_format(path)
    if path is not None and is_folder(path):
        with _replacing_folder(path) as part:
            yield PoseFolder(part, path)
        return
    with compressed_output(path) as out:
        yield PoseFile(out, fmt, path)


class PoseFile:
    """One file with the poses of all ligands."""

    def __init__(self, out: Compressed, fmt: str, path: str | None) -> None:
        self._out, self._fmt, self._count = out, fmt, 0
        self.scores, self.errors = tables_beside(path)

    def write(self, docked: DockedLigands) -> None:
        texts = docked.pose_texts.each()
        self._out.write(_framed(texts, self._fmt, self._count + 1))
        self._count += len(texts)


class PoseFolder:
    """A directory with a file for each ligand."""

    def __init__(self, folder: Path, target: str) -> None:
        self._folder, self._target = folder, target
        self.scores, self.errors = str(folder / SCORES), str(folder / ERRORS)
        # Names in use, each with the last number that was tried for it.
        self._taken: dict[str, int] = {"scores": 1, "errors": 1}

    def write(self, docked: DockedLigands) -> None:
        texts = docked.pose_texts.each()
        begins = np.flatnonzero(docked.rows.pose == 1).tolist()
        ends = [*begins, len(texts)][1:]  # a part may have no ligand that was docked
        for begin, end, layout in zip(begins, ends, docked.layouts, strict=True):
            path = self._folder / f"{self._unique(docked.rows.ligand[begin])}.{layout}"
            with failures_named(self._target):
                path.write_bytes(_framed(texts[begin:end], layout, 1))

    def _unique(self, name: str) -> str:
        """Return a file name that no other ligand has, whatever the file system."""
        letters = UNSAFE.sub("_", name)[:LONGEST_NAME].encode()[:MOST_BYTES]
        safe = letters.decode("utf-8", "ignore").lstrip(".") or "ligand"
        unique, number = safe, self._taken.get(safe.lower(), 1)
        while unique.lower() in self._taken:
            number += 1
            unique = f"{safe}_{number}"
        self._taken[safe.lower()] = number
        self._taken.setdefault(unique.lower(), 1)
        return unique


def _framed(texts: Sequence[bytes], fmt: str, number: int) -> bytes:
    """Return the poses as one text; in some formats as models with numbers from `number` on."""
    if not FORMATS[fmt].has_models:
        return b"".join(texts)
    return b"".join(b"MODEL %8d\n%bENDMDL\n" % (k, text) for k, text in enumerate(texts, number))


@contextmanager
def _replacing_folder(path: str) -> Iterator[Path]:
    """Yield a directory beside the target, which takes the target's name at the end.

    The target is empty or not there, or it has the same files already, because an earlier run was
    interrupted after it had published them.
    """
    target = Path(path).resolve()
    with folder_beside(path) as part:
        yield part
        with failures_named(path):
            if _is_filled(target):
                _check_same(part, target, path)
                sync_directory(target.parent)  # before the journal is removed
            else:
                replace_folder(part, target)


def _is_filled(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _has_only_poses(folder: Path) -> bool:
    """Whether a directory may be that of an earlier run: what is in it is called like poses."""
    names = [entry.name for entry in folder.iterdir()]
    return all(PurePath(name).suffix in SUFFIXES or name in (SCORES, ERRORS) for name in names)


def _check_same(part: Path, target: Path, path: str) -> None:
    """Raise Failure where the directories differ; the run can be resumed after that."""
    names = [entry.name for entry in part.iterdir()]
    unknown = {entry.name for entry in target.iterdir()} - set(names)
    _, differing, missing = filecmp.cmpfiles(part, target, names, shallow=False)
    if wrong := sorted([*unknown, *differing, *missing]):
        raise Failure(
            f"{path}: the directory is not empty, and {wrong[0]} is not what this run writes: empty"
            " it and resume"
        )

"""All files that a docking job writes: checked before it runs, written while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from multigpu.cluster.engine.output import STDOUT, check_output
from multigpu.dock.output.error_table import Skipped, check_errors_path, write_errors
from multigpu.dock.output.pose_files import (
    ERRORS,
    PoseFile,
    PoseFolder,
    check_poses,
    is_folder,
    pose_format,
    pose_journal,
    pose_output,
    tables_beside,
)
from multigpu.dock.output.score_table import (
    WriteScores,
    check_scores,
    is_parquet,
    score_output,
)
from multigpu.dock.work import DockedLigands
from multigpu.errors import UsageError


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

    @property
    def journal(self) -> Path | None:
        """Journal of a job that writes these files; None where it cannot be resumed."""
        return pose_journal(self.poses)

    @property
    def errors(self) -> str:
        """Table of skipped ligands."""
        if self._in_folder:
            return str(PurePath(self.poses or "") / ERRORS)
        return tables_beside(self.poses)[1]

    @property
    def _in_folder(self) -> bool:
        return self.poses is not None and is_folder(self.poses)

    def check(self, resume: bool) -> None:
        """Raise UsageError for files that cannot be written.

        resume: whether the job continues an interrupted run, which may have published a directory
        """
        pose_format(self.poses)
        check_poses(self.poses, resume)
        check_scores(self.scores)
        check_output(self.scores)
        check_output(self.report)
        if self.scores in STDOUT and self.poses in (None, *STDOUT):
            raise UsageError("poses and scores would both go to standard output: name a file")
        if not self._in_folder:
            check_errors_path(self.errors)

    def check_not_in_folder(self, *others: str | None) -> None:
        """Raise UsageError for a file in the directory of the poses.

        The directory gets its name when all poses are there, so no file can be in it before.
        """
        if self.poses is None or not self._in_folder:
            return
        for path in filter(None, others):
            if Path(self.poses).resolve() in Path(path).resolve().parents:
                raise UsageError(
                    f"{path}: {self.poses} appears when all poses are there: name it elsewhere"
                )

    @property
    def paths(self) -> list[str | None]:
        """All files, without those inside of a directory of poses."""
        if self._in_folder:
            return [self.poses, self.scores, self.report]
        scores, errors = tables_beside(self.poses)
        return [self.poses, self.scores or scores, errors, self.report]

    @contextmanager
    def open(self) -> Iterator["DockWriter"]:
        """Open the files, which get their names when the block ends without an error."""
        with pose_output(self.poses) as poses:
            with score_output(self.scores or poses.scores) as write_scores:
                writer = DockWriter(poses, write_scores)
                yield writer
            write_errors(poses.errors, writer.skipped)


class DockWriter:
    """Files of a job that are being written, in the order of the input."""

    def __init__(self, poses: PoseFile | PoseFolder, write_scores: WriteScores) -> None:
        self._poses, self._write_scores = poses, write_scores
        self.skipped: list[Skipped] = []

    def write(self, docked: DockedLigands) -> None:
        """Write the poses and scores of some ligands."""
        self._poses.write(docked.names, docked.layouts, docked.pose_counts, docked.pose_texts)
        self._write_scores(docked.rows, docked.score_lines)
        self.skipped += docked.skipped

"""Docking from Python."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multigpu.formats.molecules.pockets import Pocket
from multigpu.run.declarations import function_of
from multigpu.run.options import RunOptions
from multigpu.workloads.dock.job import DockJob
from multigpu.workloads.dock.options import PocketRequest
from multigpu.workloads.dock.parts import Skipped
from multigpu.workloads.dock.pocket import make_pocket
from multigpu.workloads.dock.request import DockRequest
from multigpu.workloads.dock.rows import PoseBatch, to_arrow

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


class DockResult:
    """The poses of a docking job, computed as they are taken; they can be taken once.

    After that `skipped` has the ligands that could not be docked. Raises UsageError where the poses
    were taken already.
    """

    def __init__(self, job: DockJob) -> None:
        self._job = job

    def __repr__(self) -> str:
        return (
            f"<DockResult: {len(self._job.sources):,} ligand files;"
            " iterate over it, or call to_table()>"
        )

    @property
    def skipped(self) -> list[Skipped]:
        """Ligands that could not be docked, with the reasons."""
        return self._job.stats.skipped

    def __iter__(self) -> Iterator[PoseBatch]:
        """Return batches in the order of the input; `ligand_index` counts through all of it."""
        self._job.take_once("poses", "multigpu.dock")
        return self._batches()

    def _batches(self) -> Iterator[PoseBatch]:
        with self._job.keep_journal():
            for docked in self._job.parts():
                yield docked.rows

    def to_table(self) -> "pa.Table":
        """Return all poses as a pyarrow table with the columns of the table of scores."""
        return to_arrow(list(self), self._job.columns)

    def to_pandas(self) -> "pd.DataFrame":
        """Return all poses as a pandas frame with the columns of the table of scores."""
        return self.to_table().to_pandas()


@function_of(DockRequest)
def dock(request: DockRequest) -> DockResult:
    """Return the best poses of every ligand in a pocket.

    {options}

    Raises UsageError and InputError here for wrong options, a wrong pocket and wrong beginnings of
    files, and from the iteration for what shows later.
    """
    return DockResult(DockJob(request, client=request.client, journal=request.journal_path))


@function_of(PocketRequest)
def pocket(request: PocketRequest) -> Pocket:
    """Return the maps of a receptor, which `multigpu.write_pocket` writes for `dock`.

    {options}

    Raises UsageError for a box that cannot be or misses the receptor, InputError for what is wrong
    with the receptor or the ligand of the box.
    """
    return make_pocket(request, RunOptions(gpus=request.gpus).devices())

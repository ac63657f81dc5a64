"""Docking from Python."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from multigpu.formats.molecules.pockets import Vector
from multigpu.formats.tables.batch import PoseBatch
from multigpu.run.job import Paths, journal_path, path_list
from multigpu.run.keywords import parameters_named, run_options
from multigpu.run.values import path_of
from multigpu.workloads.dock.job import DockJob
from multigpu.workloads.dock.options import DockOptions
from multigpu.workloads.dock.output.error_table import Skipped
from multigpu.workloads.dock.output.score_table import to_arrow
from multigpu.workloads.dock.request import DockRequest

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
        with parameters_named(), self._job.keep_journal():
            for docked in self._job.parts():
                yield docked.rows

    def to_table(self) -> "pa.Table":
        """Return all poses as a pyarrow table with the columns of the table of scores."""
        return to_arrow(list(self))

    def to_pandas(self) -> "pd.DataFrame":
        """Return all poses as a pandas frame with the columns of the table of scores."""
        return self.to_table().to_pandas()


@parameters_named()
def dock(
    ligands: Paths,
    pocket: str | os.PathLike[str],
    *,
    gpus: str | int | Sequence[str | int] = "auto",
    client: Any = None,
    journal: str | os.PathLike[str] | None = None,
    origin: Vector | None = None,
    spacing: float | None = None,
    precision: float | None = None,
    rotations: int | None = None,
    rotation_file: str | os.PathLike[str] | None = None,
    center: Vector | None = None,
    interpolation: Any = "linear",
    outside: Any = None,
    top: int = 1,
    min_rmsd: float = 1.0,
    translations: tuple[float, float] | None = None,
    on_error: Any = "skip",
    allow_flat: bool = False,
    fragments: Any = "largest",
    **run: Any,
) -> DockResult:
    """Return the best poses of every ligand in a pocket.

    ligands          files, directories, patterns, URLs: SDF, MOL2, PDB, PDBQT, XYZ
    pocket           .maps.fld of AutoGrid, OpenDX, MRC or CCP4, .npy or .npz
    gpus             auto, all, none, or numbers and UUIDs as in `--gpus`, or a list
    client           a `dask.distributed.Client` to use instead of this machine
    journal          a file that keeps what is finished until all poses were taken; with
                     `resume=True` an interrupted run is resumed from it
    origin, spacing  of a NumPy grid, Å: value [ix, iy, iz] at origin + spacing (ix, iy, iz)
    precision        degrees between neighbouring angles, 10 by default
    rotations        number of rotations, spread evenly, instead of angles
    rotation_file    file of quaternions w x y z, one a line, instead of angles
    center           position of every ligand's centroid, Å; by default ligands stay where they are
    interpolation    "linear" or "nearest"
    outside          what atoms outside of the grid score: "clamp", "zero" or "penalty"; by default
                     "penalty" in maps of AutoGrid, "clamp" in other grids
    top              poses of each ligand
    min_rmsd         smallest distance between two poses of a ligand, Å
    translations     radius and step of a cube of shifts to search as well, Å
    on_error         what happens when a ligand cannot be docked: "skip" or "stop"
    allow_flat       whether drawings in two dimensions are docked as they are
    fragments        what happens with salts and hydrates: "largest", their largest part is docked,
                     or "skip"
    run              the other fields of `multigpu.run.options.RunOptions`, and `workers`: worker
                     processes on this machine

    Raises UsageError and InputError here for wrong options, a wrong pocket and wrong beginnings of
    files, and from the iteration for what shows later.
    """
    quaternions = None if rotation_file is None else path_of("rotation_file", rotation_file)
    options = DockOptions(
        precision=precision,
        rotations=rotations,
        rotation_file=quaternions,
        center=center,
        interpolation=interpolation,
        outside=outside,
        top=top,
        min_rmsd=min_rmsd,
        translations=translations,
        on_error=on_error,
        allow_flat=allow_flat,
        fragments=fragments,
    )
    request = DockRequest(
        ligands=path_list(ligands, "ligands"),
        pocket=path_of("pocket", pocket),
        origin=origin,
        spacing=spacing,
        options=options,
        run=run_options(dock, {"gpus": gpus, **run}),
    )
    return DockResult(DockJob(request, client=client, journal=journal_path(journal)))

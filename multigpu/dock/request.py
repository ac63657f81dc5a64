"""Request for a docking job, by the command line or by Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from multigpu.dock.options import DockOptions, docking_lanes
from multigpu.formats.molecules.ligands import LIGANDS
from multigpu.formats.molecules.pockets import Vector
from multigpu.formats.storage.sources import check_stdin, expand, plain_bytes
from multigpu.run.options import Lanes, RunOptions

COMPRESSION = 4  # bytes of text in a byte of a compressed file, about


@dataclass(frozen=True, kw_only=True)
class DockRequest:
    """Everything that a docking job is asked for.

    ligands          files, URLs and "-", after directories and patterns were expanded
    pocket           file of the score grid
    origin, spacing  of a NumPy grid, Å; None: as the file says
    options          what is computed
    run              where and how
    """

    ligands: tuple[str, ...]
    pocket: str
    origin: Vector | None
    spacing: float | None
    options: DockOptions
    run: RunOptions

    @cached_property
    def lanes(self) -> Lanes:
        """Lanes of the job, by the size of its input."""
        return docking_lanes(self.options, plain_bytes(self.ligands, LIGANDS, COMPRESSION))

    @property
    def paths(self) -> list[str]:
        """All files that the job reads."""
        rotations = self.options.rotation_file
        return [*self.ligands, self.pocket, *([] if rotations is None else [rotations])]


def dock_request(
    ligands: Sequence[str],
    pocket: str,
    *,
    options: DockOptions,
    run: RunOptions,
    origin: Vector | None = None,
    spacing: float | None = None,
) -> DockRequest:
    """Return the request for ligands given as files, directories, patterns, URLs and "-".

    Raises InputError where one is missing, unreadable or stands for nothing, or where standard
    input is given twice.
    """
    check_stdin([*ligands, options.rotation_file])
    return DockRequest(
        ligands=tuple(expand(ligands, LIGANDS)),
        pocket=pocket,
        origin=origin,
        spacing=spacing,
        options=options,
        run=run,
    )

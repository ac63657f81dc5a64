"""Request for a docking job, by the command line or by Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from multigpu.formats.molecules.ligands import LIGANDS
from multigpu.formats.molecules.pockets import Vector
from multigpu.formats.storage.sources import check_stdin, expand, plain_bytes
from multigpu.run.options import GpuLanes, RunOptions
from multigpu.workloads.dock.options import DockOptions, docking_lanes

COMPRESSION = 4  # bytes of text in a byte of a compressed file, about


@dataclass(frozen=True, kw_only=True)
class DockRequest:
    """Everything that a docking job is asked for.

    ligands          files, directories, patterns, URLs and "-", which become the files and URLs
                     that they stand for
    pocket           file of the score grid
    origin, spacing  of a NumPy grid, Å; None: as the file says
    options          what is computed
    run              where and how

    Raises InputError for ligands that are missing, unreadable or stand for nothing, and where
    standard input is given twice.
    """

    ligands: Sequence[str]
    pocket: str
    options: DockOptions
    run: RunOptions
    origin: Vector | None = None
    spacing: float | None = None

    def __post_init__(self) -> None:
        check_stdin([*self.ligands, self.options.rotation_file])
        object.__setattr__(self, "ligands", tuple(expand(self.ligands, LIGANDS)))

    @cached_property
    def lanes(self) -> GpuLanes:
        """Lanes of the job, by the size of its input."""
        return docking_lanes(self.options, plain_bytes(self.ligands, LIGANDS, COMPRESSION))

    @property
    def paths(self) -> list[str]:
        """All files that the job reads."""
        rotations = self.options.rotation_file
        return [*self.ligands, self.pocket, *([] if rotations is None else [rotations])]

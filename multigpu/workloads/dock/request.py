"""Request for a docking job, by the command line or by Python."""

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from multigpu.formats.storage.input_paths import check_stdin, expand, plain_bytes
from multigpu.run.declarations import declaration, declare
from multigpu.run.options import GpuLanes, Request, Resumable
from multigpu.run.values import FilePath, Paths, Vector, path_list
from multigpu.workloads.dock.options import DockOptions, docking_lanes

if TYPE_CHECKING:
    from multigpu.formats.storage.sources import FileKind

COMPRESSION = 4  # bytes of text in a byte of a compressed file, about


@dataclass(frozen=True)
class DockRequest(DockOptions, Resumable, Request, group="Input"):
    """Everything that a docking job is asked for.

    Raises InputError for ligands that are missing, unreadable or stand for nothing, and where
    standard input is given twice.
    """

    ligands: Paths = field(metadata=declaration(
        "SDF, MOL2, PDB, PDBQT, XYZ or SMILES files, directories, patterns or URLs.", argument=True,
        required=True,
    ))  # fmt: skip
    pocket: FilePath = field(metadata=declaration(
        "Score grid of the pocket: AutoGrid .maps.fld, OpenDX, MRC/CCP4, NumPy .npy or .npz.",
        required=True,
    ))  # fmt: skip
    _: KW_ONLY
    reference: FilePath | None = declare(
        None, "Molecule in its known pose, as of a crystal: RMSD of poses to it."
    )
    origin: Vector | None = declare(
        None, "Coordinates of the first point of a NumPy grid, Å.", default="as the file says",
        example="-12.5,4,30.25",
    )  # fmt: skip
    spacing: float | None = declare(
        None, "Distance between points of a NumPy grid, Å.", "S", default="as the file says"
    )

    def check(self) -> None:
        super().check()
        rotations = None if self.rotation_file is None else str(self.rotation_file)
        check_stdin([*path_list(self.ligands, "ligands"), rotations])

    @property
    def options(self) -> DockOptions:
        """Options that decide the result."""
        return self.part(DockOptions)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Files and URLs that the ligands stand for."""
        return tuple(expand(path_list(self.ligands, "ligands"), self.kind))

    @property
    def kind(self) -> "FileKind":
        """Kind of files that are ligands: SMILES only where conformers are made."""
        from multigpu.formats.molecules.ligands import LIGANDS, MOLECULES

        return MOLECULES if self.conformers else LIGANDS

    @cached_property
    def lanes(self) -> GpuLanes:
        """Lanes of the job, by the size of its input."""
        whole = self.is_whole_box(str(self.pocket).endswith(".fld"))
        return docking_lanes(self.options, whole, plain_bytes(self.files, COMPRESSION))

    @property
    def paths(self) -> list[str]:
        """All files that the job reads."""
        others = (self.pocket, self.rotation_file, self.reference)
        return [*self.files, *(str(path) for path in others if path is not None)]

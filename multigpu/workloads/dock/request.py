"""Request for a docking job, by the command line or by Python."""

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

from multigpu.formats.storage.input_paths import check_stdin, expand, plain_bytes
from multigpu.run.declarations import declaration, declare
from multigpu.run.options import GpuLanes, Request, Resumable
from multigpu.run.values import FilePath, Paths, Vector, path_list
from multigpu.workloads.dock.options import DockOptions, docking_lanes

COMPRESSION = 4  # bytes of text in a byte of a compressed file, about


@dataclass(frozen=True)
class DockRequest(DockOptions, Resumable, Request, group="Input"):
    """Everything that a docking job is asked for.

    Raises InputError for ligands that are missing, unreadable or stand for nothing, and where
    standard input is given twice.
    """

    ligands: Paths = field(metadata=declaration(
        "SDF, MOL2, PDB, PDBQT or XYZ files, directories, patterns or URLs.", argument=True,
        required=True,
    ))  # fmt: skip
    pocket: FilePath = field(metadata=declaration(
        "Score grid of the pocket: AutoGrid .maps.fld, OpenDX, MRC/CCP4, NumPy .npy or .npz.",
        required=True,
    ))  # fmt: skip
    _: KW_ONLY
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
        from multigpu.formats.molecules.ligands import LIGANDS

        return tuple(expand(path_list(self.ligands, "ligands"), LIGANDS))

    @cached_property
    def lanes(self) -> GpuLanes:
        """Lanes of the job, by the size of its input."""
        whole = self.is_whole_box(str(self.pocket).endswith(".fld"))
        return docking_lanes(self.options, whole, plain_bytes(self.files, COMPRESSION))

    @property
    def paths(self) -> list[str]:
        """All files that the job reads."""
        others = [str(path) for path in (self.pocket, self.rotation_file) if path is not None]
        return [*self.files, *others]

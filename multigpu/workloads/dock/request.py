"""Request for a docking job, by the command line or by Python."""

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from multigpu.errors import UsageError, option
from multigpu.formats.storage.input_paths import check_stdin, expand, plain_bytes
from multigpu.run.declarations import declaration, declare
from multigpu.run.options import GpuLanes, Request, Resumable
from multigpu.run.values import FilePath, Paths, PocketPath, Vector, path_list
from multigpu.workloads.dock.options import (
    IN_PLACE,
    SPACING,
    DockOptions,
    MapOptions,
    docking_lanes,
)

if TYPE_CHECKING:
    from multigpu.formats.storage.sources import FileKind

COMPRESSION = 4  # bytes of text in a byte of a compressed file, about


@dataclass(frozen=True)
class DockRequest(DockOptions, MapOptions, Resumable, Request, group="Input"):
    """Everything that a docking job is asked for.

    Raises InputError for ligands that are missing, unreadable or stand for nothing, and where
    standard input is given twice.
    """

    ligands: Paths = field(metadata=declaration(
        "SDF, MOL2, PDB, PDBQT, DLG, XYZ or SMILES files, directories, patterns or URLs.",
        argument=True,
        required=True,
    ))  # fmt: skip
    pocket: PocketPath | None = declare(
        None, "Score grid of the pocket: AutoGrid .maps.fld, OpenDX, MRC/CCP4, NumPy .npy or .npz."
    )
    _: KW_ONLY
    reference: FilePath | None = declare(
        None, "Molecule in its known pose, as of a crystal: RMSD of poses to it."
    )
    receptor: FilePath | None = declare(
        None, f"Receptor, instead of {option('pocket')}: PDBQT, or PDB or mmCIF, which Meeko"
        f" prepares. Its maps are made in a box ({option('autobox')} or {option('box')}).",
        group="Pocket",
    )  # fmt: skip
    origin: Vector | None = declare(
        None, "Coordinates of the first point of a NumPy grid, Å.", default="as the file says",
        example="-12.5,4,30.25",
    )  # fmt: skip
    spacing: float | None = declare(
        None, "Distance between points of a NumPy grid, or of a receptor's maps, Å.", "S",
        unit=" Å", above=0, default=f"as the file says; {SPACING:g} for a receptor",
    )  # fmt: skip

    def check(self) -> None:
        super().check()
        self._check_pocket()
        check_stdin([*path_list(self.ligands, "ligands"), *self._other_paths])

    def _check_pocket(self) -> None:
        """Raise UsageError where it is not clear which pocket is meant."""
        one, other = option("pocket"), option("receptor")
        if (self.pocket is None) == (self.receptor is None):
            raise UsageError(f"give {one}, or {other} with the box of its maps: one of them")
        if self.receptor is None:
            unused = [name for name in ("autobox", "scoring", "all_types") if getattr(self, name)]
            if unused:
                raise UsageError(f"{option(unused[0])} has no effect without {other}")
            return
        if (self.box is None) == (self.autobox is None):
            raise UsageError(f"{other}: give {option('box')} or {option('autobox')}, one of them")
        others = [name for name in (*IN_PLACE, "origin") if getattr(self, name)]
        if others:
            how = "`multigpu pocket` makes maps for other searches"
            raise UsageError(f"{other} searches the whole box, {option(others[0])} not: {how}")

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
        whole = self.is_whole_box(str(self.pocket).endswith(".fld"), self.receptor is not None)
        return docking_lanes(self.options, whole, plain_bytes(self.files, COMPRESSION))

    @property
    def paths(self) -> list[str]:
        """All files that the job reads."""
        return [*self.files, *self._other_paths]

    @property
    def _other_paths(self) -> list[str]:
        paths = (self.pocket, self.receptor, self.autobox, self.rotation_file, self.reference)
        return [str(path) for path in paths if path is not None]

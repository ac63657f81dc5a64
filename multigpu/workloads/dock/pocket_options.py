"""Options of pockets that are made of receptors."""

import re
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from multigpu.errors import UsageError, option
from multigpu.run.declarations import Options, declaration, declare
from multigpu.run.options import GPUS_HELP
from multigpu.run.values import Box, FilePath, Gpus, NameList, TextPath

PAIR = re.compile("[^=]+=[^=]+")
SPACING, PADDING = 0.375, 5.0  # Å, of the points of maps, and of a box around a ligand


@dataclass(frozen=True, kw_only=True)
class MapOptions(Options, group="Pocket"):
    """Options of the maps that are made of a receptor."""

    autobox: FilePath | None = declare(
        None, "File with a ligand around which the box of a receptor's maps lies."
    )
    padding: float | None = declare(
        None, f"Distance from the ligand of {option('autobox')} to the sides of the box, Å.",
        "D", unit=" Å", at_least=0, default=f"{PADDING:g}",
    )  # fmt: skip
    scoring: Literal["autodock4", "vina"] | None = declare(
        None, "Scoring function of a receptor's maps: AutoDock 4's or Vina's.",
        default="autodock4",
    )  # fmt: skip
    all_types: bool = declare(
        False, "Make maps of all atom types of the scoring function.",
        default="those of organic ligands",
    )  # fmt: skip
    type_as: NameList = declare(
        (), "Take atom type B as C, in ligands and in receptors.", "B=C,…", flag="type"
    )

    def check(self) -> None:
        super().check()
        if self.padding is not None and self.autobox is None:
            raise UsageError(f"{option('padding')} has no effect without {option('autobox')}")
        if wrong := [each for each in self.type_as if not PAIR.fullmatch(each)]:
            form = "expected TYPE=OTHER, e.g. B=C or Si=C,Se=S"
            raise UsageError(f"{option('type_as')} {wrong[0]}: {form}")

    @property
    def other_types(self) -> dict[str, str]:
        """Atom types that are taken as others, by their names."""
        return dict(each.split("=") for each in self.type_as)


@dataclass(frozen=True)
class PocketRequest(MapOptions, group="Pocket"):
    """Everything that the maps of a receptor are made of."""

    receptor: FilePath = field(metadata=declaration(
        "Receptor: PDBQT; or PDB or mmCIF, which Meeko prepares.", "RECEPTOR", argument=True,
        required=True,
    ))  # fmt: skip
    _: KW_ONLY
    box: Box | None = declare(
        None, "Center and size of the box, Å, or a configuration file of Vina.",
        example="15.2,53.9,16.9 20,20,20",
    )  # fmt: skip
    spacing: float = declare(SPACING, "Distance between points, Å.", "S", unit=" Å", above=0)
    gpus: Gpus = declare("auto", GPUS_HELP, group="Devices")

    def check(self) -> None:
        super().check()
        if (self.box is None) == (self.autobox is None):
            raise UsageError(f"give {option('box')} or {option('autobox')}, one of them")


@dataclass(frozen=True, kw_only=True)
class PocketOutput(Options, group="Output"):
    """Files of a pocket, on the command line."""

    output: TextPath | None = declare(
        None, "Field file, .maps.fld; the maps are written beside it.", "OUT", short="o",
        required=True,
    )  # fmt: skip

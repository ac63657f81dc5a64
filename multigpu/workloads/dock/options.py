"""Options of docking and of the pockets of receptors, and the lanes that docking takes."""

import re
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Literal

from multigpu.cluster.deploy.deployment import WorkEstimate
from multigpu.errors import UsageError, option
from multigpu.run.declarations import Options, declaration, declare
from multigpu.run.options import GPUS_HELP, MOST, GpuLanes
from multigpu.run.values import FARTHEST, Box, FilePath, Gpus, NameList, TextPath, Vector, vector

Outside = Literal["clamp", "zero", "penalty"]
Fragments = Literal["largest", "skip"]
Refine = Literal["rigid", "none"]
GroupBy = Literal["title", "smiles"]

MOST_ROTATIONS = 100_000_000  # of a list; rotations by angles are not listed
PRECISION, LARGEST_PRECISION = 10.0, 180.0  # degrees
ROTATIONS, STEP, BAND = 10_000, 0.5, 3.0  # of the whole box: their number, Å, kcal/mol
REFINED = 50  # poses of a ligand, or more where more are wanted
WHOLE_BOX = ("box", "step", "band")  # options that ask for it
IN_PLACE = ("precision", "translations", "center", "in_place")  # that ask for another search
OTHERS = (*IN_PLACE, "rotations", "rotation_file")  # without these AutoGrid's maps are searched
MOST_CONFORMERS_MADE = 1000  # of a ligand
MOST_LANES = 4  # of a GPU; with more, its last chunks take longer
POSE_RATE = 1.2e10  # poses a second on one GPU
BOX_SECONDS = 1e-3  # that a GPU takes for the whole box of a conformer, about, and
BOX_LIGAND_SECONDS = 6e-4  # a process for all else of it: types, launches, what is written
LIGAND_BYTES = 2000  # of text, about
LIGAND_SECONDS = 1.25e-5  # that a process takes to read and write a ligand
PAIR = re.compile("[^=]+=[^=]+")
SPACING, PADDING = 0.375, 5.0  # Å, of the points of maps, and of a box around a ligand


@dataclass(frozen=True, kw_only=True)
class DockOptions(Options, group="Search"):
    """Options that decide the result of docking."""

    box: Box | None = declare(
        None, "Search the whole box: its middle and its lengths, Å, or a configuration file of"
        " Vina.", default="that of the pocket", example="15.2,53.9,16.9 20,20,20",
    )  # fmt: skip
    step: float | None = declare(
        None, "Distance between neighbouring places in the box, Å.", "STEP", unit=" Å", above=0,
        at_most=FARTHEST, default=f"{STEP:g}",
    )  # fmt: skip
    band: float | None = declare(
        None, "Take all poses of the box up to E above the best, kcal/mol; scores: below it.", "E",
        at_least=0, default=f"{BAND:g}",
    )  # fmt: skip
    refine: Refine | None = declare(
        None, "Move the best poses of the box downhill as rigid bodies, or not.",
        default="rigid for energies, else none",
    )  # fmt: skip
    in_place: bool = declare(
        False, "Only turn every ligand where it lies.", default="search the whole box of maps"
    )
    conformers: int | None = declare(
        None, "Make up to N conformers of every ligand, with hydrogens, and dock all of them.",
        at_least=1, at_most=MOST_CONFORMERS_MADE, default="those of the input",
    )  # fmt: skip
    group_by: GroupBy | None = declare(
        None, "Consecutive records that are conformers of one ligand in a whole box: those of one"
        " title, or of one SMILES.", default="title",
    )  # fmt: skip
    precision: float | None = declare(
        None, "Degrees between neighbouring angles; all three angles run through 360.", "P",
        unit="°", above=0, at_most=LARGEST_PRECISION, default=f"{PRECISION:g}",
        must=f"above 0 and at most {LARGEST_PRECISION:g} ({option('rotation_file')} of a"
        f" line 1 0 0 0 scores the ligand as it lies)",
    )  # fmt: skip
    rotations: int | None = declare(
        None, f"Number of rotations, spread evenly, instead of {option('precision')}.", at_least=1,
        default=f"{ROTATIONS:,} in a whole box",
        at_most=MOST_ROTATIONS, must=f"1 to {MOST_ROTATIONS:,} (use {option('precision')} for"
        f" more)",
    )  # fmt: skip
    rotation_file: FilePath | None = declare(
        None, f"File of quaternions w x y z, one a line, instead of {option('precision')}."
    )
    center: Vector | None = declare(
        None, "Position of every ligand's centroid, Å.", default="where the ligand is",
        example="15.2,53.9,16.9",
    )  # fmt: skip
    interpolation: Literal["linear", "nearest"] = declare(
        "linear", "How to read the grid between its points."
    )
    outside: Outside | None = declare(
        None, "Score of atoms outside of the grid: as at its border, 0, or AutoDock's penalty.",
        default="penalty for maps of atom types, else clamp",
    )  # fmt: skip
    top: int = declare(1, "Poses to write of each ligand.", "K", at_least=1)
    min_rmsd: float = declare(
        1.0, "Smallest distance between two poses of a ligand, Å.", "D", unit=" Å", at_least=0
    )
    translations: Annotated[tuple[float, float] | None, vector("R,STEP")] = declare(
        None, "Also try all shifts in steps of STEP Å, up to R Å along each axis.", example="2,0.5"
    )
    on_error: Literal["skip", "stop"] = declare(
        "skip", "What to do when a ligand cannot be docked."
    )
    allow_flat: bool = declare(
        False, "Dock drawings in two dimensions as they are.", default="skip them"
    )
    fragments: Fragments = declare(
        "largest", "Salts and hydrates: dock their largest part, or skip them."
    )

    def check(self) -> None:
        super().check()
        if (self.precision, self.rotations, self.rotation_file).count(None) < 2:
            one, two, three = map(option, ("precision", "rotations", "rotation_file"))
            raise UsageError(f"give one of {one}, {two} and {three}, not several")
        self._check_box()
        if self.center is not None and not all(-FARTHEST <= x <= FARTHEST for x in self.center):
            raise UsageError(f"the coordinates of the center must lie within ±{FARTHEST:g} Å")
        if self.translations is not None:
            radius, step = self.translations
            shown = f"{option('translations')} {radius:g},{step:g}"
            if not (0 <= radius <= FARTHEST and 0 < step <= FARTHEST):
                rule = "the radius must be 0 or more, the step above 0"
                raise UsageError(f"{shown}: {rule}, neither beyond {FARTHEST:g} Å")
            if 0 < radius < step:
                raise UsageError(f"{shown}: the radius, which comes first, is less than one step")

    def _check_box(self) -> None:
        """Raise UsageError for options of two searches."""
        given = [name for name in WHOLE_BOX if getattr(self, name) is not None]
        others = [name for name in IN_PLACE if getattr(self, name) not in (None, False)]
        if given and others:
            problem = f"{option(given[0])} searches the whole box, {option(others[0])} does not"
            raise UsageError(f"{problem}: leave out one of them")
        if self.in_place and self.center is not None:
            problem = f"{option('in_place')} leaves ligands where they are, {option('center')} not"
            raise UsageError(f"{problem}: leave out one of them")
        if self.conformers and self.group_by:
            one, two = map(option, ("conformers", "group_by"))
            raise UsageError(f"{one} makes every record a ligand, {two} joins them: give one")
        if self.refine == "rigid" and self.interpolation == "nearest":
            how = f"{option('interpolation')} nearest"
            raise UsageError(
                f"{option('refine')} rigid goes downhill step by step, and {how} has jumps only"
            )

    def is_whole_box(self, has_types: bool, is_receptor: bool = False) -> bool:
        """Whether the whole box is searched.

        has_types: whether the pocket is AutoGrid's maps; is_receptor: whether they are made here
        """
        if is_receptor or any(getattr(self, name) is not None for name in WHOLE_BOX):
            return True
        return has_types and all(getattr(self, name) in (None, False) for name in OTHERS)

    @property
    def angle_step(self) -> float:
        """Degrees between neighbouring angles, where rotations are made of angles."""
        return PRECISION if self.precision is None else self.precision

    @property
    def poses(self) -> float:
        """Estimated number of poses of a ligand; a file of rotations counts as one."""
        angles, (radius, step) = 360 / self.angle_step, self.translations or (0.0, 1.0)
        side = 1 + 2 * (radius / step)
        rotations = 1 if self.rotation_file else self.rotations or angles * angles * angles
        return rotations * side * side * side


def docking_lanes(options: DockOptions, is_whole_box: bool, text_bytes: int) -> GpuLanes:
    """Return the lanes of docking ligands with `text_bytes` of text.

    One process keeps as many GPUs busy as it reads and writes ligands for.
    """
    computing, reading = options.poses / POSE_RATE, LIGAND_SECONDS
    if is_whole_box:
        computing, reading = BOX_SECONDS, BOX_LIGAND_SECONDS
    computing *= options.conformers or 1
    busy = int(min(MOST, max(1, computing / reading)))
    seconds = text_bytes / LIGAND_BYTES * max(computing, reading)
    return GpuLanes(MOST_LANES, estimate=WorkEstimate(seconds=seconds, gpus_kept_busy=busy))


@dataclass(frozen=True, kw_only=True)
class DockOutput(Options, group="Output"):
    """Files of a docking run, on the command line."""

    output: TextPath | None = declare(
        None, "Poses: .sdf, .mol2, .pdb, .pdbqt or .xyz.", "OUT", short="o",
        default="SDF on standard output",
    )  # fmt: skip
    scores: TextPath | None = declare(
        None, "Table of scores: .tsv or .parquet.", default="beside the poses"
    )
    report: TextPath | None = declare(None, "Write a report with scores and best poses.", "HTML")


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

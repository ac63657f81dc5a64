"""Search of a docking job: the pocket as the kernels take it, and the poses that are tried."""

from dataclasses import dataclass

import numpy as np

from multigpu.errors import InputError, UsageError, option
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.rotations import read_quaternions
from multigpu.formats.molecules.scoring import score_channels
from multigpu.kernels.rotation.rotations import (
    EulerRotations,
    ListedRotations,
    Shifts,
    near_uniform,
)
from multigpu.kernels.rotation.types import Field, PoseSearch
from multigpu.run.values import Vector
from multigpu.workloads.dock.grouping import EACH_ALONE, Grouping
from multigpu.workloads.dock.options import (
    BAND,
    IN_PLACE,
    OTHERS,
    REFINED,
    ROTATIONS,
    STEP,
    DockOptions,
)

MOST_BEYOND = 100.0  # Å, of a box beyond the maps: farther no atom of a ligand is in them
WHOLE_BOX_ONLY = ("conformers", "group_by", "refine")


def field_of(pocket: Pocket, options: DockOptions) -> Field:
    """Return the pocket as the kernels take it. Raises InputError for what they refuse."""
    values = score_channels(pocket.values, pocket.types)
    outside = options.outside or ("penalty" if pocket.types else "clamp")
    try:
        return Field(values, pocket.origin, pocket.spacing, options.interpolation, outside)
    except ValueError as error:
        raise InputError(pocket.path, f"{error}") from error


@dataclass(frozen=True)
class WholeBox:
    """Poses of a whole box that are found, refined, returned."""

    width: float  # of the band below the best score: all poses in it are found
    refined: int  # poses of a ligand that are refined, 0 for none
    top: int  # poses of each ligand that are returned


def whole_box_of(options: DockOptions, pocket: Pocket) -> WholeBox | None:
    """Return how the whole box is searched; None where it is not."""
    has_types = bool(pocket.types)
    if not options.is_whole_box(has_types, pocket.prepared is not None):
        return None
    width = BAND if options.band is None else options.band
    are_smooth_energies = has_types and options.interpolation == "linear"
    refine = options.refine or ("rigid" if are_smooth_energies else "none")
    refined = max(options.top, REFINED) if refine == "rigid" else 0
    return WholeBox(width, refined, options.top)


def grouping_of(options: DockOptions, whole: WholeBox | None) -> Grouping:
    """Return which records are one ligand. Raises UsageError where only single ones are docked."""
    if whole is None:
        given = [name for name in WHOLE_BOX_ONLY if getattr(options, name) not in (None, "none")]
        if given:
            asks = [name for name in OTHERS if getattr(options, name) not in (None, False)]
            other = f", and {option(asks[0])} asks for another search" if asks else ""
            cure = "leave out one of them"
            if not {*asks} & {*IN_PLACE}:
                cure = f"give {option('step')}, or {cure}"
            raise UsageError(f"{option(given[0])} is for a whole box{other}: {cure}")
        return EACH_ALONE
    return EACH_ALONE if options.conformers else Grouping(options.group_by or "title")


def search_of(options: DockOptions, pocket: Pocket, whole: WholeBox | None) -> PoseSearch:
    """Return the poses to try. Raises UsageError where there are too many."""
    try:
        if whole is None:
            shifts = Shifts(*options.translations) if options.translations else Shifts()
            rotations = _listed(options) or EulerRotations(options.angle_step)
            return PoseSearch(rotations, shifts, options.center, options.top, options.min_rmsd)
        middle, shifts = _box_of(options, pocket)
        rotations = _listed(options) or near_uniform(ROTATIONS)
        most = max(whole.refined, whole.top)
        return PoseSearch(rotations, shifts, middle, most, options.min_rmsd)
    except ValueError as error:
        raise UsageError(f"this cannot be searched: {error}: take larger steps") from error


def _box_of(options: DockOptions, pocket: Pocket) -> tuple[Vector, Shifts]:
    """Return the middle of the box that is searched, and its shifts.

    Raises UsageError for a box that lies outside of the pocket's.
    """
    middle = pocket.center
    lengths = pocket.spacing * (np.array(pocket.shape) - 1)
    if options.box is not None:
        middle, lengths = np.array(options.box[:3]), np.array(options.box[3:])
        beyond = np.maximum(pocket.origin - middle, middle - pocket.end)
        low, high = (",".join(f"{x:.4g}" for x in end) for end in (pocket.origin, pocket.end))
        reach = f"the pocket, which reaches from {low} to {high} Å"
        if (beyond > lengths / 2).any():
            raise UsageError(f"{option('box')} does not touch {reach}")
        if (beyond + lengths / 2 > MOST_BEYOND).any():
            problem = f"{option('box')} reaches more than {MOST_BEYOND:g} Å beyond {reach}"
            raise UsageError(f"{problem}: give a smaller one")
    rx, ry, rz = np.round(lengths / 2, 9).tolist()  # 15.0, not 14.999999999999998
    x, y, z = middle.tolist()
    return (x, y, z), Shifts((rx, ry, rz), STEP if options.step is None else options.step)


def _listed(options: DockOptions) -> ListedRotations | None:
    """Return the rotations that are given, by a file or by their number."""
    if options.rotation_file is not None:
        return ListedRotations(read_quaternions(str(options.rotation_file)))
    return near_uniform(options.rotations) if options.rotations is not None else None

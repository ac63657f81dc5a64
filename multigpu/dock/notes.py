"""Notes that the user of a docking job should read although nothing is wrong."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multigpu.formats.molecules.autodock import NO_MAP
from multigpu.formats.molecules.pockets import Pocket
from multigpu.kernels.rotation import PENALTY

if TYPE_CHECKING:
    from multigpu.dock.job import DockStats

OUTSIDE = {
    "clamp": "as at its border",
    "zero": "nothing",
    "penalty": f"-{PENALTY:,.0f} for each Å² from its middle",
}


def absent_map_notes(stats: "DockStats", pocket: Pocket) -> Iterator[str]:
    """Yield a note where ligands were skipped and the pocket's file names maps that are missing."""
    if pocket.absent and any(each.reason.startswith(NO_MAP) for each in stats.skipped):
        yield f"{pocket.path} names maps of {', '.join(pocket.absent)}, which are not there"


def result_notes(stats: "DockStats", pocket: Pocket, outside: str, centered: bool) -> Iterator[str]:
    """Yield a note for everything that the user probably did not mean.

    outside   what atoms outside of the grid score: a key of OUTSIDE
    centered  whether the user says where centroids are
    """
    if stats.without_hydrogens:
        yield (
            f"{stats.without_hydrogens} of {stats.ligands} ligands have no hydrogens and were"
            " docked without them: to add them first, try `obabel IN -O OUT -h`"
        )
    if stats.centroids_outside and not centered:
        distance, name = stats.farthest
        middle = ",".join(f"{x:.4g}" for x in pocket.center)
        yield (
            f"{stats.centroids_outside} of {stats.ligands} ligands have their centroid outside of"
            f" the grid, up to {distance:.4g} Å ({name}), where scores mean nothing: --center"
            f" {middle} puts them all in its middle"
        )
    if stats.reaching_out:
        atoms, name = stats.most_outside
        yield (
            f"the best poses of {stats.reaching_out} of {stats.ligands} ligands have atoms outside"
            f" of the grid, up to {atoms} ({name}); these score {OUTSIDE[outside]}: see the column"
            " atoms_outside"
        )

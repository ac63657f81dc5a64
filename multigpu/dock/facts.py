"""Facts about a docking job, and notes that its user should read."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from multigpu.dock.output.error_table import Skipped
from multigpu.dock.work import DockedLigands
from multigpu.formats.molecules.autodock import NO_MAP
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.tables.batch import PoseBatch
from multigpu.kernels.rotation import PENALTY
from multigpu.run.job import JobFacts

OUTSIDE = {
    "clamp": "as at its border",
    "zero": "nothing",
    "penalty": f"-{PENALTY:,.0f} for each Å² from its middle",
}


@dataclass
class DockFacts(JobFacts):
    """Counts and scores of the ligands that a docking job has finished.

    ligands            that were docked
    poses              that were written
    centroids_outside  ligands with their centroid outside of the grid
    farthest           the largest distance of these, Å, and the ligand's name
    without_hydrogens  ligands
    reaching_out       ligands whose best pose has atoms outside of the grid
    most_outside       the largest number of such atoms, and the ligand's name
    text_bytes         of the ligands' records
    scores             float64 arrays: the best score of every ligand, in the order of the input
    """

    ligands: int = 0
    poses: int = 0
    centroids_outside: int = 0
    farthest: tuple[float, str] = (0.0, "")
    without_hydrogens: int = 0
    reaching_out: int = 0
    most_outside: tuple[int, str] = (0, "")
    text_bytes: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)

    def take(self, docked: DockedLigands) -> None:
        """Count some more ligands."""
        self.ligands += len(docked.names)
        self.poses += len(docked.rows)
        self.without_hydrogens += docked.without_hydrogens
        self.text_bytes += docked.text_bytes
        self.skipped += docked.skipped
        self.scores.append(docked.rows.score[docked.rows.pose == 1])
        self.centroids_outside += int((docked.outside > 0).sum())
        if len(docked.outside):
            most = int(docked.outside.argmax())
            self.farthest = max(self.farthest, (float(docked.outside[most]), docked.names[most]))
        self._take_atoms_outside(docked.rows)

    def _take_atoms_outside(self, rows: PoseBatch) -> None:
        best = np.flatnonzero(rows.pose == 1)
        atoms = rows.atoms_outside[best]
        self.reaching_out += int((atoms > 0).sum())
        if atoms.max(initial=0) > self.most_outside[0]:
            most = int(atoms.argmax())
            self.most_outside = int(atoms[most]), rows.ligand[best[most]]

    @property
    def best_score(self) -> float | None:
        """The highest score of all ligands; None without any."""
        return max((scores.max() for scores in self.scores if len(scores)), default=None)


def absent_map_notes(facts: DockFacts, pocket: Pocket) -> Iterator[str]:
    """Yield a note where ligands were skipped and the pocket's file names maps that are missing."""
    if pocket.absent and any(each.reason.startswith(NO_MAP) for each in facts.skipped):
        yield f"{pocket.path} names maps of {', '.join(pocket.absent)}, which are not there"


def result_notes(facts: DockFacts, pocket: Pocket, outside: str, centered: bool) -> Iterator[str]:
    """Yield a note for everything that the user probably did not mean.

    outside   what atoms outside of the grid score: a key of OUTSIDE
    centered  whether the user says where centroids are
    """
    if facts.without_hydrogens:
        yield (
            f"{facts.without_hydrogens} of {facts.ligands} ligands have no hydrogens and were"
            " docked without them: to add them first, try `obabel IN -O OUT -h`"
        )
    if facts.centroids_outside and not centered:
        distance, name = facts.farthest
        middle = ",".join(f"{x:.4g}" for x in pocket.center)
        yield (
            f"{facts.centroids_outside} of {facts.ligands} ligands have their centroid outside of"
            f" the grid, up to {distance:.4g} Å ({name}), where scores mean nothing: --center"
            f" {middle} puts them all in its middle"
        )
    if facts.reaching_out:
        atoms, name = facts.most_outside
        yield (
            f"the best poses of {facts.reaching_out} of {facts.ligands} ligands have atoms outside"
            f" of the grid, up to {atoms} ({name}); these score {OUTSIDE[outside]}: see the column"
            " atoms_outside"
        )

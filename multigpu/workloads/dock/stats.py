"""Numbers of a docking job so far."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import spelled
from multigpu.run.job import JobStats
from multigpu.workloads.dock.parts import DockedLigands, Skipped


@dataclass
class DockStats(JobStats):
    """Counts and scores of the ligands that a docking job has finished.

    ligands            that were docked
    poses              that were written
    centroids_outside  ligands with their centroid outside of the grid
    farthest           the largest distance of these, Å, and the ligand's name
    without_hydrogens  ligands
    parts              ligands of whose record other atoms were left out
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
    parts: int = 0
    reaching_out: int = 0
    most_outside: tuple[int, str] = (0, "")
    text_bytes: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)

    def take(self, docked: DockedLigands) -> None:
        self.ligands += len(docked.names)
        self.poses += len(docked.rows)
        self.without_hydrogens += docked.without_hydrogens
        self.parts += docked.parts
        self.text_bytes += docked.text_bytes
        self.skipped += [replace(x, reason=spelled(x.reason)) for x in docked.skipped]
        self.centroids_outside += int((docked.outside > 0).sum())
        if len(docked.outside):
            most = int(docked.outside.argmax())
            self.farthest = max(self.farthest, (float(docked.outside[most]), docked.names[most]))
        best = np.flatnonzero(docked.rows.pose == 1)
        self.scores.append(docked.rows.score[best])
        atoms = docked.rows.atoms_outside[best]
        self.reaching_out += int((atoms > 0).sum())
        if atoms.max(initial=0) > self.most_outside[0]:
            most = int(atoms.argmax())
            self.most_outside = int(atoms[most]), docked.rows.ligand[best[most]]

    @property
    def best_score(self) -> float | None:
        """The highest score of all ligands; None without any."""
        return max((scores.max() for scores in self.scores if len(scores)), default=None)

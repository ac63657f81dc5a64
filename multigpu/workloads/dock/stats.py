"""Numbers of a docking job so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import spelled
from multigpu.run.job import JobStats
from multigpu.workloads.dock.listing import are_far, fences
from multigpu.workloads.dock.parts import DockedLigands, Skipped

ENERGY, SIZE = "energy", "heavy atoms"
NAMED, KEPT = 3, 10  # ligands of a note; of each end

Named = tuple[float, str]  # a value, and the ligand that has it


class Outliers(NamedTuple):
    """Ligands far from the others: how many, the farthest of them, and the median of all."""

    number: int
    named: list[Named]
    median: float


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
    others             ligands that are another molecule than the reference
    sizes              int32 arrays: heavy atoms of every ligand, in the order of the input
    extremes           the lowest and the highest energies and sizes, with the ligands' names
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
    others: int = 0
    sizes: list[NDArray[np.int32]] = field(default_factory=list)
    extremes: dict[str, list[Named]] = field(default_factory=dict)
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
        self.sizes.append(docked.rows.heavy[best])
        self.others += int(np.isnan(docked.rows.rmsd_to_reference[best]).sum())
        names = [docked.rows.ligand[row] for row in best.tolist()]
        self._keep_extremes(ENERGY, -self.scores[-1], names)
        self._keep_extremes(SIZE, self.sizes[-1], names)
        atoms = docked.rows.atoms_outside[best]
        self.reaching_out += int((atoms > 0).sum())
        if atoms.max(initial=0) > self.most_outside[0]:
            most = int(atoms.argmax())
            self.most_outside = int(atoms[most]), docked.rows.ligand[best[most]]

    def _keep_extremes(self, what: str, values: NDArray[Any], names: Sequence[str]) -> None:
        """Keep the names of the ligands with the lowest and the highest values so far."""
        kept = [*self.extremes.get(what, ()), *zip(values.tolist(), names, strict=True)]
        kept.sort(key=itemgetter(0))
        self.extremes[what] = kept[:KEPT] + kept[KEPT:][-KEPT:]

    def outliers(self, what: str) -> Outliers:
        """Return the ligands that are far from the others by their ENERGY or SIZE."""
        values = np.concatenate(self.sizes) if what == SIZE else -np.concatenate(self.scores)
        (low, high), middle = fences(values), float(np.median(values))
        named = [each for each in self.extremes[what] if not low <= each[0] <= high]
        named.sort(key=lambda each: -abs(each[0] - middle))
        return Outliers(int(are_far(values).sum()), named[:NAMED], middle)

    @property
    def best_ligands(self) -> list[dict[str, Any]]:
        """The ligands with the lowest energies, for the summary."""
        best = self.extremes.get(ENERGY, [])[:KEPT]
        return [
            {"rank": rank, "ligand": name, "energy": energy}
            for rank, (energy, name) in enumerate(best, 1)
        ]

    @property
    def best_score(self) -> float | None:
        """The highest score of all ligands; None without any."""
        return max((scores.max() for scores in self.scores if len(scores)), default=None)

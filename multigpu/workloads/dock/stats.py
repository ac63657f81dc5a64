"""Numbers of a docking job so far, and its best ligands as a report lists them."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import spelled
from multigpu.run.job import JobStats
from multigpu.workloads.dock.parts import DockedLigands, Skipped
from multigpu.workloads.dock.rows import PoseBatch, columns_of

FENCE = 3.0  # quartile ranges beyond the quartiles: Tukey's "far out" (1977)
FEWEST = 10  # ligands of which one can be far from the others
BEST = 10  # ligands of the summary
POSES, ROWS = 20, 2000  # of a ligand; of the report's table


class Outliers(NamedTuple):
    """Ligands far from the others and their values, the farthest first, and the median of all."""

    ligands: list[int]
    values: list[float]
    median: float

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Outliers":
        """Return the outliers by a value of each ligand, of which there is one at least."""
        far, median = np.flatnonzero(are_far(values)), float(np.median(values))
        far = far[np.argsort(-np.abs(values[far] - median), kind="stable")]
        return cls(far.tolist(), values[far].tolist(), median)


def are_far(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which ligands are far from the others; none of few, or where most are equal."""
    low, high = np.quantile(values, [0.25, 0.75])
    reach = FENCE * (high - low) if len(values) >= FEWEST and high > low else np.inf
    return np.asarray((values < low - reach) | (values > high + reach))


@dataclass
class DockStats(JobStats):
    """Counts and scores of the ligands that a docking job has finished."""

    ligands: int = 0  # that were docked
    poses: int = 0  # that were written
    without_hydrogens: int = 0  # ligands
    parts: int = 0  # ligands of whose record other atoms were left out
    reaching_out: int = 0  # ligands whose best pose has atoms outside of the grid
    most_outside: tuple[int, str] = (0, "")  # the most of such atoms, and the ligand's name
    text_bytes: int = 0  # of the ligands' records
    others: int = 0  # ligands that are another molecule than the reference
    sizes: list[NDArray[np.int32]] = field(default_factory=list)  # int32: heavy atoms of each
    names: list[str] = field(default_factory=list)  # of every ligand, in the order of the input
    skipped: list[Skipped] = field(default_factory=list)
    scores: list[NDArray[np.float64]] = field(default_factory=list)  # float64: best of each

    def take(self, docked: DockedLigands) -> None:
        best = np.flatnonzero(docked.rows.pose == 1)
        names = [docked.rows.ligand[row] for row in best.tolist()]
        self.ligands += len(names)
        self.poses += len(docked.rows)
        self.without_hydrogens += docked.without_hydrogens
        self.parts += docked.parts
        self.text_bytes += docked.text_bytes
        self.skipped += [replace(x, reason=spelled(x.reason)) for x in docked.skipped]
        self.scores.append(docked.rows.score[best])
        self.sizes.append(docked.rows.heavy[best])
        self.others += int(np.isnan(docked.rows.rmsd_to_reference[best]).sum())
        self.names += names
        atoms = docked.rows.atoms_outside[best]
        self.reaching_out += int((atoms > 0).sum())
        if atoms.max(initial=0) > self.most_outside[0]:
            most = int(atoms.argmax())
            self.most_outside = int(atoms[most]), names[most]

    @property
    def values(self) -> NDArray[np.float64]:
        """float64[ligands]: the best score of each."""
        return np.concatenate([np.empty(0), *self.scores])

    @property
    def heavy_atoms(self) -> NDArray[np.int32]:
        """int32[ligands]: heavy atoms of each."""
        return np.concatenate([np.empty(0, np.int32), *self.sizes])

    @property
    def best_ligands(self) -> list[dict[str, Any]]:
        """The ligands with the lowest energies, for the summary."""
        energies = -self.values
        best = np.argsort(energies, kind="stable")[:BEST].tolist()
        return [
            {"rank": rank, "ligand": self.names[i], "energy": float(energies[i])}
            for rank, i in enumerate(best, 1)
        ]

    @property
    def best_score(self) -> float | None:
        """The highest score of all ligands; None without any."""
        return max((scores.max() for scores in self.scores if len(scores)), default=None)


@dataclass(kw_only=True, eq=False)
class Listing:
    """The best ligands so far."""

    columns: Collection[str]  # of poses
    parts: list[dict[str, NDArray[Any]]] = field(default_factory=list)  # columns of poses, by name

    def take(self, rows: PoseBatch) -> None:
        """Add the poses of ligands, each with all of its rows."""
        columns = columns_of(rows, self.columns) | {"heavy_atoms": rows.heavy}
        texts = {name: np.array(columns[name], object) for name in ("ligand", "source")}
        kept = rows.pose <= POSES
        self.parts.append({name: values[kept] for name, values in (columns | texts).items()})
        if sum(len(part["pose"]) for part in self.parts) > 2 * ROWS:
            self.parts = [self.table()[0]]

    def table(self) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
        """Return the first ROWS poses, the best ligand first, and the rank of each one's ligand."""
        names = self.parts[0]
        table = {name: np.concatenate([part[name] for part in self.parts]) for name in names}
        first = np.flatnonzero(table["pose"] == 1)
        ranks = np.argsort(np.argsort(-table["score"][first], kind="stable")) + 1
        rank = np.repeat(ranks, np.diff(first, append=len(table["pose"])))
        kept = np.argsort(rank, kind="stable")[:ROWS]
        return {name: values[kept] for name, values in table.items()}, rank[kept]

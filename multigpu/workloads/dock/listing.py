"""Ligands of a docking job as its report lists them: all in numbers, the best with their rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.dock.rows import PoseBatch

LIGANDS, POSES, ROWS = 1000, 100, 2000  # whose rows are kept; of each of them; in the table
FENCE = 3.0  # quartile ranges beyond the quartiles: Tukey's "far out" (1977)
FEWEST = 10  # ligands of which one can be far from the others


@dataclass(kw_only=True, eq=False)
class Listing:
    """The ligands so far.

    names  of all docked ligands, in the order of the input
    rows   poses of the best ligands, without coordinates
    held   how many ligands these are
    """

    names: list[str] = field(default_factory=list)
    rows: list[PoseBatch] = field(default_factory=list)
    held: int = 0

    def take(self, rows: PoseBatch) -> None:
        """Add the poses of ligands, each with all of its rows."""
        best = np.flatnonzero(rows.pose == 1)
        self.names += [rows.ligand[row] for row in best.tolist()]
        self.rows.append(rows.take(np.flatnonzero(rows.pose <= POSES)))
        self.held += len(best)
        if self.held > 2 * LIGANDS:
            self.rows, self.held = [self.best()[0]], LIGANDS

    def best(self) -> tuple[PoseBatch, NDArray[np.int64]]:
        """Return the rows of the best ligands, and the rank of the ligand of each row."""
        rows = PoseBatch.joined(self.rows)
        first = np.flatnonzero(rows.pose == 1)
        order = np.lexsort((rows.ligand_index[first], -rows.score[first]))
        ranks = np.empty(len(first), np.int64)
        ranks[order] = np.arange(1, len(first) + 1)
        rank = ranks[np.searchsorted(rows.ligand_index[first], rows.ligand_index)]
        kept = np.flatnonzero(rank <= LIGANDS)
        return rows.take(kept), rank[kept]

    def table(self) -> tuple[PoseBatch, NDArray[np.int64]]:
        """Return poses for a table: the best of each of these ligands, the second, and so on."""
        rows, rank = self.best()
        kept = np.lexsort((rank, rows.pose))[:ROWS]
        kept = kept[np.lexsort((rows.pose[kept], rank[kept]))]
        return rows.take(kept), rank[kept]


def fences(values: NDArray[Any]) -> tuple[float, float]:
    """Return between what values a ligand is not far from the others."""
    low, high = np.quantile(values, [0.25, 0.75])
    if len(values) < FEWEST or low == high:
        return -np.inf, np.inf
    reach = FENCE * (high - low)
    return float(low - reach), float(high + reach)


def are_far(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which ligands are far from the others."""
    low, high = fences(values)
    far: NDArray[np.bool_] = (values < low) | (values > high)
    return far

"""Poses of the best ligands of a docking job, as its report lists them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.dock.rows import PoseBatch

POSES, ROWS = 20, 2000  # of a ligand; of the table


@dataclass(kw_only=True, eq=False)
class Listing:
    """The best ligands so far. batches: their poses, without coordinates."""

    batches: list[PoseBatch] = field(default_factory=list)

    def take(self, rows: PoseBatch) -> None:
        """Add the poses of ligands, each with all of its rows."""
        self.batches.append(rows.take(np.flatnonzero(rows.pose <= POSES)))
        if sum(map(len, self.batches)) > 2 * ROWS:
            self.batches = [self.table()[0]]

    def table(self) -> tuple[PoseBatch, NDArray[np.int64]]:
        """Return the first ROWS poses, the best ligand first, and the rank of each one's ligand."""
        rows = PoseBatch.joined(self.batches)
        first = np.flatnonzero(rows.pose == 1)
        ranks = np.argsort(np.argsort(-rows.score[first], kind="stable")) + 1
        rank = np.repeat(ranks, np.diff(first, append=len(rows)))
        kept = np.argsort(rank, kind="stable")[:ROWS]
        return rows.take(kept), rank[kept]

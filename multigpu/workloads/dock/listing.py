"""Poses of the best ligands of a docking job, as its report lists them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.dock.rows import PoseBatch, columns_of

POSES, ROWS = 20, 2000  # of a ligand; of the table


@dataclass(kw_only=True, eq=False)
class Listing:
    """The best ligands so far.

    energies  whether poses have columns of energies
    parts     columns of poses, by name
    """

    energies: bool
    parts: list[dict[str, NDArray[Any]]] = field(default_factory=list)

    def take(self, rows: PoseBatch) -> None:
        """Add the poses of ligands, each with all of its rows."""
        columns = columns_of(rows, self.energies) | {"heavy_atoms": rows.heavy}
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

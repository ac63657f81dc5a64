"""Poses of one ligand that are apart from each other, best first."""

import numpy as np

from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import ROUNDING, Ligands, Placements, sum_of


def thin(bodies: Ligands, found: Placements, min_rmsd: float, most: int) -> Indices:
    """Return int64[n], ascending: which placements of one ligand are kept, `most` of them.

    found: best first, of one body or of several with the same atoms. One that is closer than
    `min_rmsd` Å, over all atoms as numbered, to one that is kept is left out. Rounding aside:
    placements exactly `min_rmsd` apart are apart.
    """
    kept, free = [], np.arange(len(found))
    while len(free) and len(kept) < most:
        kept.append(int(free[0]))
        free = free[1:]
        if len(kept) < most:
            squares = squared_distances(bodies, found.take(free), found.take(np.array(kept[-1:])))
            free = free[squares >= min_rmsd**2 - ROUNDING]
    return np.array(kept, np.int64)


def squared_distances(bodies: Ligands, found: Placements, one: Placements) -> Floats:
    """Return float64[k], Å²: the squared RMSD of each placement to one other.

    The mean of |A x + a − B y − b|² over the atoms is mean |x|² + mean |y|² − 2 Σ (A C) ∘ B +
    |a − b|² with C = mean of x yᵀ, as the means of x and y are 0.
    """
    distances = np.empty(len(found))
    other = bodies.relative[bodies.offsets[one.ligand[0]] : bodies.offsets[one.ligand[0] + 1]]
    for body in np.unique(found.ligand).tolist():
        rows = found.ligand == body
        places = bodies.relative[bodies.offsets[body] : bodies.offsets[body + 1]]
        common = places.T @ other / len(places)
        turned = found.matrix[rows] @ common
        overlap = sum_of((turned * one.matrix[0]).reshape(-1, 9))
        apart = found.place[rows] - one.place[0]
        spread = (sum_of(places * places) + sum_of(other * other)).mean()
        distances[rows] = spread - 2 * overlap + sum_of(apart * apart)
    return distances

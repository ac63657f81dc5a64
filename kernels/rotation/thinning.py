"""Poses of one ligand that are apart from each other, best first.

The mean of |A x + a − B y − b|² over the atoms of two bodies, x and y from their centroids, is
mean |x|² + mean |y|² − 2 Σ (A C) ∘ B + |a − b|², where C is the mean of x yᵀ: atoms are looked at
once for two bodies, not for two poses.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import ROUNDING, Ligands, Placements


def thin(bodies: Ligands, found: Placements, min_rmsd: float, most: int) -> Indices:
    """Return int64[n], ascending: which placements of one ligand are kept, `most` of them.

    found: best first, of one body or of several with the same atoms. One that is closer than
    `min_rmsd` Å, over all atoms as numbered, to one that is kept is left out. Rounding aside:
    placements exactly `min_rmsd` apart are apart. Raises ValueError for bodies that differ in
    their number of atoms.
    """
    kept = np.arange(min(most, len(found)))
    if not (min_rmsd > 0 and len(found)):
        return kept
    return kept[: _compare(*_columns(bodies, found), min_rmsd, kept, 0, np.empty(0, np.bool_))]


def apart(
    bodies: Ligands, found: Placements, taken: Placements, min_rmsd: float
) -> NDArray[np.bool_]:
    """Return bool[k]: which placements are no closer than `min_rmsd` Å to any of `taken`."""
    free = np.ones(len(taken) + len(found), np.bool_)
    if min_rmsd > 0:
        both = Placements.joined([taken, found], [0, 0])
        count = len(taken)
        _compare(*_columns(bodies, both), min_rmsd, np.arange(count), count, free)
    return free[len(taken) :]


def cross_moments(bodies: Ligands, numbers: Indices) -> Floats:
    """Return float64[n, n, 3, 3]: means of x yᵀ over the atoms of each two of some bodies."""
    if len(np.unique(bodies.sizes[numbers])) > 1:
        raise ValueError("bodies of one ligand differ in their number of atoms")
    spans = [slice(*bodies.offsets[k : k + 2]) for k in numbers.tolist()]
    atoms = np.array([bodies.relative[span] for span in spans]).reshape(len(numbers), -1, 3)
    products: Floats = np.einsum("iax,jay->ijxy", atoms, atoms) / max(atoms.shape[1], 1)
    return products


def _columns(bodies: Ligands, found: Placements) -> tuple[Floats, Indices, Floats, Floats]:
    """Return cross moments of the bodies that there are, and which of them is placed where."""
    present, body = np.unique(found.ligand, return_inverse=True)
    return cross_moments(bodies, present), body.reshape(-1), found.matrix, found.place


@jit_no_alloc
def _compare(
    products: Any, body: Any, matrix: Any, place: Any,
    min_rmsd: Any, kept: Any, count: Any, free: Any,
) -> Any:  # fmt: skip
    """Keep the rows that are apart from those kept so far, until there is no room for more.

    kept: int64[most], rows, `count` of which are kept from the start. Where these are all, the rows
    after them are not kept, but `free` is set. Return how many are kept.
    """
    marks, most = free.shape[0] > 0, kept.shape[0]
    for row in range(count, body.shape[0]):
        if count == most and not marks:
            break
        is_free = True
        for n in range(count):
            k = kept[n]
            one, other = body[k], body[row]
            p, q, c = products[one, one], products[other, other], products[one, other]
            squared = (p[0, 0] + p[1, 1] + p[2, 2]) + (q[0, 0] + q[1, 1] + q[2, 2])
            for i in range(3):
                for j in range(3):
                    a, b = matrix[k, i], matrix[row, i, j]
                    squared -= 2 * (a[0] * c[0, j] + a[1] * c[1, j] + a[2] * c[2, j]) * b
                squared += (place[k, i] - place[row, i]) * (place[k, i] - place[row, i])
            if squared < min_rmsd * min_rmsd - ROUNDING:
                is_free = False
                break
        if marks:
            free[row] = is_free
        elif is_free:
            kept[count] = row
            count += 1
    return count

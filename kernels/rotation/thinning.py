"""Poses that are apart: the best, the best of those apart from it, and so on.

The mean of |A x + a − B y − b|² over the atoms of two bodies, x and y from their centroids, is
mean |x|² + mean |y|² − 2 Σ (A C) ∘ B + |a − b|², where C is the mean of x yᵀ: an atom is looked at
once for two bodies, not for two poses.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import ROUNDING, Ligands, Placements


def thin(bodies: Ligands, placements: Placements, min_rmsd: float, most: int) -> Indices:
    """Return int64[n]: the rows that are kept, in their order, at most `most` of them.

    placements: of one ligand, the best first; a row is kept unless it is closer than `min_rmsd` Å
    (over all atoms as numbered) to one that was. Raises ValueError for bodies that differ in their
    number of atoms.
    """
    if not min_rmsd > 0:
        return np.arange(min(most, len(placements)))
    kept = np.empty(min(most, len(placements)), np.int64)
    present, body = np.unique(placements.ligand, return_inverse=True)
    products = cross_moments(bodies, present)
    count = _thin(
        products, body.reshape(-1), placements.matrix, placements.place, _squared(min_rmsd), kept
    )
    return kept[:count]


def apart(
    bodies: Ligands, placements: Placements, taken: Placements, min_rmsd: float
) -> NDArray[np.bool_]:
    """Return bool[k]: which placements are no closer than `min_rmsd` Å to any of `taken`."""
    free = np.ones(len(placements), np.bool_)
    if len(taken) and min_rmsd > 0:
        both = np.concatenate([placements.ligand, taken.ligand])
        present, body = np.unique(both, return_inverse=True)
        one, other = np.split(body.reshape(-1), [len(placements)])
        _strike(
            cross_moments(bodies, present),
            (one, placements.matrix, placements.place),
            (other, taken.matrix, taken.place),
            _squared(min_rmsd),
            free,
        )
    return free


def cross_moments(bodies: Ligands, numbers: Indices) -> Floats:
    """Return float64[n, n, 3, 3]: means of x yᵀ over the atoms of each two of some bodies."""
    if len(set(bodies.sizes[numbers].tolist())) > 1:
        raise ValueError("bodies of one ligand differ in their number of atoms")
    relative = np.stack(
        [bodies.relative[bodies.offsets[k] : bodies.offsets[k + 1]] for k in numbers.tolist()]
    )
    found: Floats = np.einsum("iax,jay->ijxy", relative, relative) / relative.shape[1]
    return np.ascontiguousarray(found)


def _squared(min_rmsd: float) -> float:
    return min_rmsd**2 - ROUNDING


@jit_no_alloc
def _squared_distance(products: Any, i: Any, a: Any, s: Any, j: Any, b: Any, t: Any) -> Any:
    """Return the squared RMSD of two placements: body, matrix and place of each."""
    own, other, c = products[i, i], products[j, j], products[i, j]
    total = (own[0, 0] + own[1, 1] + own[2, 2]) + (other[0, 0] + other[1, 1] + other[2, 2])
    overlap, apart = 0.0, 0.0
    for p in range(3):
        for q in range(3):
            turned = a[p, 0] * c[0, q] + a[p, 1] * c[1, q] + a[p, 2] * c[2, q]
            overlap += turned * b[p, q]
        apart += (s[p] - t[p]) * (s[p] - t[p])
    return total - 2 * overlap + apart


@jit_no_alloc
def _thin(products: Any, body: Any, matrix: Any, place: Any, squared: Any, kept: Any) -> Any:
    """Set the rows that are kept; return how many."""
    count = 0
    for row in range(body.shape[0]):
        if count == kept.shape[0]:
            break
        is_free = True
        for n in range(count):
            k = kept[n]
            if (
                _squared_distance(
                    products, body[k], matrix[k], place[k], body[row], matrix[row], place[row]
                )
                < squared
            ):
                is_free = False
                break
        if is_free:
            kept[count] = row
            count += 1
    return count


@jit_no_alloc
def _strike(products: Any, placed: Any, taken: Any, squared: Any, free: Any) -> Any:
    """Set what is not free: closer than that to one of `taken`."""
    body, matrix, place = placed
    bodies, matrices, places = taken
    for row in range(body.shape[0]):
        for k in range(bodies.shape[0]):
            if (
                _squared_distance(
                    products, bodies[k], matrices[k], places[k], body[row], matrix[row], place[row]
                )
                < squared
            ):
                free[row] = False
                break

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
from multigpu.kernels.rotation.types import ROUNDING, Ligands, Placements, Poses, PoseSearch

FIRST_COMPARED = 1 << 9  # poses, before more are


def thin(bodies: Ligands, found: Placements, min_rmsd: float, most: int) -> Indices:
    """Return int64[n], ascending: which placements of one ligand are kept, `most` of them.

    found: best first, of one body or of several with the same atoms. One that is closer than
    `min_rmsd` Å, over all atoms as numbered, to one that is kept is left out. Rounding aside:
    placements exactly `min_rmsd` apart are apart.
    """
    kept = np.arange(min(most, len(found)))
    if min_rmsd > 0 and len(found):
        return kept[: _keep(*_columns(bodies, found), min_rmsd**2 - ROUNDING, kept)]
    return kept


def thinned(bodies: Ligands, search: PoseSearch, ordered: Poses, most: int) -> Poses:
    """Return the poses that `thin` keeps of one ligand's; as few as do are compared."""
    many = max(FIRST_COMPARED, most)
    while True:
        first = ordered.take(slice(many))
        kept = thin(bodies, Placements.of(bodies, search, first), search.min_rmsd, most)
        if len(kept) == most or many >= len(ordered):
            return first.take(kept)
        many *= 8


def apart(
    bodies: Ligands, found: Placements, taken: Placements, min_rmsd: float
) -> NDArray[np.bool_]:
    """Return bool[k]: which placements are no closer than `min_rmsd` Å to any of `taken`."""
    free = np.ones(len(found), np.bool_)
    if min_rmsd > 0 and len(found):
        both = Placements.chained([taken, found])
        _mark(*_columns(bodies, both), min_rmsd**2 - ROUNDING, np.arange(len(taken)), free)
    return free


def cross_moments(bodies: Ligands, numbers: Indices) -> Floats:
    """Return float64[n, n, 3, 3]: means of x yᵀ over the atoms of each two of some bodies."""
    spans = [slice(*bodies.offsets[k : k + 2]) for k in numbers.tolist()]
    along = np.array([np.ascontiguousarray(bodies.relative[span].T) for span in spans])
    products = [np.add.reduceat(one[:, None] * along[:, None], [0], axis=3) for one in along]
    # The sums are those of `Ligands.moments`, to the last bit.
    found: Floats = np.array(products)[..., 0] / along.shape[2]
    return found


def _columns(bodies: Ligands, found: Placements) -> tuple[Floats, Indices, Floats, Floats]:
    """Return cross moments of the bodies that there are, and which of them is placed where."""
    present, body = np.unique(found.ligand, return_inverse=True)
    return cross_moments(bodies, present), body.reshape(-1), found.matrix, found.place


# The operations come in the order in which the kernels do them.


@jit_no_alloc
def _keep(products: Any, body: Any, matrix: Any, place: Any, least: Any, kept: Any) -> Any:
    """Set rows that are apart, as many as there is room for; return how many are kept."""
    count = 0
    for row in range(body.shape[0]):
        if count == kept.shape[0]:
            break
        if _is_apart(products, body, matrix, place, least, kept[:count], row):
            kept[count] = row
            count += 1
    return count


@jit_no_alloc
def _mark(
    products: Any, body: Any, matrix: Any, place: Any, least: Any, taken: Any, free: Any
) -> Any:
    """Set which of the rows after those taken are apart from all of them."""
    for n in range(free.shape[0]):
        row = taken.shape[0] + n
        free[n] = _is_apart(products, body, matrix, place, least, taken, row)


@jit_no_alloc
def _is_apart(
    products: Any, body: Any, matrix: Any, place: Any, least: Any, taken: Any, row: Any
) -> Any:
    """Return whether no squared distance of a row to those taken is below the least."""
    for k in taken:
        one, other = body[k], body[row]
        p, q, c = products[one, one], products[other, other], products[one, other]
        spread = (p[0, 0] + p[1, 1] + p[2, 2]) + (q[0, 0] + q[1, 1] + q[2, 2])
        overlap, far = 0.0, 0.0
        for i in range(3):
            a, shift = matrix[k, i], place[row, i] - place[k, i]
            for j in range(3):
                turned = a[0] * c[0, j] + a[1] * c[1, j] + a[2] * c[2, j]
                overlap += turned * matrix[row, i, j]
            far += shift * shift
        if spread - 2 * overlap + far < least:
            return False
    return True

"""Poses of one ligand that are apart from each other, best first, in as few passes as may be.

A pass of `Shortlist` lists the poses with the highest scores in double precision. From the list the
best is chosen, the best of those apart from it, and so on. Where that ends before `top` poses,
because very many lie around few, the next pass lists those apart from all that were chosen.

The mean of |A x + a − B y − b|² over the atoms of two bodies, x and y from their centroids, is
mean |x|² + mean |y|² − 2 Σ (A C) ∘ B + |a − b|², where C is the mean of x yᵀ: atoms are looked at
once for two bodies, not for two poses.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import ROUNDING, Ligands, Placements, Poses, PoseSearch

FIRST_COMPARED = 1 << 9  # poses, before more are
MOST_LISTED = 1 << 17  # poses; there may be twice as many, and one part's, before some are dropped
SHORTLIST_BYTES = 64  # of a pose while they are sorted


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
    return np.asarray(np.array(products)[..., 0] / along.shape[2])


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


class Shortlist:
    """The poses of one ligand, of one or more bodies, that a pass has listed.

    width   how much worse than the best a pose may score
    chosen  poses of all passes so far that are apart, the best first
    band    float64[2]: the best score, which the searcher sets where there is a width; and the
            least that is listed. Of the poses that score just this, some may have been dropped,
            and none that comes before a listed one.
    """

    def __init__(self, bodies: Ligands, search: PoseSearch, width: float = np.inf) -> None:
        self.width, self.chosen, self.band = width, Poses.none(), np.full(2, -np.inf)
        self._bodies, self._search = bodies, search
        far = search.top > 1 and search.min_rmsd > 0
        self._most = max(MOST_LISTED, search.top) if far else search.top
        self._begin()

    def _begin(self) -> None:
        self._parts: list[Poses] = []
        self._dropped = -np.inf  # the highest score of a pose that may have been
        self.band[1] = self.band[0] - self.width

    def best(self, list_all: Callable[["Shortlist"], None]) -> Poses:
        """Return the best poses that are apart; list_all: adds what there is, but chosen poses."""
        top = self._search.top
        while True:
            list_all(self)
            found = thinned(self._bodies, self._search, self._ordered(), top - len(self.chosen))
            self.chosen = Poses.chained([self.chosen, found])
            is_complete = self._dropped == -np.inf or self._dropped < self.band[0] - self.width
            if is_complete or len(self.chosen) == top or not len(found):
                return self.chosen
            self._begin()

    def free(self, poses: Poses) -> Poses:
        """Return those poses that are apart from all chosen ones, and none of them."""
        if not len(self.chosen):
            return poses
        is_free = np.ones(len(poses), bool)
        for body in np.unique(self.chosen.ligand):
            there = self.chosen.pose[self.chosen.ligand == body]
            is_free &= (poses.ligand != body) | ~np.isin(poses.pose, there)
        placements, chosen = (
            Placements.of(self._bodies, self._search, each) for each in (poses, self.chosen)
        )
        is_free &= apart(self._bodies, placements, chosen, self._search.min_rmsd)
        return poses.take(np.flatnonzero(is_free))

    def add(self, poses: Poses) -> None:
        """Add poses, which are all free; those below the band are not kept."""
        self._parts.append(poses)
        if sum(map(len, self._parts)) > 2 * self._most:
            kept = self._ordered()
            if len(kept) > self._most:
                kept = kept.take(slice(self._most))
                self._dropped = self.band[1] = float(kept.score[-1])
            self._parts = [kept]

    def _ordered(self) -> Poses:
        """Return the listed poses of the band, the best first."""
        found = Poses.chained([Poses.none(), *self._parts])
        found = found.take(np.flatnonzero(found.score >= self.band[1]))
        return found.take(np.lexsort((found.pose, found.ligand, -found.score)))

"""The best poses of one ligand that are apart from each other, in as few passes as may be.

A pass lists the poses with the highest scores in double precision. From the list the best is
chosen, the best of those apart from it, and so on. Where that ends before `top` poses, because
very many lie around few, the next pass lists those that are apart from all that were chosen.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from multigpu.kernels.rotation.thinning import apart, thinned
from multigpu.kernels.rotation.types import Ligands, Placements, Poses, PoseSearch

MOST_LISTED = 1 << 17  # poses; there may be twice as many, and one part's, before some are dropped
SHORTLIST_BYTES = 64  # of a pose while they are sorted


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

    @classmethod
    def of_body(cls, ligands: Ligands, number: int, search: PoseSearch) -> "Shortlist":
        """Return a list of the poses of one body, whose number in the poses is 0.

        Its target does not matter: distances are the kernels', to the last bit, without it.
        """
        return cls(ligands[number : number + 1], replace(search, center=(0.0, 0.0, 0.0)))

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

"""The best poses of one ligand that are apart from each other, in one pass over all its poses.

A pass lists the poses with the highest scores in single precision. The best, the best of those
apart from it, and so on are then chosen from the list, until the proof of `bounds` no longer says
that the next one is in it. Where that is before `top` poses, because very many lie around few, the
next pass lists those that are apart from all that were chosen.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.rotation import rounds
from kernels.rotation.rotations import Floats, Indices
from kernels.rotation.types import Poses, Search, squared_distance

MOST_LISTED = 1 << 20  # poses that are kept; there may be twice as many before some are dropped
AT_ONCE = 1 << 20  # scores of a part that are looked at together
AHEAD = 1 << 10  # listed poses that are scored in double precision together, at least


class Scores(rounds.Scores, Protocol):
    """The scores of one ligand, of which some are listed."""

    def above(self, some: range, floor: float) -> tuple[Indices, NDArray[np.float32]]:
        """Poses of the part whose score is above `floor`, in any order, and their scores.

        some: which of the part, counted from its first pose
        """

    def exact(self, poses: Indices) -> Floats:
        """float64[k]: scores in double precision."""

    def threshold(self, greatest: np.float32) -> np.float32:
        """What the best pose scores at least in single precision, as `bounds` has it.

        greatest: the highest score of a decided pose
        """


def best(
    scores: Scores, search: Search, span: range, most: int, taken: Indices, moments: Floats
) -> Poses:
    """The best poses of a span, apart from those that were taken; `most` are scored at a time.

    moments: float64[3, 3] of the ligand
    """
    chosen: list[tuple[int, float]] = []
    complete = False
    while len(chosen) < search.top and not complete:
        struck = np.r_[taken, np.array([pose for pose, _ in chosen], np.int64)]
        listed = _listed(scores, span, most, struck)
        winners = scores.winners()
        if not len(winners):
            break
        chosen.append((int(winners.pose[0]), float(winners.score[0])))
        ranking = Ranking(scores, search, moments, listed, [*struck.tolist(), chosen[-1][0]])
        while len(chosen) < search.top and (choice := ranking.choose()):
            chosen.append(choice)
        complete = listed.complete
    poses = np.array([pose for pose, _ in chosen], np.int64)
    return Poses(np.zeros(len(chosen), np.int64), poses, np.array([score for _, score in chosen]))


def _listed(scores: Scores, span: range, most: int, struck: Indices) -> "Shortlist":
    """One pass: its best pose is among `scores.winners()`, the others are listed."""
    shortlist = Shortlist(scores)
    scores.begin()
    for part in rounds.split(span, most):
        scores.score(part)
        if len(struck):
            none = np.zeros(len(struck))
            scores.strike(Poses(none.astype(np.int64), struck, none))
        scores.settle()
        for some in rounds.split(range(len(part)), AT_ONCE):
            shortlist.add(*scores.above(some, shortlist.floor))
    return shortlist


class Shortlist:
    """All poses with scores above `floor` in single precision, in any order.

    An undecided pose counts with its score in double precision, rounded.
    """

    def __init__(self, scores: Scores) -> None:
        self._of, self.floor = scores, -np.inf
        self._parts: list[tuple[Indices, NDArray[np.float32]]] = []

    @property
    def complete(self) -> bool:
        """Whether no pose was dropped."""
        return self.floor == -np.inf

    def add(self, poses: Indices, scores: NDArray[np.float32]) -> None:
        undecided = scores == np.inf
        scores[undecided] = self._of.exact(poses[undecided])
        self._keep(poses, scores)
        if sum(len(part) for part, _ in self._parts) > 2 * MOST_LISTED:
            poses, scores = self.joined()
            self.floor = float(np.partition(scores, -MOST_LISTED)[-MOST_LISTED])
            self._parts = []
            self._keep(poses, scores)

    def _keep(self, poses: Indices, scores: NDArray[np.float32]) -> None:
        above = scores > self.floor
        self._parts.append((poses[above], scores[above]))

    def joined(self) -> tuple[Indices, NDArray[np.float32]]:
        poses, scores = zip(*self._parts, strict=True)
        return np.concatenate(poses), np.concatenate(scores)


class Ranking:
    """The poses of a shortlist, best first; some of them seen, and of these some still free.

    taken: poses from which a free one must be apart
    """

    def __init__(
        self, scores: Scores, search: Search, moments: Floats, listed: Shortlist, taken: list[int]
    ) -> None:
        self._of, self._search, self._moments, self._listed = scores, search, moments, listed
        poses, single = listed.joined()
        order = np.argsort(-single)
        self._poses, self._single = poses[order], single[order]
        self._taken = [search.placements(np.array([pose])) for pose in taken]
        self._struck = set(taken)
        self._seen = 0
        self._free, self._exact = np.empty(0, np.int64), np.empty(0)  # by their rank

    def choose(self) -> tuple[int, float] | None:
        """The best free pose and its score; None where it may be one that is not listed."""
        while not len(self._free) and self._seen < len(self._poses):
            self._see(self._seen + AHEAD)
        if not len(self._free):
            return None
        threshold = self._of.threshold(self._single[self._free[0]])
        if not (threshold > self._listed.floor or self._listed.complete):
            return None
        self._see(int(np.searchsorted(-self._single, -threshold, side="right")))
        highest = self._exact.max()
        pose = int(self._poses[self._free[self._exact == highest]].min())
        self._take(pose)
        return pose, float(highest)

    def _see(self, end: int) -> None:
        """Score the listed poses up to a rank in double precision, if they are free."""
        if end <= self._seen:
            return
        ranks = np.arange(self._seen, min(end, len(self._poses)))
        self._seen = len(ranks) + self._seen
        for one in self._taken:
            ranks = ranks[self._apart(one, self._poses[ranks])]
        ranks = ranks[~np.isin(self._poses[ranks], [*self._struck])]
        self._free = np.r_[self._free, ranks]
        self._exact = np.r_[self._exact, self._of.exact(self._poses[ranks])]

    def _take(self, pose: int) -> None:
        one = self._search.placements(np.array([pose]))
        self._taken.append(one)
        self._struck.add(pose)
        poses = self._poses[self._free]
        free = self._apart(one, poses) & (poses != pose)
        self._free, self._exact = self._free[free], self._exact[free]

    def _apart(self, one: tuple[Floats, Floats], poses: Indices) -> NDArray[np.bool_]:
        placed = one[0][0], one[1][0]
        squared = squared_distance(self._moments, placed, self._search.placements(poses))
        apart: NDArray[np.bool_] = squared >= self._search.min_squared
        return apart

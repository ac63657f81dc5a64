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
AHEAD = 1 << 10  # listed poses that are looked at together when the next one is chosen, and
GROWTH = 4  # at least one for so many that were looked at: their order is found again each time

Queue = tuple[Indices, Floats]  # poses and their scores


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
    """The poses of a shortlist in the order in which they may be chosen.

    Some of them were seen: their scores in double precision are known, by which they are queued.
    At the front of the queue are those that were found to be apart from all that are taken.
    """

    def __init__(
        self, scores: Scores, search: Search, moments: Floats, listed: Shortlist, taken: list[int]
    ) -> None:
        self._of, self._search, self._moments, self._listed = scores, search, moments, listed
        poses, single = listed.joined()
        order = np.argsort(-single)
        self._poses, self._single = poses[order], single[order]
        self._taken = taken
        self._seen = 0
        self._front = self._queue = np.empty(0, np.int64), np.empty(0)  # poses and scores

    def choose(self) -> tuple[int, float] | None:
        """Take the best free pose, with its score; None where it may be one that is not listed."""
        while True:
            self._advance()
            poses, scores = self._front
            if len(poses):
                threshold = self._of.threshold(np.float32(scores[0]))
                if not (threshold > self._listed.floor or self._listed.complete):
                    return None
                end = int(np.searchsorted(-self._single, -threshold, side="right"))
                if end <= self._seen:
                    break
            elif self._seen == len(self._poses):
                return None
            else:
                end = self._seen + AHEAD
            self._see(end)
        pose, score = int(poses[0]), float(scores[0])
        self._taken.append(pose)
        free = self._apart(pose, poses)
        self._front = poses[free], scores[free]
        return pose, score

    def _see(self, end: int) -> None:
        """Score the listed poses up to this one, or some more, in double precision."""
        new = self._poses[self._seen : max(end, self._seen + self._seen // GROWTH)]
        self._seen += len(new)
        held = zip(self._front, self._queue, (new, self._of.exact(new)), strict=True)
        poses, scores = (np.concatenate(each) for each in held)
        order = np.lexsort((poses, -scores))
        self._queue = poses[order], scores[order]
        self._front = self._front[0][:0], self._front[1][:0]

    def _advance(self) -> None:
        """Move poses from the queue to an empty front until one is apart from all taken."""
        while not len(self._front[0]) and len(self._queue[0]):
            (poses, scores), self._queue = _cut(self._queue, AHEAD)
            for one in self._taken:
                free = self._apart(one, poses)
                poses, scores = poses[free], scores[free]
            self._front = poses, scores

    def _apart(self, one: int, poses: Indices) -> NDArray[np.bool_]:
        matrices, shifts = self._search.placements(np.array([one]))
        others = self._search.placements(poses)
        squared = squared_distance(self._moments, (matrices[0], shifts[0]), others)
        apart: NDArray[np.bool_] = (squared >= self._search.min_squared) & (poses != one)
        return apart


def _cut(queue: Queue, count: int) -> tuple[Queue, Queue]:
    """The first poses of a queue, and the others."""
    poses, scores = queue
    return (poses[:count], scores[:count]), (poses[count:], scores[count:])

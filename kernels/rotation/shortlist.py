"""The best poses of one ligand that are apart from each other, in one pass over all its poses.

A pass lists the poses with the highest scores in double precision. From the list the best is
chosen, the best of those apart from it, and so on. Where that ends before `top` poses, because
very many lie around few, the next pass lists those that are apart from all that were chosen.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import numpy as np

from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import Poses, PoseSearch, squared_distance

MOST_LISTED = 1 << 17  # poses; there may be twice as many, and one part's, before some are dropped
SHORTLIST_BYTES = 64  # of a pose while they are sorted
AHEAD = 1 << 9  # listed poses that are compared together with those that were chosen


class PoseScores(Protocol):
    """The scores of one ligand in a span of poses."""

    def list_into(self, listed: "Shortlist", struck: Indices) -> None:
        """Add the poses of the span, part by part, whose score is above the list's floor.

        struck: poses that are left out, with those closer to one of them than the search allows
        """


def best(scores: PoseScores, search: PoseSearch, moments: Floats) -> Poses:
    """Return the best poses that are apart from each other; moments: float64[3, 3]."""
    chosen: list[tuple[int, float]] = []
    while len(chosen) < search.top:
        listed = Shortlist()
        scores.list_into(listed, _columns(chosen)[0])
        found = [*islice(_apart(listed, search, moments), search.top - len(chosen))]
        chosen += found
        if listed.complete or not found:
            break
    poses, values = _columns(chosen)
    return Poses(np.zeros(len(chosen), np.int64), poses, values)


def _columns(chosen: list[tuple[int, float]]) -> tuple[Indices, Floats]:
    poses, scores = zip(*chosen, strict=True) if chosen else ((), ())
    return np.array(poses, np.int64), np.array(scores, np.float64)


class Shortlist:
    """The poses with the highest scores, the lowest index first among equals.

    floor: those that come later are listed above this score only
    """

    def __init__(self) -> None:
        self.floor = -np.inf
        self._parts: list[tuple[Indices, Floats]] = []

    @property
    def complete(self) -> bool:
        """Whether no pose was dropped."""
        return self.floor == -np.inf

    def add(self, poses: Indices, scores: Floats) -> None:
        """Add poses with higher indices than all before."""
        self._parts.append((poses, scores))
        if sum(len(part) for part, _ in self._parts) > 2 * MOST_LISTED:
            poses, scores = self.ordered()
            self._parts = [(poses[:MOST_LISTED], scores[:MOST_LISTED])]
            self.floor = float(scores[MOST_LISTED - 1])

    def ordered(self) -> tuple[Indices, Floats]:
        """Return int64[k] poses and float64[k] scores, best first."""
        none = np.empty(0, np.int64), np.empty(0)
        poses, scores = (np.concatenate(each) for each in zip(none, *self._parts, strict=True))
        order = np.lexsort((poses, -scores))
        return poses[order], scores[order]


def _apart(listed: Shortlist, search: PoseSearch, moments: Floats) -> Iterator[tuple[int, float]]:
    """Yield the best listed pose and its score, the best of those apart from it, and so on."""
    chosen: list[int] = []
    poses, scores = listed.ordered()
    for begin in range(0, len(poses), AHEAD):
        some = slice(begin, begin + AHEAD)
        free, values = poses[some], scores[some]
        for one in chosen:
            free, values = without(one, free, values, search, moments)
        while len(free):
            chosen.append(int(free[0]))
            yield chosen[-1], float(values[0])
            free, values = without(chosen[-1], free, values, search, moments)


def without(
    one: int, poses: Indices, scores: Floats, search: PoseSearch, moments: Floats
) -> tuple[Indices, Floats]:
    """Return those of poses int64[k] that are apart from one and not it; and their scores."""
    matrices, shifts = search.placements(np.array([one]))
    squared = squared_distance(moments, (matrices[0], shifts[0]), search.placements(poses))
    apart = (squared >= search.min_squared) & (poses != one)
    return poses[apart], scores[apart]

"""The search on a CPU: in Numba, one thread a call, without the GIL."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.rotation import cpu_poses, shortlist
from multigpu.kernels.rotation.bounds import FieldBounds, LigandBounds
from multigpu.kernels.rotation.cpu_poses import BLOCK, Body, Grid, Space
from multigpu.kernels.rotation.rotations import EulerRotations, Floats, Indices, ListedRotations
from multigpu.kernels.rotation.rounds import best, check, span_of
from multigpu.kernels.rotation.types import Field, Ligands, Poses, Search

MOST_SCORES = 1 << 24  # that are held at a time: 64 MiB
AT_ONCE = 1 << 16  # of them, that are looked at together where the best are listed
TOGETHER = 256  # ligands whose bounds are found together


class Searcher:
    """Searches the poses of ligands in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field, search: Search) -> None:
        self.field, self.search = field, search
        self.bounds = FieldBounds(field)
        self.grid, self.space = _grid(field), _space(search)

    def best(
        self, ligands: Ligands, span: range | None = None, apart_from: Poses | None = None
    ) -> Poses:
        """Return what `reference.Searcher.best` does."""
        check(self.field, ligands)
        span, taken = span_of(self.search, span), apart_from or Poses.none()
        found = []
        for begin in range(0, len(ligands), TOGETHER):
            some = ligands[begin : begin + TOGETHER]
            bounds = LigandBounds(self.bounds, some, self.search)
            for i, body in enumerate(bodies_of(some, self, bounds.doubt)):
                struck = taken.pose[taken.ligand == begin + i]
                found.append(self._best(Scores(self, body, bounds, i), span, struck, begin + i))
        return Poses.joined(found)

    def _best(self, scores: "Scores", span: range, taken: Indices, ligand: int) -> Poses:
        if self.search.top > 1:
            moments = scores.body.moments
            found = shortlist.best(scores, self.search, span, MOST_SCORES, taken, moments)
            return found.moved(ligand)
        struck = Poses(np.zeros(len(taken), np.int64), taken, np.zeros(len(taken)))
        return best(scores, self.search, span, MOST_SCORES, struck).moved(ligand)


class Scores:
    """The scores of one ligand: `shortlist.Scores`. It has a number among those of the bounds."""

    at_once = AT_ONCE

    def __init__(self, searcher: Searcher, body: Body, bounds: LigandBounds, number: int) -> None:
        self._of, self.body = searcher, body
        self._bounds, self._some = bounds, slice(number, number + 1)
        self._turned = np.empty((2, 12))
        self._rows, self._cells = np.empty((18, BLOCK), np.float32), np.empty(BLOCK, np.uint32)
        self._begin, self.held = 0, np.empty(0, np.float32)

    def begin(self) -> None:
        self._greatest = np.full(1, -np.inf, np.float32)
        self._pose, self._score = -1, -np.inf

    def score(self, part: range) -> None:
        self._begin, self.held = part.start, np.empty(len(part), np.float32)
        cpu_poses.score(
            self._of.grid, self._of.space, self.body, self._begin, self.held, self._turned[0],
            self._rows, self._cells,
        )  # fmt: skip

    def strike(self, taken: Poses) -> None:
        for pose in taken.pose:
            cpu_poses.strike(
                self._of.space, self.body.moments, self._begin, self.held, pose,
                self._of.search.min_squared, self._turned,
            )  # fmt: skip

    def settle(self) -> None:
        self._greatest = np.maximum(self._greatest, cpu_poses.greatest(self.held))
        threshold = self._bounds.thresholds(self._greatest, self._some)[0]
        pose, score = cpu_poses.settle(
            self._of.grid, self._of.space, self.body, self._begin, self.held, threshold,
            self._turned[0],
        )  # fmt: skip
        # Parts come in the order of their poses, so among equals the one that is held has won.
        if pose >= 0 and (self._pose < 0 or score > self._score):
            self._pose, self._score = pose, score

    def better(self, some: range, floor: float) -> tuple[Indices, Floats]:
        """Return what `shortlist.Scores.better` does."""
        held = self.held[some.start : some.stop]
        threshold = self._bounds.thresholds_above(np.array([floor]), self._some)[0]
        poses, scores = np.empty(len(held), np.int64), np.empty(len(held))
        count = cpu_poses.better(
            self._of.grid, self._of.space, self.body, self._begin + some.start, held, threshold,
            floor, self._turned[0], poses, scores,
        )  # fmt: skip
        return poses[:count].copy(), scores[:count].copy()

    def winners(self) -> Poses:
        if self._pose < 0:
            return Poses.none()
        return Poses(np.zeros(1, np.int64), np.array([self._pose]), np.array([self._score]))


def _grid(field: Field) -> Grid:
    return Grid(
        field.values.reshape(len(field.values), -1),
        np.array(field.shape),
        1 / field.spacing,
        field.interpolation == "linear",
        field.outside != "clamp",
        field.outside == "penalty",
        field.middle,
        field.spacing,
    )


def _space(search: Search) -> Space:
    rotations, side, step = search.rotations, search.shifts.side, float(search.shifts.step)
    if isinstance(rotations, EulerRotations):
        n, locked, wrap = rotations.n, rotations.locked, rotations.wrap
        return Space(n, locked, wrap, rotations.table, np.empty((0, 4)), side, step)
    assert isinstance(rotations, ListedRotations)
    return Space(0, (0, 0), 0, np.empty((0, 2)), rotations.quaternions, side, step)


def bodies_of(ligands: Ligands, searcher: Searcher, doubt: NDArray[np.float32]) -> list[Body]:
    """Return a body for each ligand. doubt: float32[n]."""
    starts = searcher.search.targets(ligands) - searcher.field.origin
    starts *= searcher.grid.per_unit
    borders = ligands.offsets.tolist()
    return [
        Body(
            starts[i],
            ligands.relative[begin:end],
            ligands.channels[begin:end],
            ligands.weights[begin:end],
            ligands.moments[i],
            doubt[i],
        )
        for i, (begin, end) in enumerate(pairwise(borders))
    ]

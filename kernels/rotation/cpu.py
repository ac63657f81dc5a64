"""The search on a CPU: in Numba, one thread a call, without the GIL."""

import numpy as np
from numpy.typing import NDArray

from kernels.rotation import cpu_poses
from kernels.rotation.bounds import FieldBounds, LigandBounds
from kernels.rotation.cpu_poses import BLOCK, Body, Grid, Space
from kernels.rotation.rotations import EulerRotations, ListedRotations
from kernels.rotation.rounds import best, check, span_of
from kernels.rotation.types import Field, Ligands, Poses, Search

MOST_SCORES = 1 << 24  # that are held at a time: 64 MiB


class Searcher:
    """Searches the poses of ligands in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field, search: Search) -> None:
        self.field, self.search = field, search
        self.bounds = FieldBounds(field)
        self.grid, self.space = _grid(field), _space(search)

    def best(
        self, ligands: Ligands, span: range | None = None, apart_from: Poses | None = None
    ) -> Poses:
        """As `reference.Searcher.best`."""
        check(self.field, ligands)
        span, taken = span_of(self.search, span), apart_from or Poses.none()
        found = [
            self._best(ligands[i : i + 1], span, taken.pose[taken.ligand == i]).moved(i)
            for i in range(len(ligands))
        ]
        return Poses.joined(found)

    def _best(self, ligand: Ligands, span: range, taken: NDArray[np.int64]) -> Poses:
        bounds = LigandBounds(self.bounds, ligand, self.search)
        scores = Scores(self, body_of(ligand, self, bounds.doubt[0]))
        struck = Poses(np.zeros(len(taken), np.int64), taken, np.zeros(len(taken)))
        return best(scores, bounds, span, MOST_SCORES, struck)


class Scores:
    """The scores of one ligand: `rounds.Scores`."""

    def __init__(self, searcher: Searcher, body: Body) -> None:
        self._of, self._body = searcher, body
        self._turned = np.empty((2, 12))
        self._rows, self._cells = np.empty((17, BLOCK), np.float32), np.empty(BLOCK, np.uint32)
        self._begin, self.held = 0, np.empty(0, np.float32)

    def score(self, part: range) -> None:
        self._begin, self.held = part.start, np.empty(len(part), np.float32)
        cpu_poses.score(
            self._of.grid, self._of.space, self._body, self._begin, self.held, self._turned[0],
            self._rows, self._cells,
        )  # fmt: skip

    def strike(self, taken: Poses) -> None:
        for pose in taken.pose:
            cpu_poses.strike(
                self._of.space, self._body.moments, self._begin, self.held, pose,
                self._of.search.min_rmsd**2, self._turned,
            )  # fmt: skip

    def greatest(self) -> NDArray[np.float32]:
        return np.array([cpu_poses.greatest(self.held)], np.float32)

    def settle(self, thresholds: NDArray[np.float32]) -> Poses:
        pose, score = cpu_poses.settle(
            self._of.grid, self._of.space, self._body, self._begin, self.held, thresholds[0],
            self._turned[0],
        )  # fmt: skip
        if pose < 0:
            return Poses.none()
        return Poses(np.zeros(1, np.int64), np.array([pose]), np.array([score]))


def _grid(field: Field) -> Grid:
    return Grid(
        field.values.reshape(len(field.values), -1),
        np.array(field.shape),
        1 / field.spacing,
        field.interpolation == "linear",
        field.outside == "zero",
    )


def _space(search: Search) -> Space:
    rotations, side, step = search.rotations, search.shifts.side, float(search.shifts.step)
    if isinstance(rotations, EulerRotations):
        n, quarter = rotations.n, rotations.quarter
        return Space(n, quarter, rotations.table, np.empty((0, 4)), side, step)
    assert isinstance(rotations, ListedRotations)
    return Space(0, 0, np.empty((0, 2)), rotations.quaternions, side, step)


def body_of(ligand: Ligands, searcher: Searcher, doubt: np.float32) -> Body:
    start = searcher.search.targets(ligand)[0] - searcher.field.origin
    return Body(
        start * searcher.grid.per_unit,
        ligand.relative,
        ligand.channels,
        ligand.weights,
        ligand.moments[0],
        doubt,
    )

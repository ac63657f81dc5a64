"""The plain band search: every pose, every atom, in double precision. The tests' oracle."""

import numpy as np

from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import Field, Ligands, Placements, Poses, PoseSearch, placed


class BandSearcher:
    """Searches the poses of ligands in one field: all that score at most `width` below the best."""

    def __init__(self, field: Field, search: PoseSearch, width: float) -> None:
        self.field, self.search, self.width = field, search, width

    def best(self, bodies: Ligands, ligand_of: Indices) -> Poses:
        """Return the poses of each ligand, as `BandFinder.best` says."""
        found = [
            self._best(bodies, np.flatnonzero(ligand_of == ligand))
            for ligand in np.unique(ligand_of)
        ]
        return Poses.chained(found)

    def _best(self, bodies: Ligands, numbers: Indices) -> Poses:
        poses = np.arange(self.search.stop)
        poses = poses[self.search.rotations.is_first(poses // self.search.shifts.count)]
        scores = np.stack([self._scores(bodies, number, poses) for number in numbers.tolist()])
        body, row = np.nonzero(scores >= scores.max() - self.width)
        order = np.lexsort((poses[row], body, -scores[body, row]))
        body, row = body[order], row[order]
        found = Poses(numbers[body], poses[row], scores[body, row])
        return found.take(np.array(self._thinned(bodies, found), np.int64))

    def _scores(self, bodies: Ligands, number: int, poses: Indices) -> Floats:
        parts = np.split(poses, range(reference.BLOCK, len(poses), reference.BLOCK))
        return np.concatenate(
            [reference.scores(self.field, bodies, number, self.search, part) for part in parts]
        )

    def _thinned(self, bodies: Ligands, found: Poses) -> list[int]:
        atoms = placed(bodies, Placements.of(bodies, self.search, found))
        atoms = atoms.reshape(len(found), -1, 3)
        kept: list[int] = []
        free = np.ones(len(found), bool)
        while free.any() and len(kept) < self.search.top:
            kept.append(int(free.argmax()))
            squared = ((atoms - atoms[kept[-1]]) ** 2).sum(axis=2).mean(axis=1)
            free &= squared >= self.search.min_squared
            free[kept[-1]] = False
        return kept

"""The plain band search: every pose, every atom, in double precision. The tests' oracle."""

import numpy as np

from multigpu.kernels.rotation.reference import best_poses
from multigpu.kernels.rotation.rotations import Indices
from multigpu.kernels.rotation.types import Field, Ligands, Poses, PoseSearch


class BandSearcher:
    """Searches the poses of ligands in one field: all that score at most `width` below the best."""

    def __init__(self, field: Field, search: PoseSearch, width: float) -> None:
        self.field, self.search, self.width = field, search, width

    def best(self, bodies: Ligands, ligand_of: Indices) -> Poses:
        """Return the poses of each ligand, as `BandFinder.best` says."""
        found = [
            best_poses(self.field, bodies, numbers, self.search, width=self.width)
            for numbers in np.split(np.arange(len(bodies)), np.flatnonzero(np.diff(ligand_of)) + 1)
            if len(numbers)
        ]
        return Poses.chained([Poses.none(), *found])

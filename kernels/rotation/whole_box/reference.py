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
        """Return the poses of each ligand that score at most `width` less than its best pose.

        ligand_of: int64[bodies], ascending: the ligand of each body; its bodies share one band

        The best first (of equals the lower body, then the lower pose), without those closer than
        `min_rmsd` to one that was taken, of whichever body, and no more than `top` of a ligand.
        """
        found = [
            best_poses(self.field, bodies, numbers, self.search, width=self.width)
            for numbers in np.split(np.arange(len(bodies)), np.flatnonzero(np.diff(ligand_of)) + 1)
            if len(numbers)
        ]
        return Poses.chained([Poses.none(), *found])

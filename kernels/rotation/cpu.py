"""The search on a CPU: in Numba, one thread a call, without the GIL; every pose in float64."""

from dataclasses import replace
from functools import partial

import numpy as np

from multigpu.kernels.rotation import cpu_poses
from multigpu.kernels.rotation.cpu_poses import Body, PoseBuffers, field_arrays
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.thinning import Shortlist
from multigpu.kernels.rotation.types import Field, Ligands, Poses, PoseSearch, split

AT_ONCE = 1 << 14  # poses that are scored before the best are listed


class PoseSearcher:
    """Searches the poses of ligands in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field, search: PoseSearch) -> None:
        self.field, self.search = field, search
        self.grid = field_arrays(field)

    def best(self, ligands: Ligands, span: range | None = None) -> Poses:
        """Return what `reference.PoseSearcher.best` does."""
        span = range(self.search.stop) if span is None else span
        room = cpu_poses.room()
        starts = (self.search.targets(ligands) - self.field.origin) * self.grid.per_unit
        # Distances are the kernels' to the last bit, whatever the target is.
        found, search = [], replace(self.search, center=(0.0, 0.0, 0.0))
        for number, start in enumerate(starts):
            list_into = partial(self._list_into, Body.of(ligands, number, start), span, room)
            listed = Shortlist(ligands[number : number + 1], search)
            found.append(listed.best(list_into).moved(number))
        return Poses.joined(found)

    def _list_into(self, body: Body, span: range, room: PoseBuffers, listed: Shortlist) -> None:
        """List the poses in ascending order, so that later ones with equal scores are worse."""
        for part in split(span, AT_ONCE):
            poses, scores = self.score(body, part, room)
            better = np.flatnonzero(scores > listed.band[1])
            found = Poses(np.zeros(len(better), np.int64), poses[better], scores[better])
            listed.add(listed.free(found))

    def score(self, body: Body, part: range, room: PoseBuffers) -> tuple[Indices, Floats]:
        """Return int64[k], those of a part that repeat no others, and float64[k], their scores."""
        poses = np.arange(part.start, part.stop)
        poses = poses[self.search.rotations.is_first(poses // self.search.shifts.count)]
        scores = np.empty(len(poses))
        cpu_poses.score(self.grid, body, *self.search.placements(poses), scores, room)
        return poses, scores

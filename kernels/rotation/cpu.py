"""The search on a CPU: in Numba, one thread a call, without the GIL; every pose in float64."""

import numpy as np

from multigpu.kernels.rotation import cpu_poses, shortlist
from multigpu.kernels.rotation.cpu_poses import NONE, Body, Grid, Space
from multigpu.kernels.rotation.rotations import EulerRotations, Floats, Indices, ListedRotations
from multigpu.kernels.rotation.types import Field, Ligands, Poses, Search, check, span_of, split

AT_ONCE = 1 << 16  # poses that are scored before the best are listed


class Searcher:
    """Searches the poses of ligands in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field, search: Search) -> None:
        self.field, self.search = field, search
        self.grid, self.space = _grid(field), _space(search)

    def best(self, ligands: Ligands, span: range | None = None) -> Poses:
        """Return what `reference.Searcher.best` does."""
        check(self.field, ligands)
        span, room = span_of(self.search, span), cpu_poses.room()
        return Poses.joined(
            [
                self._best(Scores(self, body, span, room)).moved(number)
                for number, body in enumerate(self._bodies(ligands))
            ]
        )

    def _best(self, scores: "Scores") -> Poses:
        if self.search.top > 1:
            return shortlist.best(scores, self.search, scores.body.moments)
        return scores.best()

    def _bodies(self, ligands: Ligands) -> list[Body]:
        starts = self.search.targets(ligands) - self.field.origin
        starts *= self.grid.per_unit
        atoms = [slice(*ligands.offsets[i : i + 2]) for i in range(len(ligands))]
        return [
            Body(
                start=start,
                places=ligands.relative[mine],
                channels=ligands.channels[mine],
                weights=ligands.weights[mine],
                moments=moments,
            )
            for start, mine, moments in zip(starts, atoms, ligands.moments, strict=True)
        ]


class Scores:
    """The scores of one ligand in a span of poses: `shortlist.Scores`."""

    def __init__(self, searcher: Searcher, body: Body, span: range, room: cpu_poses.Room) -> None:
        self._of, self.body, self._span, self._room = searcher, body, span, room

    def best(self) -> Poses:
        """Return the best pose."""
        found = Poses.none()
        for part in split(self._span, AT_ONCE):
            scores = self.score(part)
            best = int(scores.argmax())
            if scores[best] > (found.score[0] if len(found) else NONE):
                pose = np.array([part.start + best])
                found = Poses(np.zeros(1, np.int64), pose, scores[best : best + 1])
        return found

    def list_into(self, listed: shortlist.Shortlist, struck: Indices) -> None:
        """Do what `shortlist.Scores.list_into` does."""
        for part in split(self._span, AT_ONCE):
            scores = self.score(part)
            for pose in struck:
                cpu_poses.strike(
                    self._of.space, self.body.moments, part.start, scores, pose,
                    self._of.search.min_squared, self._room.turns,
                )  # fmt: skip
            better = np.flatnonzero(scores > listed.floor)
            listed.add(part.start + better, scores[better])

    def score(self, part: range) -> Floats:
        """Return the scores of a part of the poses."""
        scores = np.empty(len(part))
        cpu_poses.score(self._of.grid, self._of.space, self.body, part.start, scores, self._room)
        return scores


def _grid(field: Field) -> Grid:
    return Grid(
        values=field.values.reshape(len(field.values), -1),
        shape=np.array(field.shape),
        per_unit=1 / field.spacing,
        linear=field.interpolation == "linear",
        ends=field.outside != "clamp",
        penalty=field.outside == "penalty",
        middle=field.middle,
        spacing=field.spacing,
    )


def _space(search: Search) -> Space:
    rotations, side, step = search.rotations, search.shifts.side, float(search.shifts.step)
    if isinstance(rotations, EulerRotations):
        n, locked, wrap = rotations.n, rotations.locked, rotations.wrap
        return Space(n, locked, wrap, rotations.table, np.empty((0, 4)), side, step)
    assert isinstance(rotations, ListedRotations)
    return Space(0, (0, 0), 0, np.empty((0, 2)), rotations.quaternions, side, step)
